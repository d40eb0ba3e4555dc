"""Plain nodes that a person has to let through: what waits, what each decision does, what the journal tells of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, Deny, Edit
from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.errors import DecisionError
from agent_core.run.secrets import Secrets
from engine_shim import DefinitionError, Engine, MemoryRunStore, RunResult, load_workflow
from engine_shim.runs.loops import LOOPS
from utools import Tool, ToolContext, ToolError, default_registry

SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}, "key": {"type": "string", "maxLength": 9}}}


class World:
    """An engine whose tools `pay` (a write), `look` (a read) and `flaky` note their arguments."""

    def __init__(self, definition: Any, base: Path = Path(), secrets: Secrets | None = None) -> None:
        self.made: list[Any] = []
        self.store = MemoryRunStore()
        self.fails = 0
        tools = [Tool("pay", "Pays.", SCHEMA, self._note), Tool("look", "Looks.", SCHEMA, self._note, effect="read")]
        tools.append(Tool("flaky", "Fails first.", SCHEMA, self._fail_first, effect="read"))
        registry = default_registry(base)
        for tool in tools:
            registry.register(tool)
        self.engine = Engine(registry, store=self.store, secrets=secrets)
        self.workflow = load_workflow(definition, base=base)

    def _note(self, args: Any, context: ToolContext) -> Any:
        self.made.append(args)
        return {"paid": args.get("amount")}

    def _fail_first(self, args: Any, context: ToolContext) -> Any:
        self.fails += 1
        if self.fails == 1:
            raise ToolError("not yet")
        return self._note(args, context)

    def run(self) -> RunResult:
        return asyncio.run(self.engine.run(self.workflow, run_id="r"))

    def decide(self, decision: Any, at: tuple[str, int] = ("flow/pay.1", 0)) -> RunResult:
        return asyncio.run(self.engine.resume("r", decisions={at: decision}, by="ann"))

    def records(self, strand: str) -> list[Any]:
        return [row.record() for row in self.store.journal.load("r").get(strand, ())]

    def check(self) -> None:
        """The run is whole, and replays to the same."""
        assert verify(self.store.journal, run_id="r").ok
        assert replay(self.store.journal, run_id="r", loops=LOOPS).identical


def pay(**keys: Any) -> dict[str, Any]:
    return {"tool": "pay", "config": {"amount": 5}, **keys}


def definition(*nodes: Any, **keys: Any) -> dict[str, Any]:
    return {"id": "w", "nodes": list(nodes), **keys}


def test_a_call_waits_before_it_is_made_and_is_made_once_it_is_approved() -> None:
    world = World(definition(pay(approval="always"), {"tool": "echo", "config": {"text": "beside"}}))
    waits = world.run()
    assert (waits.status, world.made) == ("waiting", [])
    assert waits.waiting == [
        {"strand": "flow/pay.1", "n": 0, "tool": "pay", "args": {"amount": 5}, "reason": "awaiting_approval"}
    ]
    done = world.decide(Approve())
    assert (done.status, world.made, done.outputs["pay"]) == ("completed", [{"amount": 5}], {"paid": 5})
    assert [record["kind"] for record in world.records("flow/pay.1")] == ["waiting", "resolved", "asked", "answered"]
    world.check()


def test_a_refused_call_is_a_failure_that_an_edge_can_handle() -> None:
    sorry = {"id": "sorry", "tool": "echo", "config": {"text": "{{nodes.pay.error.kind}}: {{nodes.pay.error.message}}"}}
    edges = [{"from": "pay", "to": "sorry", "on": "error"}]
    world = World(definition(pay(approval="always", retry={"max_attempts": 3}), sorry, edges=edges))
    world.run()
    done = world.decide(Deny("too dear"))
    assert (done.status, world.made) == ("completed", [])
    assert done.outputs["sorry"] == "policy_denied: a person refused the call of pay: too dear"
    world.check()


def test_a_refusal_that_nothing_handles_fails_the_run_when_it_was_given() -> None:
    world = World(definition(pay(approval="always")))
    world.run()
    done = world.decide(Deny())
    assert done.error == {"kind": "policy_denied", "message": "a person refused the call of pay", "where": "pay"}
    assert world.records("flow")[-1]["at"] == world.records("flow/pay.1")[1]["at"]
    world.check()


def test_edited_arguments_are_those_of_the_call() -> None:
    world = World(definition(pay(approval="always")))
    world.run()
    with pytest.raises(DecisionError, match="/amount: expected an integer, you sent"):
        world.decide(Edit({"amount": "six"}))
    done = world.decide(Edit({"amount": 6}))
    assert (done.outputs["pay"], world.made) == ({"paid": 6}, [{"amount": 6}])
    assert world.records("flow/pay.1")[2]["args"] == {"amount": 6}
    world.check()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    monkeypatch.setenv("PAY_KEY", "12345678")
    return Secrets(["PAY_KEY"])


def test_an_edit_keeps_a_secret_where_it_was_and_fills_none_in_elsewhere(key: Secrets) -> None:
    node = pay(approval="always", config={"amount": 5, "key": "{{env.PAY_KEY}}"})
    world = World(definition(node, env=["PAY_KEY"]), secrets=key)
    assert world.run().waiting[0]["args"] == {"amount": 5, "key": "{{env.PAY_KEY}}"}
    world.decide(Edit({"amount": 6, "key": "{{env.PAY_KEY}}"}))
    assert world.made == [{"amount": 6, "key": "12345678"}]
    replaced = World(definition(node, env=["PAY_KEY"]), secrets=key)
    replaced.run()
    replaced.decide(Edit({"amount": 6, "key": "mine"}))
    assert replaced.made == [{"amount": 6, "key": "mine"}]
    other = World(definition(pay(approval="always"), env=["PAY_KEY"]), secrets=key)
    other.run()
    with pytest.raises(DecisionError, match="/key"):
        other.decide(Edit({"key": "{{env.PAY_KEY}}"}))


WAITS = {
    ("pay", "always"): True, ("pay", "on_write"): True, ("pay", "never"): False,
    ("look", "always"): True, ("look", "on_write"): False, ("look", "never"): False,
}  # fmt: skip


@pytest.mark.parametrize(("tool", "approval", "waits"), [(*key, waits) for key, waits in WAITS.items()])
def test_approval_says_which_calls_wait(tool: str, approval: str, waits: bool) -> None:
    result = World(definition({"tool": tool, "config": {"amount": 1}, "approval": approval})).run()
    assert (result.status == "waiting") is waits


def test_a_call_that_failed_is_tried_again_without_a_second_word() -> None:
    world = World(definition({"tool": "flaky", "config": {}, "approval": "always", "retry": {"max_attempts": 2}}))
    world.run()
    assert world.decide(Approve(), ("flow/flaky.1", 0)).status == "completed"
    world.check()


def test_a_run_of_its_own_is_no_call_that_could_wait() -> None:
    agent = {"tool": "agent_core", "approval": "always", "config": {"model": "m", "max_steps": 1, "prompt": "Go."}}
    with pytest.raises(DefinitionError, match="nodes/0/approval: agent_core is a run of its own"):
        World(definition(agent)).run()


def test_a_call_that_waits_is_withdrawn_with_the_run() -> None:
    world = World(definition(pay(approval="always")))
    world.run()
    asyncio.run(world.engine.cancel("r"))
    assert (world.store.entry("r").status, world.made) == ("cancelled", [])  # type: ignore[union-attr]
    world.check()


def test_a_fork_before_the_call_asks_for_the_word_again() -> None:
    world = World(definition({"tool": "look", "config": {}, "approval": "always"}))
    world.run()
    world.decide(Approve(), ("flow/look.1", 0))
    forked = asyncio.run(world.engine.fork("r", ("flow/look.1", 2)))
    assert (forked.status, forked.waiting[0]["n"]) == ("waiting", 0)
