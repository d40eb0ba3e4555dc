"""Runs that are paused, cancelled, forked and queued, and workflows that run others."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve
from agent_core.audit.verify import verify
from agent_core.errors import DecisionError
from agent_core.journal.path import CONTROL
from agent_core.journal.signature import Keys
from agent_core.run.control import append_control
from engine_shim import DefinitionError, RunNotFound, load_workflow
from engine_shim.definition.validate import validate
from engine_shim.errors import RunBusy, WritesRepeated
from support.by_hand import action, final
from support.gated import Host, agent, node, played, until

KEY = ("AGENT_CORE_JOURNAL_KEYS", "k1:the-key-of-this-host")

# ── pause ────────────────────────────────────────────────────────────────────────────────────────


def test_pause_lets_what_is_under_way_answer_and_begins_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*KEY)

    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), node("b", "a"), node("c", "b")])
        await until(lambda: host.store.leases.holder("r"))
        pausing = asyncio.create_task(host.other.pause("r", by="ann"))
        await host.noticed()
        host.gates["a"].set()
        result = await run
        assert await pausing == "paused"
        assert (result.status, result.outputs, result.waiting) == ("paused", {"a": {"did": "a"}}, [])
        assert host.did == ["a"]
        answered_after_the_pause = verify(host.store.journal, run_id="r", keys=Keys.read(KEY[1]), **result.journal)
        assert (answered_after_the_pause.ok, answered_after_the_pause.why) == (True, None)
        ended = await host.other.resume("r", by="bob")
        assert (ended.status, host.did) == ("completed", ["a", "b", "c"])
        assert host.sound(ended)
        said = [row.record() for row in host.store.journal.load("r")[CONTROL]]
        assert [(word["decision"], word["by"]) for word in said] == [("pause", "ann"), ("resume", "bob")]

    played(play)


def test_agent_is_paused_between_its_steps_and_goes_on_with_what_it_had() -> None:
    async def play() -> None:
        host = Host([action("work", name="x"), action("work", name="y"), final("done")])
        host.gate("x")
        run = host.start([agent()])
        await until(lambda: "flow/agent_core.1" in host.store.journal.load("r"))
        pausing = asyncio.create_task(host.other.pause("r"))
        await host.noticed()
        host.gates["x"].set()
        result = await run
        await pausing
        output = result.outputs["agent_core"]
        assert (result.status, output["finish_reason"], output["usage"]["tool_calls"]) == ("paused", "paused", 1)
        ended = await host.engine.resume("r")
        assert ended.outputs["agent_core"]["final_answer"] == "done"
        assert host.did == ["x", "y"]
        assert host.sound(ended)

    played(play)


def test_engine_that_lets_go_of_its_runs_begins_nothing_more_in_them_and_no_record_says_so() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), node("b", "a")])
        await until(lambda: host.store.leases.holder("r"))
        host.engine.release()
        host.gates["a"].set()
        await run
        assert (host.engine.status("r"), host.did) == ("pending", ["a"])
        assert CONTROL not in host.store.journal.load("r")
        assert ((await host.other.resume("r")).status, host.did) == ("completed", ["a", "b"])

    played(play)


def test_run_that_nobody_drives_is_paused_by_a_word() -> None:
    async def play() -> None:
        host = Host([action("pay", amount=5), final("done")])
        waits = await host.start([agent()])
        assert await host.engine.pause("r") == "paused"
        place = (waits.waiting[0]["strand"], waits.waiting[0]["n"])
        assert (await host.engine.resume("r", decisions={place: Approve()})).status == "completed"

    played(play)


# ── cancel ───────────────────────────────────────────────────────────────────────────────────────


def test_cancel_aborts_what_is_under_way_and_ends_the_run_for_good() -> None:
    async def play() -> None:
        host = Host()
        host.gate("b", "c")
        run = host.start([node("a"), node("b", "a"), node("c", "a"), node("d", "b")])
        await until(lambda: host.did == ["a"])
        assert await host.other.cancel("r", by="ann") == "cancelled"
        result = await run
        assert (result.status, result.outputs) == ("cancelled", {"a": {"did": "a"}})
        assert sorted(host.aborted) == ["b", "c"]
        assert host.sound(result)
        assert await host.engine.resume("r") == result
        assert host.did == ["a"]
        with pytest.raises(DecisionError, match="run 'r' has ended as cancelled"):
            await host.engine.cancel("r")

    played(play)


def test_cancelled_run_no_longer_waits_for_anybody() -> None:
    async def play() -> None:
        host = Host([action("pay", amount=5)])
        waits = await host.start([agent(), node("side")])
        place = (waits.waiting[0]["strand"], waits.waiting[0]["n"])
        assert await host.engine.cancel("r") == "cancelled"
        with pytest.raises(DecisionError):
            await host.engine.resume("r", decisions={place: Approve()})
        result = await host.engine.resume("r")
        assert (result.status, result.waiting, host.did) == ("cancelled", [], ["side"])
        assert host.sound(result)

    played(play)


def test_cancellation_that_no_driver_heard_of_still_ends_the_run() -> None:
    async def play() -> None:
        host = Host([action("pay", amount=5)])
        await host.start([agent()])
        append_control(host.store.journal, "r", "cancel", by="ann", keys=None)
        assert (await host.engine.resume("r")).status == "cancelled"
        with pytest.raises(DecisionError, match="has ended as cancelled"):
            await host.engine.cancel("r")

    played(play)


def test_paused_run_that_is_submitted_again_goes_on_and_says_so() -> None:
    async def play() -> None:
        host = Host([action("pay", amount=5), final("done")])
        await host.start([agent()])
        await host.engine.pause("r", by="ann")
        assert (await host.start([agent()])).status == "waiting"
        said = [row.record()["decision"] for row in host.store.journal.load("r")[CONTROL]]
        assert said == ["pause", "resume"]

    played(play)


def test_run_whose_place_is_still_to_come_is_cancelled_when_it_comes() -> None:
    async def play() -> None:
        host = Host(max_running=1)
        host.gate("a")
        first, second = host.start([node("a")], "r1"), host.start([node("b")], "r2")
        await until(lambda: host.store.entry("r2") is not None)
        cancelling = asyncio.create_task(host.other.cancel("r2"))
        await host.noticed("r2")
        host.gates["a"].set()
        assert ((await first).status, (await second).status) == ("completed", "cancelled")
        assert (await cancelling, host.did) == ("cancelled", ["a"])

    played(play)


def test_stopping_is_sealed_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*KEY)

    async def play() -> None:
        host = Host([action("pay", amount=5)])
        await host.start([agent()])
        await host.engine.pause("r", by="ann")
        await host.engine.cancel("r", by="bob")
        keys = Keys.read(KEY[1])
        assert verify(host.store.journal, run_id="r", keys=keys).ok
        tape = host.store.journal.load("r")
        rows = [row for path, each in tape.items() for row in (each[:-1] if path == CONTROL else each)]
        assert not verify(rows, run_id="r", keys=keys).ok
        assert verify(rows, run_id="r").ok

    played(play)


# ── one driver at a time ─────────────────────────────────────────────────────────────────────────


def test_run_that_is_driven_cannot_be_driven_again() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a")])
        await until(lambda: host.store.leases.holder("r"))
        for engine in (host.engine, host.other):
            with pytest.raises(RunBusy, match="run 'r' is being driven by process"):
                await engine.resume("r")
        with pytest.raises(RunBusy):
            await host.start([node("a")])
        host.gates["a"].set()
        assert (await run).status == "completed"
        assert (await host.start([node("a")])).status == "completed"
        assert host.did == ["a"]

    played(play)


def test_runs_beyond_the_bound_wait_in_order() -> None:
    async def play() -> None:
        host = Host(max_running=2)
        names = [f"n{i}" for i in range(6)]
        host.gate(*names)
        runs = [host.start([node(name)], name) for name in names]
        await until(lambda: len(host.store.entries()) == 6)
        for i in range(6):
            await until(
                lambda i=i: [e.run for e in host.store.entries()[::-1] if e.status == "running"] == names[i : i + 2]
            )
            assert [e.status for e in host.store.entries()].count("pending") == max(0, 4 - i)
            host.gates[names[i]].set()
            await runs[i]
        assert host.did == names

    played(play)


# ── fork ─────────────────────────────────────────────────────────────────────────────────────────

REPLIES = [action("work", name="x"), action("pay", amount=5), final("done")]
FORKS = {
    "a node behind": (("flow/after.1", 0), [], ["after"]),
    "a node beside": (("flow/side.1", 0), [], ["side"]),
    "the first node": (("flow/a.1", 0), ["a", "side", "x"], ["paid 5", "after"]),
    "a step of the agent": (("flow/agent_core.1", 4), ["x"], ["paid 5", "after"]),
    "a call behind its approval": (("flow/agent_core.1", 11), [], ["paid 5", "after"]),
    "the end": (("flow", 1), [], []),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("at", "before", "behind"), FORKS.values(), ids=FORKS)
def test_fork_does_again_what_followed_from_the_record_and_nothing_else(at: Any, before: Any, behind: Any) -> None:
    async def play() -> None:
        host = Host(REPLIES)
        nodes = [
            node("a"),
            agent(prompt="{{nodes.a.did}}"),
            node("side", "a"),
            node("after", "agent_core.final_answer"),
        ]
        first = await host.start(nodes)
        place = (first.waiting[0]["strand"], first.waiting[0]["n"])
        source = await host.engine.resume("r", decisions={place: Approve()})
        rows = host.store.journal.load("r")
        host.did.clear()
        if "paid 5" in behind:
            with pytest.raises(WritesRepeated, match=r"may make again: flow/agent_core\.1:11 pay"):
                await host.engine.fork("r", at, new_id="f")
            assert (host.did, host.store.journal.load("f"), host.store.entry("f")) == ([], {}, None)
        fork = await host.engine.fork("r", at, new_id="f", repeat_writes=True)
        assert (fork.status == "waiting") == ("paid 5" in behind)
        if fork.status == "waiting":
            assert host.did == before
            place = (fork.waiting[0]["strand"], fork.waiting[0]["n"])
            fork = await host.engine.resume("f", decisions={place: Approve()})
        assert (fork.status, host.did) == ("completed", [*before, *behind])
        assert fork.path == source.path
        assert host.sound(fork)
        assert host.store.journal.load("r") == rows
        started = host.store.journal.load("f")["flow"][0].record()
        forked = started["forked"]
        assert (forked["run"], forked["strand"], forked["n"]) == ("r", *at)

    played(play)


def test_run_can_be_forked_before_and_after_what_took_its_id_in() -> None:
    async def play() -> None:
        host = Host([final("done")])
        await host.start([agent(), node("whole", "agent_core")])
        fork = await host.engine.fork("r", ("flow/agent_core.1", 1), new_id="f")
        assert (fork.status, host.did) == ("completed", ["whole", "whole"])
        assert host.sound(fork)
        after = await host.engine.fork("r", ("flow", 1), new_id="g")
        assert (after.status, len(host.did), after.outputs["agent_core"]["run_id"]) == ("completed", 2, "r")
        assert host.sound(after)

    played(play)


def test_fork_of_what_is_not_there_is_refused_and_leaves_nothing() -> None:
    async def play() -> None:
        host = Host()
        await host.start([node("a"), {"id": "b", "tool": "work", "config": {"name": "{{run.id}}"}}])
        for at, reason in (
            (("flow/a.1", 2), "the strand has the records 0 to 1"),
            (("flow/z.1", 0), "there is no such strand; there are flow, flow/a.1"),
            (("flow", 0), "it is the run's first record"),
            (("", 0), "there is no such strand"),
        ):
            with pytest.raises(DefinitionError, match=f"no run can be forked here: {reason}"):
                await host.engine.fork("r", at, new_id="f")
        with pytest.raises(RunNotFound):
            await host.engine.fork("x", ("flow", 1))
        assert [entry.run for entry in host.store.entries()] == ["r"]
        assert host.store.journal.load("f") == {}

    played(play)


# ── workflows in workflows ───────────────────────────────────────────────────────────────────────

SUB = {
    "id": "sub",
    "inputs": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
    "nodes": [
        node("in"),
        {
            "tool": "agent_core",
            "config": {"model": "m", "max_steps": 2, "prompt": "{{external.who}}", "allowed_tools": []},
        },
    ],
    "outputs": {"answer": "{{nodes.agent_core.final_answer}}"},
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "sub.json").write_text(json.dumps(SUB))
    return tmp_path


def invoke(**config: Any) -> dict[str, Any]:
    return {"id": "sub", "tool": "invoke_workflow", "config": {"workflow": "below/sub.json", **config}}


def test_workflow_runs_another_in_strands_of_its_own(base: Path) -> None:
    async def play() -> None:
        host = Host([final("hello")])
        nodes = [invoke(inputs={"who": "ann"}), node("after", "sub.outputs.answer")]
        result = await host.engine.run(load_workflow({"id": "w", "nodes": nodes}, base=base), run_id="r")
        assert (result.status, result.path) == ("completed", ["sub", "after"])
        assert result.outputs["sub"]["outputs"]["answer"] == "hello"
        assert "flow/sub.1/agent_core.1" in host.store.journal.load("r")
        assert host.sound(result)

    played(play)


def test_workflow_as_an_agents_tool_spends_the_agents_budget(base: Path) -> None:
    async def play() -> None:
        outer = [action("invoke_workflow", inputs={"who": "ann"}), final("outer")]
        host = Host({"flow/agent_core.1": outer, "flow/agent_core.1/invoke_workflow.4/agent_core.1": [final("inner")]})
        allowed = [{"tool": "invoke_workflow", "preset": {"workflow": "below/sub.json"}}]
        nodes = [agent(allowed_tools=allowed, total_token_budget=100_000)]
        result = await host.engine.run(load_workflow({"id": "w", "nodes": nodes}, base=base), run_id="r")
        output = result.outputs["agent_core"]
        assert (result.status, output["final_answer"], output["usage"]["requests"]) == ("completed", "outer", 3)
        tape = host.store.journal.load("r")
        inner = tape["flow/agent_core.1/invoke_workflow.4/agent_core.1"][0].record()
        assert 0 < inner["limits"]["tokens"] < 100_000
        assert host.sound(result)

    played(play)


def test_model_that_gives_a_workflow_wrong_inputs_is_told_and_may_correct_them(base: Path) -> None:
    async def play() -> None:
        outer = [action("invoke_workflow", inputs={}), action("invoke_workflow", inputs={"who": "a"}), final("out")]
        host = Host({"flow/agent_core.1": outer, "flow/agent_core.1/invoke_workflow.9/agent_core.1": [final("in")]})
        allowed = [{"tool": "invoke_workflow", "preset": {"workflow": "below/sub.json"}}]
        result = await host.engine.run(load_workflow({"id": "w", "nodes": [agent(allowed_tools=allowed)]}, base=base))
        assert result.outputs["agent_core"]["final_answer"] == "out"
        assert "who" in result.outputs["agent_core"]["trace"][0]["error"]

    played(play)


def test_what_is_wrong_with_a_workflow_that_is_run_is_told_before_anything_starts(base: Path) -> None:
    async def play() -> None:
        (base / "below" / "bad.json").write_text(json.dumps({"id": "bad", "nodes": [{"tool": "wrk"}]}))
        host = Host()
        with pytest.raises(DefinitionError, match=r"0/config/workflow: below/bad.json:1: nodes/0 \(wrk\)/tool: no"):
            await host.engine.run(load_workflow({"id": "w", "nodes": [invoke(workflow="below/bad.json")]}, base=base))
        with pytest.raises(DefinitionError, match=r"nodes/0/config/workflow: .*cannot be read"):
            await host.engine.run(load_workflow({"id": "w", "nodes": [invoke(workflow="none.json")]}, base=base))
        called = agent(allowed_tools=[{"tool": "invoke_workflow", "preset": {"workflow": "below/bad.json"}}])
        with pytest.raises(DefinitionError, match=r"allowed_tools/0/preset/workflow: below/bad.json:1: nodes/0 "):
            await host.engine.run(load_workflow({"id": "w", "nodes": [called]}, base=base))

    played(play)


def test_each_of_many_workflows_that_may_run_each_other_is_looked_at_once(base: Path) -> None:
    names = [f"part{number}" for number in range(9)]  # the ways through them are more than a hundred thousand
    for name in names:
        nodes = [{**invoke(workflow=f"{other}.json"), "id": other} for other in names if other != name]
        (base / f"{name}.json").write_text(json.dumps({"id": name, "nodes": nodes}))
    assert validate(load_workflow(base / "part0.json"), Host().engine.registry) == []


def test_workflows_may_run_each_other_in_a_circle(base: Path) -> None:
    async def play() -> None:
        for name, other in (("ping", "pong"), ("pong", "ping")):
            (base / f"{name}.json").write_text(json.dumps({"id": name, "nodes": [invoke(workflow=f"{other}.json")]}))
        result = await Host().engine.run(load_workflow(base / "ping.json"))
        assert "runs may be nested 8 deep" in json.dumps(result.outputs)

    played(play)


def test_workflow_that_runs_itself_ends_by_how_deep_runs_may_nest(base: Path) -> None:
    async def play() -> None:
        (base / "self.json").write_text(json.dumps({"id": "self", "nodes": [invoke(workflow="self.json")]}))
        host = Host()
        result = await host.engine.run(load_workflow(base / "self.json"))
        assert result.status == "failed"
        assert "runs may be nested 8 deep" in json.dumps(result.outputs)

    played(play)
