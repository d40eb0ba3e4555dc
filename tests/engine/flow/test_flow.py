"""Workflow runs: by hand where the order matters, else through the Engine with a memory store and a scripted model."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Approve, Deny, Edit
from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.effects import Cancelled, Failed, Suspended, ToolReply, Visits
from agent_core.errors import DecisionError
from agent_core.models import ScriptedModel
from agent_core.rules import CURRENT, EARLIEST
from engine_shim import DefinitionError, Engine, MemoryRunStore, RunNotFound, RunResult, load_workflow
from engine_shim.cli.runs.summary import exit_code
from engine_shim.flow.flow import flow
from engine_shim.runs.loops import LOOPS
from support.by_hand import AT, action, final
from utools import Tool, default_registry

ANY = {"type": "object", "additionalProperties": True}
FIXTURES = Path(__file__).parents[3] / "fixtures/workflows"


def node(name: str, *waits_for: str, tool: str = "work") -> dict[str, Any]:
    return {
        "id": name,
        "tool": tool,
        "config": {"name": name, "takes": [f"{{{{nodes.{each}}}}}" for each in waits_for]},
    }


DIAMOND = [node("top"), node("left", "top"), node("right", "top"), node("join", "left", "right"), node("alone")]


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────

Pick = Callable[[list[Any]], int]


def by_hand(
    nodes: list[Any],
    replies: dict[str, Any] | None = None,
    *,
    pick: Pick = lambda _: 0,
    rules: Any = CURRENT,
    schema: Any = ANY,
    **more: Any,
) -> Any:
    """The outcome of a flow whose visits end in the order in which `pick` chooses among those under way."""
    tools = {"work": {"schema": schema, "effect": "read", "idempotent": False, "within": 30.0}}
    definition = {"id": "w", "nodes": nodes, **more}
    started = {"run": "r", "at": AT, "definition": definition, "external": {}, "env": {}, "tools": tools}
    loop = flow({**started, "rules": rules})
    visits = next(loop)
    assert isinstance(visits, Visits)
    under_way = list(visits.first)
    while under_way:
        visit = under_way.pop(pick(under_way))
        reply = (replies or {}).get(visit.node, ToolReply(True, f"{visit.node} done", None, AT, 0.0))
        under_way += visits.more(visit, reply, None)
    with pytest.raises(StopIteration) as ended:
        loop.send(())
    return ended.value.value


@pytest.mark.parametrize(("comparison", "status"), [(4, "failed"), (5, "completed")])
def test_a_node_is_called_with_a_multiple_of_a_cent_in_a_run_of_todays_rules(comparison: int, status: str) -> None:
    nodes = [node("first"), {"id": "pay", "tool": "work", "config": {"sum": 19.99}}]
    cent = {"type": "object", "properties": {"sum": {"multipleOf": 0.01}}}
    ended = by_hand(
        nodes, schema=cent, rules={**CURRENT, "comparison": comparison}, edges=[{"from": "first", "to": "pay"}]
    )
    assert ended.output["status"] == status


def test_a_quoted_key_orders_the_nodes_and_reaches_its_value() -> None:
    nodes = [
        {"id": "said", "tool": "work", "config": {"text": '1 EUR = {{nodes.rates["Exchange Rate"]["EUR.USD"]}} USD'}},
        node("rates"),
    ]
    replies = {"rates": ToolReply(True, {"Exchange Rate": {"EUR.USD": 1.2}}, None, AT, 0.0)}
    asked = dict[str, Any]()

    def pick(under_way: list[Any]) -> int:
        asked.update({visit.node: visit.call.args for visit in under_way})
        return 0

    by_hand(nodes, replies, pick=pick)
    assert list(asked) == ["rates", "said"]
    assert asked["said"] == {"text": "1 EUR = 1.2 USD"}


@pytest.mark.parametrize(("rules", "text"), [({}, ""), (EARLIEST, ""), (CURRENT, "1.2")], ids=["none", "1", "2"])
def test_a_run_of_old_rules_reads_a_quoted_key_as_a_name(rules: Any, text: str) -> None:
    asked = dict[str, Any]()

    def pick(under_way: list[Any]) -> int:
        asked.update({visit.node: visit.call.args for visit in under_way})
        return 0

    nodes = [node("rates"), {"id": "said", "tool": "work", "config": {"text": '{{nodes.rates.x["EUR"]?}} USD'}}]
    by_hand(nodes, {"rates": ToolReply(True, {"x": {"EUR": 1.2}}, None, AT, 0.0)}, pick=pick, rules=rules)
    assert asked["said"] == {"text": f"{text} USD"}


STOPS = (
    ToolReply(False, None, "it broke", AT, 0.0),
    Cancelled(AT),
    Suspended("in_doubt", ({"strand": "s", "n": 1, "tool": "work", "args": {}, "reason": "in_doubt"},)),
)


@given(st.data(), st.dictionaries(st.sampled_from([each["id"] for each in DIAMOND]), st.sampled_from(STOPS)))
def test_result_is_the_same_whichever_branch_ends_first(data: st.DataObject, stops: dict[str, Any]) -> None:
    def pick(under_way: list[Any]) -> int:
        return data.draw(st.integers(0, len(under_way) - 1))

    assert by_hand(DIAMOND, stops, pick=pick).output == by_hand(DIAMOND, stops).output


def test_path_is_in_the_order_of_depth_and_then_of_the_definition() -> None:
    assert by_hand(DIAMOND).output["path"] == ["top", "alone", "left", "right", "join"]


def test_outputs_of_all_nodes_are_there_and_those_declared_are_added() -> None:
    told = {"told": "{{nodes.a}}", "both": ["{{nodes.a}}", "{{run.id}}"]}
    assert by_hand([node("a")], outputs=told).output["outputs"] == {
        "a": "a done",
        "told": "a done",
        "both": ["a done", "r"],
    }


BROKEN = {
    "failed tool": (ToolReply(False, {"half": 1}, "it broke", AT, 0.0), "tool_error", "it broke", {"half": 1}),
    "no result in time": (Failed("timeout", "too slow", AT, 0.0), "tool_error", "too slow", None),
    "run that cannot start": (Failed("definition", "bad config", AT, 0.0), "definition", "bad config", None),
}


@pytest.mark.parametrize(("reply", "kind", "message", "output"), BROKEN.values(), ids=BROKEN)
def test_failing_node_fails_the_run_and_nothing_that_waits_for_it_starts(
    reply: Any, kind: str, message: str, output: Any
) -> None:
    result = by_hand(DIAMOND, {"left": reply}).output
    assert result["status"] == "failed"
    assert result["error"] == {"kind": kind, "message": message, "where": "left"}
    assert "join" not in result["path"]
    assert result["outputs"]["top"] == "top done"
    assert result["outputs"]["left"] == {"error": {"kind": kind, "message": message}, "output": output}


def test_other_branches_go_on_when_one_has_failed() -> None:
    nodes = [node("a"), node("b"), node("after_a", "a"), node("after_b", "b")]
    result = by_hand(nodes, {"a": ToolReply(False, None, "it broke", AT, 0.0)}).output
    assert (result["status"], result["path"]) == ("failed", ["a", "b", "after_b"])
    assert result["outputs"]["after_b"] == "after_b done"


def test_of_two_failures_the_first_on_the_path_is_told() -> None:
    broken = {name: ToolReply(False, None, f"{name} broke", AT, 0.0) for name in ("left", "right")}
    for pick in (lambda _: 0, lambda under_way: len(under_way) - 1):
        assert by_hand(DIAMOND, broken, pick=pick).output["error"]["where"] == "left"


def test_placeholder_that_leads_nowhere_at_run_time_fails_the_run_with_its_place() -> None:
    result = by_hand([node("a"), {"id": "b", "tool": "work", "config": {"x": ["{{nodes.a.text}}"]}}]).output
    assert (result["status"], result["path"]) == ("failed", ["a", "b"])
    assert result["error"]["kind"] == "definition"
    assert result["error"]["where"] == "nodes/1/config/x/0"
    assert result["error"]["message"].startswith("there is no 'text' in nodes.a; it is a plain value")


def test_output_that_leads_nowhere_fails_the_run_and_keeps_the_outputs_of_nodes() -> None:
    result = by_hand([node("a")], outputs={"o": "{{nodes.a.text}}"}).output
    assert (result["status"], result["error"]["where"]) == ("failed", "outputs/o")
    assert result["outputs"] == {"a": "a done"}


def test_cancelled_visit_cancels_the_run() -> None:
    result = by_hand(DIAMOND, {"top": Cancelled(AT)}).output
    assert (result["status"], result["path"]) == ("cancelled", ["top", "alone"])


def test_run_waits_only_when_nothing_else_can_go_on() -> None:
    entry = {"strand": "flow/top.1", "n": 1, "tool": "work", "args": {}, "reason": "in_doubt"}
    outcome = by_hand(DIAMOND, {"top": Suspended("in_doubt", (entry,))})
    assert (outcome.output["status"], outcome.output["waiting"]) == ("waiting", [entry])
    assert outcome.output["outputs"] == {"alone": "alone done"}


# ── through the engine ───────────────────────────────────────────────────────────────────────────


class Host:
    """An engine in memory, with tools that are told how to behave, and a count of what they did."""

    def __init__(self, replies: Any = (), **seconds: float) -> None:
        self.did: list[str] = []
        self.seconds = seconds
        tools = [Tool("work", "Works.", ANY, self._work, effect="read"), Tool("pay", "Pays.", ANY, self._pay)]
        registry = default_registry()
        for tool in tools:
            registry.register(tool)
        self.store = MemoryRunStore()
        self.engine = Engine(registry, store=self.store, model=ScriptedModel(replies))

    async def _work(self, args: dict[str, Any], context: Any) -> Any:
        name = args["name"]
        await asyncio.sleep(self.seconds.get(name, 0))
        if "fail" in args:
            raise ValueError("it broke")
        self.did.append(name)
        return {"did": name}

    async def _pay(self, args: dict[str, Any], context: Any) -> Any:
        self.did.append(f"paid {args['amount']}")
        return {"paid": args["amount"]}

    def run(self, nodes: list[Any], **options: Any) -> RunResult:
        return self.engine.run_sync(load_workflow({"id": "w", "nodes": nodes}), **options)

    def go_on(self, run_id: str, **options: Any) -> RunResult:
        return asyncio.run(self.engine.resume(run_id, **options))

    def records(self, run: str) -> dict[str, list[Any]]:
        """The run's records, times and what stems from them aside."""
        aside = {"at", "seconds", "closes", "output", "total_ms"}
        tape = self.store.journal.load(run)
        return {p: [{k: v for k, v in row.record().items() if k not in aside} for row in tape[p]] for p in sorted(tape)}


