"""Examples that authors write: a request, calls of the run's own tools with what they gave, the answer. Pure.

None is made up from a schema: a sample shows calls and answers that no person would ask for or give.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from agent_core.config import Example, ExampleCall
from agent_core.outputs import Json
from agent_core.policy import arguments_of
from agent_core.protocol.clip import as_text
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.json_dialect import JsonDialect
from agent_core.protocol.messages import action_message, tool_message
from agent_core.protocol.plan_dialect import PlanDialect
from agent_core.tool_policy import Policies, ToolPolicy
from agent_core.words.catalogue import Words
from utools.schema.compiled import compile_narrowing, compile_schema
from utools.words.text import translate_example

MAX_SHOWN, MAX_TURNS = 3, 8
"""Examples of the run's own tools where the node has none: as text, one a tool; as turns, two a tool where there is
room."""


WrittenExamples = Mapping[str, Sequence[Mapping[str, Any]]]
"""What the authors of tools wrote, by tool code, as `Tool.examples` has it."""


def examples_of_tools(tools: Policies, written: WrittenExamples, language: str, *, as_turns: bool) -> list[Example]:
    """Return the first examples that the tools' authors wrote, those of tools that only read first.

    One that judge would refuse, or that shows what the workflow's author sets, is left out. A second one of a tool has
    room only when each tool has its first. Those of our own tools are in the run's language.
    """
    codes = sorted(tools, key=lambda code: tools[code]["effect"] == "write")
    each_tool = 2 if as_turns else 1
    by_tool = [
        list(islice((each for each in written.get(code, ()) if _is_legal(tools[code], each["args"])), each_tool))
        for code in codes
    ]
    firsts = sum(1 for found in by_tool if found)
    seconds = MAX_TURNS - firsts if as_turns else 0
    chosen: list[Example] = []
    for code, found in zip(codes, by_tool, strict=True):
        more = found[1:2] if seconds > 0 else []
        seconds -= len(more)
        chosen += [_example_of(code, translate_example(each, language)) for each in (*found[:1], *more)]
    return chosen[: MAX_TURNS if as_turns else MAX_SHOWN]


def write_turns(examples: Iterable[Example]) -> list[Json]:
    """Return the examples as messages of an invented past."""
    messages: list[Json] = []
    for example in examples:
        messages.append({"role": "user", "content": example.user})
        for call in example.calls:
            id_ = f"example_{len(messages)}"
            messages.append(action_message([(id_, call.tool, call.args)], None))
            messages.append(tool_message(id_, call.tool, as_text(call.output)))
        messages.append({"role": "assistant", "content": as_text(example.answer)})
    return messages


def show_turns(messages: Sequence[Json], texts: Json, words: Words, *, as_plans: bool) -> str:
    """Messages as a text, in the words of the loop."""
    dialect = (PlanDialect if as_plans else JsonDialect)(Feedback(texts, words))
    entries = dialect.open_conversation(messages)
    return "\n".join(f"{words.speakers[entry.role]}{entry.content}" for entry in entries)


def _example_of(code: str, written: Mapping[str, Any]) -> Example:
    call = ExampleCall(tool=code, args=written["args"], output=written["output"])
    return Example(user=written["user"], calls=[call], answer=written["answer"])


def _is_legal(tool: ToolPolicy, args: dict[str, Any]) -> bool:
    if any(name in tool["hidden"] for name in args) or compile_schema(tool["schema"]).faults(arguments_of(tool, args)):
        return False
    return tool["args"] is None or not compile_narrowing(tool["args"]).faults(args)
