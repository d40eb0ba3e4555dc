"""Examples for a model: short conversations with the run's own tools, made from their schemas. Pure.

A model of half a billion parameters calls tools only after it has seen them called. What a tool's schema has as
`examples` is taken; else a sample is made from it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from agent_core.effects import Json
from agent_core.policy import Policies, ToolPolicy, arguments_of
from agent_core.prompts.samples import sample
from agent_core.prompts.tools import first_sentence
from agent_core.protocol.clip import as_text
from agent_core.protocol.feedback import Feedback
from agent_core.protocol.json_dialect import JsonDialect
from agent_core.protocol.messages import action_message, tool_message
from agent_core.protocol.plan_dialect import PlanDialect
from agent_core.words.catalogue import Words
from utools.schema.compiled import compile_narrowing, compile_schema

LONGEST = 300
"""Characters of arguments, and of an output, beyond which an example would cost more than it shows."""
SHOWN = 3
"""Tools that are shown."""


class Example(NamedTuple):
    """One call of a tool, what it gives, what the tool is about, and what the user asks it about."""

    tool: str
    about: str
    subject: str
    args: Json
    output: Any


def write_examples(
    tools: Policies, outputs: Mapping[str, Json | None], words: Words, *, singles: bool = True
) -> list[Json]:
    """Messages of an invented past: an answer without a tool, `singles` of one call each, and two calls in a row.

    `outputs` are the tools' output schemas. A tool whose sample its own schema or the author refuses is left out.
    """
    shown = _choose(tools, outputs)
    messages = [
        {"role": "user", "content": words.example_question},
        {"role": "assistant", "content": words.example_answer},
    ]
    alone = [*shown[2:], *shown[:1]] if singles or len(shown) == 1 else []
    for example in alone:
        messages += [{"role": "user", "content": example.subject + words.question_mark}, *_run([example])]
    if len(shown) > 1:
        first, second = shown[1], shown[0]
        ask = words.two_requests.format(first=_request(first), second=_uncapitalized(_request(second)))
        messages += [{"role": "user", "content": ask}, *_run([first, second])]
    return messages


def show_examples(messages: Sequence[Json], texts: Json, words: Words, *, as_plans: bool = False) -> str:
    """The examples as a text, in the words of the loop."""
    dialect = (PlanDialect if as_plans else JsonDialect)(Feedback(texts, words))
    entries = dialect.open_conversation(messages)
    lines = [f"{words.speakers[entry.role]}{entry.content}" for entry in entries]
    return "\n".join(lines)


def _request(example: Example) -> str:
    return f"{example.about}: {example.subject}" if example.subject != example.about else example.about


def _uncapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]


def _run(examples: Sequence[Example]) -> list[Json]:
    """The calls in a row with what they give, and an answer from the last."""
    messages: list[Json] = []
    for index, each in enumerate(examples):
        id_ = f"example_{index}"
        messages += [
            action_message([(id_, each.tool, each.args)], None),
            tool_message(id_, each.tool, as_text(each.output)),
        ]
    return [*messages, {"role": "assistant", "content": _answer(examples[-1].output)}]


def _answer(output: Any) -> str:
    """The last value in an output: what an answer is made of stands behind what it is about."""
    while isinstance(output, dict | list) and output:
        output = (list(output.values()) if isinstance(output, dict) else output)[-1]
    return as_text(output)


def _choose(tools: Policies, outputs: Mapping[str, Json | None]) -> list[Example]:
    """Examples of the first tools that have one; tools that only read come first."""
    found: list[Example] = []
    for code in sorted(tools, key=lambda code: tools[code]["effect"] == "write"):
        if (example := _make_example(code, tools[code], outputs.get(code))) is not None:
            found.append(example)
        if len(found) == SHOWN:
            break
    return found


def _make_example(code: str, tool: ToolPolicy, output_schema: Json | None) -> Example | None:
    """A call that judge would let through; None when the sample is none, or is too long to show."""
    whole = tool["schema"].get("examples") or [sample(tool["visible"])]
    if not isinstance(whole[0], dict):
        return None
    args = {name: value for name, value in whole[0].items() if name not in tool["hidden"]}
    if compile_schema(tool["schema"]).faults(arguments_of(tool, args)):
        return None
    if tool["args"] is not None and compile_narrowing(tool["args"]).faults(args):
        return None
    output = sample(output_schema) if output_schema else "ok"
    if len(orjson.dumps([args, output])) > LONGEST:
        return None
    about = re.split(r"[,;，；。]|\.$", first_sentence(tool["description"]))[0]
    return Example(code, about, _subject(args, tool["visible"]) or about, args, output)


def _subject(args: Json, schema: Json) -> str:
    """The values that a user would name: not those that the schema enumerates."""
    rules = schema.get("properties", {})
    named = [value for name, value in args.items() if not (isinstance(rules.get(name), dict) and "enum" in rules[name])]
    return ", ".join(str(value) for value in named if isinstance(value, str | int | float))