def agent(*tools: Any, **config: Any) -> dict[str, Any]:
    usual = {"model": "m", "max_steps": 3, "allowed_tools": list(tools), "prompt": "Go."}
    return {"tool": "agent_core", "config": {**usual, **config}}


PAY = {"tool": "pay", "approval": "on_write"}
PAYS = [action("pay", amount=5), final("Paid.")]


def test_parallel_branches_leave_the_same_journal_whichever_is_slower() -> None:
    hosts = [Host(left=0.02), Host(right=0.02, alone=0.01)]
    results = [host.run(DIAMOND, run_id="r") for host in hosts]
    assert hosts[0].did != hosts[1].did
    assert hosts[0].records("r") == hosts[1].records("r")
    assert results[0].path == results[1].path == ["top", "alone", "left", "right", "join"]


def test_branches_run_side_by_side() -> None:
    host = Host(first=0.03)
    host.run([node("first"), node("second")])
    assert host.did == ["second", "first"]


def test_finished_run_verifies_and_replays() -> None:
    host = Host([action("work", name="x"), final("Done.")])
    result = host.run([*DIAMOND, agent("work")])
    assert verify(host.store.journal, run_id=result.run_id, **result.journal).ok
    assert replay(host.store.journal, run_id=result.run_id, loops=LOOPS).identical


