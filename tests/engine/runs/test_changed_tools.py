"""A tool that has changed since its call was shown: nothing is spent on an approval of another call."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from agent_core import Approve, DecisionError, Deny, Edit, Retry, replay, run_agent, verify
from agent_core.journal.memory import MemoryJournal
from agent_core.models import ScriptedModel
from engine_shim import Engine, MemoryRunStore, RunResult
from engine_shim.definition.errors import DefinitionErrors
from engine_shim.runs.loops import LOOPS
from support.by_hand import action, final
from utools import Tool, ToolRegistry

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
OLD: Mapping[str, Any] = {"to": TEXT, "amount": NUMBER}
NEW: Mapping[str, Any] = {"account": TEXT, "amount": NUMBER}
CALL = {"to": "ann", "amount": 5}
CHANGED = r"nothing was decided. The tool 'pay' has changed.*to is gone; account is new"
PLAN = {"type": "plan", "steps": [{"step": 1, "description": "Pay.", "tool": "pay", "parameters": CALL}]}


class Host:
    """A host whose tool `pay` has these arguments, or is gone."""

    def __init__(self) -> None:
        self.paid: list[Any] = []
        self.store, self.journal = MemoryRunStore(), MemoryJournal()

    def tools(self, properties: Mapping[str, Any] | None) -> ToolRegistry:
        def pay(args: Any, context: Any) -> str:
            self.paid.append(args)
            return "paid"

        keys = {"properties": properties, "required": sorted(properties or ()), "additionalProperties": False}
        other = Tool("look", "Looks.", {"type": "object"}, lambda args, context: "seen", effect="read")
        tools = [other] if properties is None else [other, Tool("pay", "Pays.", {"type": "object", **keys}, pay)]
        return ToolRegistry(tools)

    def engine(self, properties: Mapping[str, Any] | None, replies: Any = ()) -> Engine:
        return Engine(self.tools(properties), store=self.store, model=ScriptedModel(list(replies)))

    def decide(self, properties: Mapping[str, Any] | None, decision: Any, replies: Any = ()) -> RunResult:
        (call,) = self.engine(OLD).result("r").waiting  # type: ignore[union-attr]
        decisions = {(call["strand"], call["n"]): decision}
        result = asyncio.run(self.engine(properties, replies).resume("r", decisions=decisions))
        assert verify(self.store.journal, run_id="r", **result.journal).ok
        assert replay(self.store.journal, run_id="r", loops=LOOPS).identical
        return result


AGENT: dict[str, Any] = {"model": "m", "max_steps": 4, "prompt": "Pay."}
ASKING: dict[str, Any] = {**AGENT, "allowed_tools": [{"tool": "pay", "approval": "always"}]}
REPLIES = [action("pay", **CALL), final("Done.")]
KINDS: dict[str, Any] = {
    "agent": {"tool": "agent_core", "config": ASKING},
    "plain node": {"id": "p", "tool": "pay", "config": CALL, "approval": "always"},
    "items": {
        "id": "p",
        "tool": "pay",
        "config": {"to": "{{item}}", "amount": 5},
        "approval": "always",
        "foreach": ["ann"],
    },
}


@pytest.fixture
def host() -> Host:
    return Host()


def begin(host: Host, node: Any, replies: Any = REPLIES) -> None:
    waits = host.engine(OLD, replies).run_sync({"id": "w", "nodes": [node]}, run_id="r")
    assert waits.status == "waiting"


@pytest.mark.parametrize("node", KINDS.values(), ids=KINDS)
def test_approval_of_a_call_whose_tool_has_changed_is_refused_and_not_spent(host: Host, node: Any) -> None:
    begin(host, node)
    before = host.store.journal.load("r")
    with pytest.raises(
        DecisionError, match=r"nothing was decided. The tool 'pay' has changed.*to is gone; account is new"
    ):
        host.decide(NEW, Approve())
    assert (host.store.journal.load("r"), host.paid) == (before, [])
    assert host.decide(OLD, Approve(), REPLIES).status == "completed"
    assert host.paid == [CALL]


@pytest.mark.sampled
@pytest.mark.parametrize("node", KINDS.values(), ids=KINDS)
def test_call_is_edited_to_fit_the_tool_as_it_is_now(host: Host, node: Any) -> None:
    begin(host, node)
    with pytest.raises(DecisionError, match="account"):
        host.decide(NEW, Edit(CALL))
    fitting = {"account": "DE1", "amount": 5}
    assert host.decide(NEW, Edit(fitting), REPLIES).status == "completed"
    assert host.paid == [fitting]


@pytest.mark.parametrize("properties", [NEW, None], ids=["changed", "gone"])
@pytest.mark.parametrize("node", KINDS.values(), ids=KINDS)
def test_denial_always_stands(host: Host, node: Any, properties: Mapping[str, Any] | None) -> None:
    begin(host, node)
    result = host.decide(properties, Deny("no"), REPLIES)
    assert (host.paid, result.status) == ([], "completed" if node["tool"] == "agent_core" else "failed")


def test_other_rule_or_word_of_an_argument_is_a_change_and_one_that_the_host_sets_is_none(host: Host) -> None:
    begin(host, KINDS["agent"])
    for other in (
        {**OLD, "amount": {**NUMBER, "maximum": 3}},
        {**OLD, "amount": {**NUMBER, "description": "in cents"}},
    ):
        with pytest.raises(DecisionError, match="amount is another"):
            host.decide(other, Approve())
    with_own = {**OLD, "root": {"type": "string", "default": "x", "x-author": True}}
    keys = {"properties": with_own, "required": sorted(OLD), "additionalProperties": False}
    paid = Tool("pay", "Pays.", {"type": "object", **keys}, lambda args, context: host.paid.append(args))
    engine = Engine(ToolRegistry([paid]), store=host.store, model=ScriptedModel(REPLIES))
    (call,) = engine.result("r").waiting  # type: ignore[union-attr]
    done = asyncio.run(engine.resume("r", decisions={(call["strand"], call["n"]): Approve()}))
    assert (done.status, len(host.paid)) == ("completed", 1)


def test_plan_whose_steps_call_a_changed_tool_is_not_approved(host: Host) -> None:
    config = {**AGENT, "mode": "plan", "plan": {"confirm": True}, "allowed_tools": ["pay", "look"]}
    replies = [json.dumps(PLAN), final("Done.")]
    begin(host, {"tool": "agent_core", "config": config}, replies)
    with pytest.raises(DecisionError, match="The tool 'pay' has changed"):
        host.decide(NEW, Approve())
    assert host.decide(OLD, Approve(), replies).status == "completed"
    assert host.paid == [CALL]


def test_run_whose_recorded_tool_is_gone_does_not_go_on_when_it_is_submitted_again(host: Host) -> None:
    flow = {"id": "w", "nodes": [{"tool": "agent_core", "config": {**AGENT, "allowed_tools": ["look", "p*"]}}]}
    tools = host.tools(OLD)
    tools.register(Tool("peek", "Peeks.", {"type": "object"}, lambda args, context: "seen", effect="read"))
    kept = [tools.get("look"), tools.get("peek")]

    def engine(tools: Any) -> Engine:
        return Engine(ToolRegistry(tools), store=host.store, model=ScriptedModel([{"content": None}, *REPLIES]))

    async def begin() -> None:
        first = engine(tools.all())
        await first.run(flow, run_id="r", on_event=lambda event: first.release())

    asyncio.run(begin())
    assert host.store.entry("r").status == "pending"  # type: ignore[union-attr]
    with pytest.raises(DefinitionErrors, match="this host has no tool 'pay', which the run needs"):
        asyncio.run(engine(kept).run(flow, run_id="r"))


async def test_bare_agent_refuses_it_in_the_same_words(host: Host) -> None:
    async def ask(properties: Mapping[str, Any] | None, decision: Any = None) -> Any:
        decisions = None if decision is None else {key: decision}
        model = ScriptedModel(REPLIES)
        tools = host.tools(properties)
        return await run_agent(
            ASKING, registry=tools, model=model, journal=host.journal, run_id="r", decisions=decisions
        )

    (call,) = (await ask(OLD)).waiting
    key = call["strand"], call["n"]
    with pytest.raises(DecisionError, match="The tool 'pay' has changed"):
        await ask(NEW, Approve())
    with pytest.raises(DecisionError, match="waits for approve, deny or edit"):
        await ask(OLD, Retry())
    assert host.paid == []
    assert (await ask(None, Deny("no"))).finish_reason == "final"
