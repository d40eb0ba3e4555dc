"""Records the golden transcripts that are missing: `PYTHONPATH=tests python -m support.record_transcripts`.

Each case is one agent run, as whoever embeds it would start it, with replies and tools that are always the same. A
transcript that is there stays as it is: what was once recorded has to replay for ever.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agent_core import AgentOutput, Approve, Deny, Edit, Journal, JsonlJournal, Skip, agent_tool, run_agent
from agent_core.models import ScriptedModel
from utools import Tool, ToolContext, ToolRegistry, ToolResult

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
TOLD = ("finish_reason", "final_answer", "trace")
"""What of a run's output stands beside its transcript."""


@dataclass(frozen=True)
class Case:
    """One run. `script` has one list of replies, or one for each strand; `decisions` are given one after another."""

    script: Sequence[Any] | Mapping[str, Sequence[Any]]
    config: Mapping[str, Any] = field(default_factory=dict)
    decisions: Sequence[Any] = ()


def action(tool: str, thought: str | None = None, **args: Any) -> str:
    told = {} if thought is None else {"thought": thought}
    return orjson.dumps({"type": "action", "tool": tool, "args": args, **told}).decode()


def final(answer: Any) -> str:
    return orjson.dumps({"type": "final", "answer": answer}).decode()


def counted(content: str, tokens: int) -> dict[str, Any]:
    return {"content": content, "usage": {"input_tokens": tokens, "output_tokens": 10}}


def calls(*made: tuple[str, dict[str, Any]], thought: str = "") -> dict[str, Any]:
    """A reply with native calls side by side."""
    return {"content": thought, "calls": [{"name": tool, "arguments": args} for tool, args in made]}


def plan(*steps: tuple[str, dict[str, Any]]) -> str:
    told = [
        {"step": n, "description": f"Use {tool}.", "tool": tool, "parameters": parameters}
        for n, (tool, parameters) in enumerate(steps, start=1)
    ]
    return orjson.dumps({"type": "plan", "steps": told}).decode()


SEND = action("send", to="ann@example.org", text="The order has left.")
ORDER = "Where is order 17? Write to ann@example.org."
CHILD = {"model": "scripted", "max_steps": 4, "allowed_tools": ["find", "add"], "system_prompt": "Be brief."}
NESTED = {"allowed_tools": [{"tool": "agent_core", "preset": CHILD}], "max_tool_calls": 20}
SENT = {"prompt": ORDER, "allowed_tools": [{"tool": "send", "approval": "always"}]}

PLANNED = plan(("add", {"a": 1, "b": 2}), ("add", {"a": "{{steps.1}}", "b": 4}))