def test_run_in_which_a_slow_branch_failed_replays_and_gives_its_result_again() -> None:
    host = Host(slow=0.02)
    slow = {"id": "slow", "tool": "work", "config": {"name": "slow", "fail": True}}
    result = host.run([slow, node("b"), node("after_b", "b")])
    assert (result.status, result.path) == ("failed", ["slow", "b", "after_b"])
    assert replay(host.store.journal, run_id=result.run_id, loops=LOOPS).identical
    assert host.go_on(result.run_id) == result


def test_answer_of_an_agent_is_where_callers_read_it() -> None:
    result = Host([final("Forty-two.")]).run([agent(), node("after", "agent_core.final_answer")])
    assert result.outputs["agent_core"]["final_answer"] == "Forty-two."
    assert result.outputs["agent_core"]["run_id"] == result.run_id
    assert result.outputs["agent_core"]["journal"].keys() == {"strand", "head", "count"}
    assert (result.status, result.error, result.waiting) == ("completed", None, [])


ENDINGS: dict[str, tuple[Sequence[Any], dict[str, Any], str, int]] = {
    "final": ([final()], {}, "final", 0),
    "max_steps": ([action("work", name="x")] * 3, {"max_steps": 2}, "max_steps", 4),
    "max_tool_calls": ([action("work", name="x")] * 3, {"max_tool_calls": 1}, "max_tool_calls", 4),
    "token_budget": ([action("work", name="x"), final()], {"total_token_budget": 1}, "token_budget", 4),
    "protocol_error": (["what?", "what?"], {}, "protocol_error", 1),
    "invalid_action": ([action("echo", txt=1)] * 2, {"allowed_tools": ["echo"]}, "invalid_action", 3),
    "policy_denied": ([action("echo", text="x")] * 2, {}, "policy_denied", 3),
    "tool_error": ([action("work", nam="x")] * 2, {}, "tool_error", 1),
    "model_error": ([], {}, "model_error", 1),
    "content_filter": ([{"content": "", "finish_reason": "content_filter"}], {}, "content_filter", 1),
}


