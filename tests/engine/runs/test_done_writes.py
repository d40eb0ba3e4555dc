"""A write in doubt that did happen is told its result, which the rest of the run reads as the tool's own."""

import asyncio
from typing import Any

import pytest

from agent_core import Approve, Done, Skip
from agent_core.audit.verify import verify
from agent_core.decisions import decode_decision, encode_decision
from agent_core.errors import DecisionError
from agent_core.models import ScriptedModel
from agent_core.run.secrets import Secrets
from engine_shim import Engine, MemoryRunStore, RunResult, load_workflow
from support.by_hand import action, final
from utools import Tool, ToolContext, ToolResult, default_registry

GIVES = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
ANY = {"type": "object", "additionalProperties": True}
PAY = ("flow/pay.1", 1)


class World:
    """A host whose tool `pay` is cut off in the midst of its write."""

    def __init__(self, replies: Any = (), secrets: Secrets | None = None) -> None:
        self.made = 0

        async def pay(args: Any, context: ToolContext) -> ToolResult:
            self.made += 1
            return ToolResult(False, error="the line went dead", metadata={"cut_off": True})

        registry = default_registry()
        registry.register(Tool("pay", "Pays.", ANY, pay, output_schema=GIVES))
        self.store = MemoryRunStore()
        self.engine = Engine(registry, store=self.store, model=ScriptedModel(replies), secrets=secrets)

    def run(self, *nodes: Any, **keys: Any) -> RunResult:
        workflow = load_workflow({"id": "w", "nodes": list(nodes), **keys})
        return asyncio.run(self.engine.run(workflow, run_id="r"))

    def decide(self, decision: Any, at: tuple[str, int] = PAY) -> RunResult:
        return asyncio.run(self.engine.resume("r", decisions={at: decision}, by="ann"))

    def last(self, strand: str) -> Any:
        return self.store.journal.load("r")[strand][-1].record()


NOTE = {"id": "note", "tool": "echo", "config": {"text": "order {{nodes.pay.order}}"}}


def test_result_is_recorded_with_who_said_it_and_read_by_later_nodes() -> None:
    world = World()
    assert world.run({"tool": "pay"}, NOTE).waiting[0]["reason"] == "in_doubt"
    ended = world.decide(Done({"order": 17}))
    assert (ended.status, ended.outputs, world.made) == ("completed", {"pay": {"order": 17}, "note": "order 17"}, 1)
    record = world.last("flow/pay.1")
    assert (record["decision"], record["output"], record["by"]) == ("done", {"order": 17}, "ann")
    assert verify(world.store.journal, run_id="r", **ended.journal).ok


def test_agent_reads_the_result_as_its_observation() -> None:
    world = World([action("pay"), final("Order 17.")])
    config = {"model": "m", "max_steps": 3, "prompt": "Pay.", "allowed_tools": ["pay"]}
    (call,) = world.run({"tool": "agent_core", "config": config}).waiting
    ended = world.decide(Done({"order": 17}), (call["strand"], call["n"]))
    (step,) = [each for each in ended.outputs["agent_core"]["trace"] if each["action"]]
    assert (ended.status, step["observation"].replace(" ", "")) == ("completed", '{"order":17}')


@pytest.mark.parametrize(
    ("output", "why"),
    [({"order": "17"}, "pay gives no such result: /order"), (None, "pay gives no such result"), (object(), "not JSON")],
)
def test_result_that_the_tool_does_not_give_is_refused_and_the_write_waits_on(output: Any, why: str) -> None:
    world = World()
    world.run({"tool": "pay"})
    with pytest.raises(DecisionError, match=why):
        world.decide(Done(output))
    assert world.last("flow/pay.1")["kind"] == "waiting"
    assert world.decide(Done({"order": 1})).status == "completed"


def test_secret_in_a_result_is_not_recorded() -> None:
    world = World(secrets=Secrets(["TOKEN"], env={"TOKEN": "s3cr3t-s3cr3t-s3cr3t"}))
    world.run({"tool": "pay"})
    ended = world.decide(Done({"order": 1, "note": "by s3cr3t-s3cr3t-s3cr3t"}))
    assert ended.outputs["pay"]["note"] == "by [redacted:TOKEN]"


def test_call_that_waits_for_approval_cannot_be_done() -> None:
    world = World()
    world.run({"tool": "pay", "approval": "always"})
    with pytest.raises(DecisionError, match=r"flow/pay\.1:0 waits for approve, deny or edit, not done"):
        world.decide(Done({"order": 1}), ("flow/pay.1", 0))
    world.decide(Approve(), ("flow/pay.1", 0))
    with pytest.raises(DecisionError, match="waits for retry, skip, fail or done, not approve"):
        world.decide(Approve(), ("flow/pay.1", 3))


def test_skipped_write_can_be_branched_on() -> None:
    world = World()
    edges = [{"from": "pay", "to": "skipped", "when": "output.skipped"}, {"from": "pay", "to": "note"}]
    world.run({"tool": "pay"}, NOTE, {"id": "skipped", "tool": "echo", "config": {"text": "none"}}, edges=edges)
    ended = world.decide(Skip())
    assert (ended.status, ended.path) == ("completed", ["pay", "skipped"])


@pytest.mark.parametrize("output", [None, 1, "x", [1], {"a": {"b": None}}])
def test_decision_is_written_and_read(output: Any) -> None:
    record = encode_decision(Done(output))
    assert record == {"decision": "done", "output": output}
    assert decode_decision(record) == Done(output)