CASES: Mapping[str, Case] = {
    "plan_with_references": Case([PLANNED, final("7")], {"mode": "plan"}),
    "plan_refused_and_edited": Case(
        [plan(("long", {})), PLANNED, final("3")],
        {"mode": "plan", "plan": {"confirm": True}},
        [Edit({"steps": [{"step": 1, "description": "Add.", "tool": "add", "parameters": {"a": 1, "b": 2}}]})],
    ),
    "plan_failed_and_made_anew": Case(
        [plan(("broken", {"q": "a"}), ("find", {"q": "x"})), plan(("find", {"q": "order 17"})), final("Found.")],
        {"mode": "plan", "plan": {"on_failure": "replan"}},
    ),
    "success_with_tools": Case([action("find", "I look it up.", q="order 17"), action("add", a=1, b=2), final("3")]),
    "unreadable_then_repaired": Case(["I will look it up.", action("find", q="order 17"), final("It is on its way.")]),
    "never_readable": Case(["Let me see.", "I still think about it."]),
    "arguments_refused_then_corrected": Case(
        [action("add", a="one", b=2), action("add", a=1, b=2, c=3), action("add", a=1, b=2), final("3")],
        {"max_repairs": 2},
    ),
    "tool_failed_then_answered": Case([action("broken", q="x"), final("The archive is closed.")]),
    "approval_approved": Case([SEND, final("Sent.")], SENT, [Approve()]),
    "approval_denied": Case([SEND, final("I was not allowed to.")], SENT, [Deny("not today")]),
    "approval_edited": Case([SEND, final("Sent.")], SENT, [Edit({"to": "bob@example.org", "text": "It has left."})]),
    "approval_not_given_yet": Case([SEND], SENT),
    "in_doubt_skipped": Case([action("post", q="a"), final("I cannot tell.")], {"allowed_tools": ["post"]}, [Skip()]),
    "max_steps": Case([action("find", q="a"), action("find", q="b")], {"max_steps": 2}),
    "max_tool_calls": Case([action("find", q="a"), action("find", q="b")], {"max_tool_calls": 1}),
    "token_budget": Case(
        [counted(action("find", q="a"), 90), counted(action("find", q="b"), 95)], {"total_token_budget": 150}
    ),
    "content_filter": Case([{"content": "", "finish_reason": "content_filter"}]),
    "model_error": Case([action("find", q="a")]),
    "unknown_tool": Case([action("shell", q="a"), final("I have no such tool.")]),
    "nested_agent": Case(
        {
            "agent": [action("agent_core", prompt="Add 20 and 22."), final("The answer is 42.")],
            "agent/agent_core.4": [action("add", a=20, b=22), final("42")],
        },
        NESTED,
    ),
    "nested_agent_fails": Case(
        {
            "agent": [action("agent_core", prompt="Add 20 and 22."), final("Nobody could add it.")],
            "agent/agent_core.4": ["forty", "two"],
        },
        NESTED,
    ),
    "answer_schema": Case(
        [final({"total": "many"}), final({"total": 3})],
        {"answer_schema": {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}},
    ),
    "tolerant_parsing": Case(
        [
            f"<think>What is asked?</think>\n```json\n{action('find', q='order 17')}\n```",
            f"{action('add', a=1, b=2)}\n{final('too early')}",
            final("3"),
        ],
        {"parsing": "tolerant"},
    ),
    "cut_to_size": Case(
        [*(action("long", q=f"chapter {n}") for n in range(5)), final("Read.")],
        {
            "max_input_tokens": 1500,
            "max_steps": 8,
            "observation_max_len": 2000,
            "messages_json": [
                {"role": "user", "content": "What do you know of the old harbour?"},
                {"role": "assistant", "content": "It was built in 1721. " * 160},
            ],
            "prompt": "Read five chapters.",
        },
    ),
    "trace_cut": Case(
        [*(action("long", q=f"chapter {n}") for n in range(4)), final("Read.")],
        {"trace_max_bytes": 1200, "observation_max_len": 600},
    ),
    "provenance_refused": Case(
        [
            action("find", q="order 17"),
            action("send", to="eve@example.org", text="All I know."),
            action("send", to="ann@example.org", text="The order has left."),
            final("Sent."),
        ],
        {"prompt": ORDER, "allowed_tools": ["find", {"tool": "send", "provenance": {"to": "trusted"}}]},
    ),
    "narrowed_arguments": Case(
        [action("find", q="all"), action("find", q="order 17"), final("It is on its way.")],
        {"allowed_tools": [{"tool": "find", "args": {"properties": {"q": {"pattern": "order [0-9]+"}}}}]},
    ),
    "native_batch": Case(
        [
            calls(("find", {"q": "order 17"}), ("add", {"a": 1, "b": 2}), thought="Both at once."),
            {"content": "It is on its way, and the sum is 3."},
        ],
        {"protocol": "tools"},
    ),
    "native_repaired": Case(
        [
            {"content": "", "calls": [{"name": "find", "arguments": '{"q":'}]},
            calls(("find", {"q": 17}), ("shell", {"q": "x"})),
            calls(("find", {"q": "order 17"})),
            {"content": "It is on its way."},
        ],
        {"protocol": "tools", "max_repairs": 2},
    ),
    "native_batch_decided": Case(
        [
            calls(
                ("find", {"q": "order 17"}),
                ("send", {"to": "ann@example.org", "text": "The order has left."}),
                ("add", {"a": 1, "b": 2}),
            ),
            {"content": "Sent."},
        ],
        {**SENT, "allowed_tools": ["find", "add", *SENT["allowed_tools"]], "protocol": "tools", "language": "zh"},
        [Edit({"to": "ann@example.org", "text": "It has left."})],
    ),
    "chinese": Case(
        [action("find", "先查一下订单。", q="订单 17"), "好的,我再想想。", final("订单已经发出。")],
        {"language": "zh", "prompt": "订单 17 在哪里?"},
    ),
}


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
Q = _object(["q"], q=TEXT)