@pytest.mark.parametrize(("replies", "config", "reason", "code"), ENDINGS.values(), ids=ENDINGS)
def test_every_ending_of_an_agent_has_its_status_and_exit_code_and_keeps_the_outputs(
    replies: Sequence[Any], config: dict[str, Any], reason: str, code: int
) -> None:
    result = Host(replies).run([node("before"), agent("work", **config), node("after", "agent_core")])
    output = result.outputs["agent_core"]
    assert (output["finish_reason"], exit_code(result)) == (reason, code)
    assert output.keys() >= {"trace", "used_tools", "usage", "messages_json", "final_answer", "error"}
    assert result.outputs["before"] == {"did": "before"}
    assert result.status == ("completed" if reason == "final" else "failed")
    assert (result.error or {}).get("kind", "final") == reason
    assert ("after" in result.path) is (reason == "final")


def test_error_of_an_agent_is_said_once() -> None:
    result = Host([action("echo", text="x")] * 2).run([agent()])
    assert result.error is not None
    assert result.error["message"] == result.outputs["agent_core"]["error"]["message"]


DECIDED = {
    "approve": (Approve(), ["paid 5"]),
    "edit": (Edit({"amount": 6}), ["paid 6"]),
    "deny": (Deny("Too much."), []),
}


@pytest.mark.parametrize(("decision", "did"), DECIDED.values(), ids=DECIDED)
def test_waiting_agent_makes_the_run_wait_until_a_person_decides(decision: Any, did: list[str]) -> None:
    host = Host(PAYS)
    waits = host.run([agent(PAY), node("after", "agent_core")])
    assert (waits.status, exit_code(waits), host.did) == ("waiting", 6, [])
    call = {"strand": "flow/agent_core.1", "n": 4, "tool": "pay", "args": {"amount": 5}, "reason": "awaiting_approval"}
    assert waits.waiting == [{**call, "origins": {"/amount": "model"}}]
    assert host.go_on(waits.run_id).status == "waiting"
    result = host.go_on(waits.run_id, decisions={("flow/agent_core.1", 4): decision})
    assert (result.status, result.path) == ("completed", ["agent_core", "after"])
    assert host.did == [*did, "after"]


def test_other_branches_go_on_while_one_waits() -> None:
    host = Host(PAYS)
    waits = host.run([agent(PAY), node("a"), node("b", "a")])
    assert (waits.status, sorted(host.did)) == ("waiting", ["a", "b"])
    host.go_on(waits.run_id, decisions={("flow/agent_core.1", 4): Approve()})
    assert sorted(host.did) == ["a", "b", "paid 5"]


def test_two_agents_wait_and_are_decided_one_after_the_other() -> None:
    host = Host(PAYS)
    waits = host.run([{"id": "one", **agent(PAY)}, {"id": "two", **agent(PAY)}])
    places = [(entry["strand"], entry["n"]) for entry in waits.waiting]
    assert places == [("flow/one.1", 4), ("flow/two.1", 4)]
    assert host.go_on(waits.run_id, decisions={places[1]: Approve()}).waiting == waits.waiting[:1]
    assert host.go_on(waits.run_id, decisions={places[0]: Approve()}).status == "completed"


def test_decision_that_fits_nothing_is_refused() -> None:
    host = Host(PAYS)
    waits = host.run([agent(PAY)])
    with pytest.raises(DecisionError, match=r"waiting: flow/agent_core\.1:4"):
        host.go_on(waits.run_id, decisions={("flow/agent_core.1", 3): Approve()})


