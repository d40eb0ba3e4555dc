"""Records the golden transcripts of workflows that are missing: `PYTHONPATH=tests python -m support.record_workflows`.

As with those of agents, one that is there stays as it is: what was once recorded has to replay for ever.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agent_core import Approve, Deny, Edit, JsonlJournal, Skip
from agent_core.models import ScriptedModel
from agent_core.run.secrets import Secrets
from engine_shim import Engine, MemoryRunStore, RunResult, RunStore, load_workflow
from utools import Tool, ToolContext, ToolError, ToolResult, default_registry

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts" / "workflows"
ANY = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True)
class Case:
    """One run. `script` has the replies by strand; `decisions` are given, and `signals` sent, one after another."""

    nodes: Sequence[Any]
    edges: Sequence[tuple[Any, ...]] | None = None
    script: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    decisions: Sequence[Any] = ()
    stop: str = ""
    signals: Mapping[str, Any] = field(default_factory=dict)


def action(tool: str, **args: Any) -> str:
    return json.dumps({"type": "action", "tool": tool, "args": args})


def final(answer: Any) -> str:
    return json.dumps({"type": "final", "answer": answer})


def work(name: str, **keys: Any) -> dict[str, Any]:
    config = {"name": name, **keys.pop("config", {})}
    return {"id": name, "tool": keys.pop("tool", "work"), "config": config, **keys}


def agent(name: str, *tools: Any, **keys: Any) -> dict[str, Any]:
    config = {"model": "m", "max_steps": 4, "prompt": "Go.", "allowed_tools": list(tools), **keys.pop("config", {})}
    return {"id": name, "tool": "agent_core", "config": config, **keys}


WHEN = {"when": "output.round < `3`"}
ASK = {"ask": "The answer is an order."}
PAY = {"tool": "pay", "approval": "always"}
SUB = {
    "id": "sub",
    "nodes": [work("inner"), agent("thinker", "work")],
    "outputs": {"said": "{{nodes.thinker.final_answer}}"},
}
INVOKE = {"tool": "invoke_workflow", "config": {"workflow": "sub.json"}}

CASES: Mapping[str, Case] = {
    "branches_side_by_side": Case(
        [
            work("a"),
            work("b", config={"x": "{{nodes.a}}"}),
            work("c", config={"x": "{{nodes.a.round}}"}),
            work("d", config={"x": ["{{nodes.b}}", "{{nodes.c}}"]}),
        ]
    ),
    "choice": Case(
        [work("a"), work("b"), work("c"), work("d", config={"x": "{{nodes.b?}}"})],
        [("a", "b", {"when": "output.round > `5`"}), ("a", "c"), ("b", "d"), ("c", "d")],
    ),
    "loop": Case(
        [work("start"), work("body", config={"before": "{{nodes.body.round?}}"}), work("done")],
        [("start", "body"), ("body", "body", WHEN), ("body", "done")],
    ),
    "loop_without_end": Case(
        [work("start"), work("body")], [("start", "body"), ("body", "body")], keys={"max_iterations": 2}
    ),
    "error_edge": Case(
        [work("a", tool="broken"), work("b"), work("h", config={"why": "{{nodes.a.error.message}}"})],
        [("a", "b"), ("a", "h", {"on": "error"})],
    ),
    "failed_beside_a_branch": Case([work("a", tool="broken"), work("b"), work("c", config={"x": "{{nodes.b}}"})]),
    "continue_on_error": Case([work("a", tool="broken", on_error="continue"), work("b")], [("a", "b")]),
    "tool_tried_again": Case([work("a", tool="flaky", retry={"max_attempts": 3})]),
    "agent_tried_again": Case(
        [agent("a", "work", retry={"max_attempts": 2})],
        script={"flow/a.1": [action("work", name="x")], "flow/a.1~1": [final("done")]},
    ),
    "limit_reached": Case(
        [
            agent("a", "work", config={"max_steps": 1}),
            work("b"),
            work("h", config={"why": "{{nodes.a.finish_reason}}"}),
        ],
        [("a", "b"), ("a", "h", {"on": "error"})],
        {"flow/a.1": [action("work", name="x")]},
    ),
    "approval": Case(
        [agent("a", PAY), work("side"), work("after", config={"x": "{{nodes.a.final_answer}}"})],
        script={"flow/a.1": [action("pay", amount=5), final("paid")]},
        decisions=[Approve()],
    ),
    "foreach": Case(
        [
            work("a", foreach=["x", "y", "z"], max_parallel=1, config={"x": "{{item}} {{index}}"}),
            work("b", tool="flaky", foreach=[1, 2], retry={"max_attempts": 3}, max_parallel=1),
            work("c", tool="broken", foreach="{{nodes.a.results}}", on_item_error="continue", max_parallel=1),
            agent("d", "work", foreach=[1, 2], max_parallel=1),
            work("e", config={"x": ["{{nodes.c.errors.0.message}}", "{{nodes.d.results.1.final_answer}}"]}),
        ],
        [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")],
        {"flow/d.1/0.0": [action("work", name="x"), final("one")], "flow/d.1/0.1": [final("two")]},
    ),
    "foreach_fails": Case(
        [
            work("a", tool="broken", foreach=["x", "y", "z"], max_parallel=2),
            work("h", config={"x": "{{nodes.a.output}}"}),
        ],
        [("a", "h", {"on": "error"})],
    ),
    "foreach_approval": Case(
        [work("a", tool="pay", foreach=[1, 2], approval="on_write", on_item_error="continue", max_parallel=1)],
        decisions=[Approve(), Deny("Not today.")],
    ),
    "node_approval": Case(
        [
            work("a", tool="pay", approval="on_write", config={"token": "{{env.TOKEN}}"}),
            work("b", tool="pay", approval="always"),
            work("h", config={"why": "{{nodes.b.error.message}}", "x": "{{nodes.a.did.name}}"}),
        ],
        [("a", "b"), ("b", "h", {"on": "error"})],
        keys={"env": ["TOKEN"]},
        decisions=[Edit({"name": "c", "token": "{{env.TOKEN}}"}), Deny("Not today.")],
    ),
    "waiting_yet": Case([agent("a", PAY), work("side")], script={"flow/a.1": [action("pay", amount=5)]}),
    "write_in_doubt": Case([work("a", tool="cut_off"), work("b", config={"x": "{{nodes.a}}"})], decisions=[Skip()]),
    "edge_that_asks": Case(
        [agent("a"), work("b"), work("c")],
        [("a", "b", ASK), ("a", "c")],
        {"flow/a.1": [final("Buy.")], "flow/a%3Eb.1": ["yes", final(True)]},
        {"model": "m"},
    ),
    "sub_workflow": Case(
        [{"id": "s", **INVOKE}, work("after", config={"x": "{{nodes.s.outputs.said}}"})],
        script={"flow/s.1/thinker.1": [action("work", name="x"), final("thought")]},
    ),
    "sub_workflow_of_an_agent": Case(
        [agent("a", {"tool": "invoke_workflow", "preset": INVOKE["config"]}, config={"total_token_budget": 90_000})],
        script={
            "flow/a.1": [action("invoke_workflow"), final("done")],
            "flow/a.1/invoke_workflow.4/thinker.1": [final("thought")],
        },
    ),
    "sub_workflow_that_cannot_start": Case(
        [{"id": "s", "tool": "invoke_workflow", "config": {"workflow": "{{nodes.a.file}}"}}, work("a")]
    ),
    "secret": Case(
        [
            work("a", config={"token": "Bearer {{env.TOKEN}}"}),
            agent("b", {"tool": "work", "preset": {"token": "{{env.TOKEN}}"}}),
        ],
        script={"flow/b.1": [action("work", name="x"), final("done")]},
        keys={"env": ["TOKEN"]},
    ),
    "cancelled": Case([agent("a", PAY), work("side")], script={"flow/a.1": [action("pay", amount=5)]}, stop="cancel"),
    "waits": Case(
        [
            work("a"),
            {"id": "moment", "tool": "wait", "config": {"seconds": 0.01}},
            {"id": "paid", "tool": "wait", "config": {"signal": "paid-{{nodes.a.round}}", "seconds": 86400}},
            {"id": "each", "tool": "wait", "config": {"signal": "s{{item}}"}, "foreach": [1, 2]},
            work("b", config={"x": ["{{nodes.paid.data}}", "{{nodes.each.results}}"]}),
        ],
        [("a", "moment"), ("a", "paid"), ("moment", "each"), ("paid", "b"), ("each", "b")],
        signals={"other": None, "s2": [2], "paid-1": {"amount": 5}, "s1": 1},
    ),
    "signal_not_sent_yet": Case(
        [{"id": "paid", "tool": "wait", "config": {"signal": "paid", "until": "2999-01-01T00:00:00Z"}}, work("side")],
        [],
    ),
    "paused_and_resumed": Case(
        [agent("a", PAY), work("side")],
        script={"flow/a.1": [action("pay", amount=5), final("paid")]},
        stop="pause",
        decisions=[Approve()],
    ),
}


def engine(store: RunStore, script: Mapping[str, Sequence[Any]]) -> Engine:
    """A host whose tools always do the same; `round` counts the calls of one run."""
    rounds: list[Any] = []

    async def do(args: dict[str, Any], context: ToolContext) -> Any:
        rounds.append(args)
        return {"did": args, "round": len(rounds), "file": "none.json"}

    async def broken(args: dict[str, Any], context: ToolContext) -> Any:
        return ToolResult(False, {"half": 1}, "the archive is closed")

    async def flaky(args: dict[str, Any], context: ToolContext) -> Any:
        rounds.append(args)
        if len(rounds) < 3:
            raise ToolError("nobody answers")
        return "at last"

    async def cut_off(args: dict[str, Any], context: ToolContext) -> Any:
        return ToolResult(False, error="the line went dead", metadata={"cut_off": True})

    registry = default_registry()
    for code, act, effect in (
        ("work", do, "read"),
        ("broken", broken, "read"),
        ("flaky", flaky, "read"),
        ("pay", do, "write"),
        ("cut_off", cut_off, "write"),
    ):
        registry.register(Tool(code, "Works.", ANY, act, effect=effect))
    secrets = Secrets(["TOKEN"], env={"TOKEN": "a-secret-of-this-host"})
    return Engine(registry, store=store, model=ScriptedModel(script), secrets=secrets)


async def run(name: str, journal: JsonlJournal) -> RunResult:
    """The run of a case, stopped if it is to be, with its decisions, one after another."""
    store = MemoryRunStore()
    store.journal = journal
    return await run_in(store, name, f"golden-{name}")


async def run_in(store: RunStore, name: str, run_id: str, **keys: Any) -> RunResult:
    """The same in a store, under another id, with other keys of the workflow."""
    case = CASES[name]
    host = engine(store, case.script)
    definition: dict[str, Any] = {"id": name, "nodes": list(case.nodes), **keys, **case.keys}
    if case.edges is not None:
        definition["edges"] = [{"from": a, "to": b, **(rest[0] if rest else {})} for a, b, *rest in case.edges]
    with tempfile.TemporaryDirectory() as base:
        (Path(base) / "sub.json").write_text(json.dumps(SUB))
        result = await host.run(load_workflow(definition, base=Path(base)), run_id=run_id)
        if case.stop:
            await getattr(host, case.stop)(run_id, by="ann")
            result = await host.resume(run_id, by="bob")
        for signal, data in case.signals.items():
            if host.send_signal(run_id, signal, data, by="bob"):
                result = await host.resume(run_id, by="bob")
        for decision in case.decisions:
            place = (result.waiting[0]["strand"], result.waiting[0]["n"])
            result = await host.resume(run_id, decisions={place: decision}, by="bob")
    return result


def told(output: Mapping[str, Any]) -> bytes:
    """What of a result stands beside its transcript."""
    keys = ("status", "path", "error", "waiting", "outputs")
    return orjson.dumps({key: output[key] for key in keys}, option=orjson.OPT_INDENT_2) + b"\n"


def main() -> None:
    TRANSCRIPTS.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        path = TRANSCRIPTS / f"{name}.jsonl"
        if not path.exists():
            result = asyncio.run(run(name, JsonlJournal(path)))
            path.with_suffix(".expected.json").write_bytes(told(result.as_json()))
            sys.stdout.write(f"{path.name}: {result.status}, {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