def registry() -> ToolRegistry:
    async def find(args: dict[str, Any], context: ToolContext) -> Any:
        return {"found": f"{args['q']}: on its way", "more": False}

    async def add(args: dict[str, Any], context: ToolContext) -> Any:
        return args["a"] + args["b"]

    async def long(args: dict[str, Any], context: ToolContext) -> Any:
        return f"{args['q']}. " + "The harbour lay still, and the boats came home. " * 40

    async def broken(args: dict[str, Any], context: ToolContext) -> Any:
        return ToolResult(False, error="the archive is closed")

    async def send(args: dict[str, Any], context: ToolContext) -> Any:
        return f"sent to {args['to']}"

    async def post(args: dict[str, Any], context: ToolContext) -> Any:
        return ToolResult(False, error="the line went dead", metadata={"cut_off": True})

    tools = ToolRegistry(
        [
            Tool("find", "Finds what is known of an order.", Q, find, effect="read"),
            Tool("add", "Adds.", _object(["a", "b"], a=NUMBER, b=NUMBER), add, effect="read"),
            Tool("long", "Reads a chapter.", Q, long, effect="read"),
            Tool("broken", "Looks into the archive.", Q, broken, effect="read"),
            Tool("send", "Sends a message.", _object(["to", "text"], to=TEXT, text=TEXT), send, effect="write"),
            Tool("post", "Posts a note.", Q, post, effect="write"),
        ]
    )
    tools.register(agent_tool(tools))
    return tools


async def run(name: str, journal: Journal, run_id: str | None = None, **config: Any) -> AgentOutput:
    """The run of a case, with its decisions, one after another; with another id and other keys than are recorded."""
    case, tools = CASES[name], registry()
    defaults = {
        "model": "scripted",
        "max_steps": 6,
        "allowed_tools": ["find", "add", "long", "broken"],
        "prompt": "Where is order 17?",
    }

    async def on(decisions: Mapping[tuple[str, int], Any] | None = None) -> AgentOutput:
        return await run_agent(
            {**defaults, **config, **case.config},
            registry=tools,
            model=ScriptedModel(case.script),
            journal=journal,
            run_id=run_id or f"golden-{name}",
            decisions=decisions,
        )

    output = await on()
    for decision in case.decisions:
        output = await on({(output.waiting[0]["strand"], output.waiting[0]["n"]): decision})
    return output


def told(output: Mapping[str, Any]) -> bytes:
    """What of an output stands beside its transcript."""
    return orjson.dumps({key: output[key] for key in TOLD}, option=orjson.OPT_INDENT_2) + b"\n"


def main() -> None:
    TRANSCRIPTS.mkdir(exist_ok=True)
    for name in CASES:
        path = TRANSCRIPTS / f"{name}.jsonl"
        if not path.exists():
            output = asyncio.run(run(name, JsonlJournal(path)))
            path.with_suffix(".expected.json").write_bytes(told(output.model_dump()))
            sys.stdout.write(f"{path.name}: {output.finish_reason}, {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