def test_agent_inside_an_agent_answers_through_its_parent() -> None:
    engine = Engine(store=MemoryRunStore())
    result = engine.run_sync(load_workflow(FIXTURES / "nested.yaml"))
    assert result.outputs["answer"] == "The expert says 5."
    assert "flow/agent_core.1/agent_core.4" in engine.store.journal.load(result.run_id)


def test_runs_side_by_side_in_one_engine_do_not_meet() -> None:
    host = Host(lambda messages: final(messages[-1]["content"]))
    nodes = [agent(prompt="{{external.who}}"), node("after", "agent_core.final_answer")]
    workflow = load_workflow({"id": "w", "nodes": nodes})

    async def both() -> list[RunResult]:
        return list(await asyncio.gather(*(host.engine.run(workflow, external={"who": f"run {i}"}) for i in range(5))))

    results = asyncio.run(both())
    assert [result.outputs["agent_core"]["final_answer"] for result in results] == [f"run {i}" for i in range(5)]
    assert all(verify(host.store.journal, run_id=result.run_id).ok for result in results)


def test_cancelled_caller_cancels_the_run_and_the_store_says_so() -> None:
    host = Host(slow=5, slower=9)
    nodes = [node("slow"), node("fast"), node("slower", "fast")]

    async def cancelled() -> None:
        run = asyncio.create_task(host.engine.run(load_workflow({"id": "w", "nodes": nodes}), run_id="r"))
        await asyncio.sleep(0.04)
        run.cancel()
        await run

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert host.records("r")["flow"][-1]["status"] == "cancelled"
    assert [entry.status for entry in host.store.entries()] == ["cancelled"]
    again = host.go_on("r")
    assert (again.status, again.path) == ("cancelled", ["slow", "fast", "slower"])
    assert replay(host.store.journal, run_id="r", loops=LOOPS).identical


# ── what the store knows ─────────────────────────────────────────────────────────────────────────


def test_finished_run_gives_its_result_again_without_acting() -> None:
    host = Host([action("work", name="x"), final()])
    workflow = load_workflow({"id": "w", "nodes": [node("a"), agent("work")]})
    first = host.engine.run_sync(workflow, run_id="r")
    did = list(host.did)
    assert host.go_on("r") == host.engine.run_sync(workflow, run_id="r") == first
    assert host.did == did


OTHERS = {
    "definition": ({"id": "w", "nodes": [node("b")]}, {}),
    "external": ({"id": "w", "nodes": [node("a")]}, {"x": 1}),
}


@pytest.mark.parametrize(("definition", "external"), OTHERS.values(), ids=OTHERS)
def test_run_goes_on_only_with_what_it_began_with(definition: Any, external: Any, request: Any) -> None:
    host = Host()
    host.run([node("a")], run_id="r")
    with pytest.raises(DefinitionError, match=f"began with another {request.node.callspec.id}"):
        host.engine.run_sync(load_workflow(definition), external=external, run_id="r")


def test_unknown_run_cannot_go_on() -> None:
    with pytest.raises(RunNotFound, match="no run 'nope'"):
        Host().go_on("nope")


def test_index_follows_each_run_newest_first() -> None:
    host = Host(PAYS)
    waits = host.run([agent(PAY)], run_id="r1")
    host.run([node("a")], run_id="r2")
    host.run([{"id": "b", "tool": "work"}], run_id="r3")
    assert [(e.run, e.status) for e in host.store.entries()] == [
        ("r3", "failed"),
        ("r2", "completed"),
        ("r1", "waiting"),
    ]
    host.go_on(waits.run_id, decisions={("flow/agent_core.1", 4): Deny()})
    assert host.store.entry("r1").status == "completed"  # type: ignore[union-attr]


def test_model_that_cannot_be_asked_is_told_before_anything_is_written() -> None:
    engine = Engine(store=MemoryRunStore())
    with pytest.raises(DefinitionError, match=r"nodes/0/config/model: no such provider.*got 'opeani:gpt'"):
        engine.run_sync(load_workflow({"id": "w", "nodes": [agent(model="opeani:gpt")]}))
    assert engine.store.entries() == []


def test_tape_of_a_run_names_its_workflow() -> None:
    host = Host()
    result = host.run([node("a")])
    assert list(host.engine.workflow(result.run_id).nodes) == ["a"]
