"""Nodes that wait for a time or a signal: what comes, what others do meanwhile, and what the journal holds of it."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve
from agent_core.audit.normalize import normalize
from agent_core.audit.verify import verify
from agent_core.errors import DecisionError
from agent_core.journal.control import waiting_calls
from agent_core.journal.path import CONTROL
from agent_core.run.secrets import Secrets
from engine_shim import DefinitionError, RunNotFound, load_workflow
from engine_shim.definition.validate import validate
from support.by_hand import action, final
from support.gated import Host, agent, node, played, until
from utools import default_registry

FAR = "2999-01-01T00:00:00.000Z"
PAST = "2020-01-01T00:00:00+01:00"


def wait(name: str = "w", **keys: Any) -> dict[str, Any]:
    own = {key: keys.pop(key) for key in ("seconds", "until", "signal") if key in keys}
    return {"id": name, "tool": "wait", "config": own, **keys}


def records(host: Host, strand: str, run: str = "r") -> list[Any]:
    return [row.record() for row in host.store.journal.load(run).get(strand, ())]


async def waits(host: Host, strand: str = "flow/w.1") -> None:
    """Wait until a node waits."""
    await until(lambda: any(each["kind"] == "waiting" for each in records(host, strand)))


# ── a time ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("config", [{"seconds": 0}, {"seconds": 0.01}, {"until": PAST}, {"until": PAST, "signal": "s"}])
def test_time_that_is_near_is_waited_for_by_the_driver(config: dict[str, Any]) -> None:
    async def play() -> None:
        host = Host()
        ended = await host.start([wait(**config), node("b", "w")])
        assert (ended.status, host.did) == ("completed", ["b"])
        assert (ended.outputs["w"]["signal"], ended.outputs["w"]["data"]) == (None, None)
        assert [each["kind"] for each in records(host, "flow/w.1")] == ["asked", "answered", "waiting", "resolved"]
        assert host.sound(ended)

    played(play)


def test_run_is_let_go_until_a_time_that_is_far() -> None:
    async def play() -> None:
        host = Host()
        rests = await host.start([wait(until=FAR), node("b", "w")])
        wanted = {"strand": "flow/w.1", "n": 2, "tool": "wait", "args": {"until": FAR}, "reason": "awaiting_event"}
        assert (rests.status, rests.waiting, host.did) == ("waiting", [{**wanted, "until": FAR}], [])
        assert host.engine.result("r") == rests
        assert (await host.engine.resume("r")).status == "waiting"
        assert (host.store.due("r"), host.store.leases.holder("r")) == (FAR, None)
        assert verify(host.store.journal, run_id="r", **rests.journal).ok

    played(play)


def test_time_that_came_while_the_run_was_paused_ends_the_wait() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), wait(seconds=0.3), node("b", "w")])
        await waits(host)
        pausing = asyncio.create_task(host.other.pause("r"))
        await host.noticed()
        host.gates["a"].set()
        assert (await run).status == "waiting"
        await pausing
        assert (host.engine.status("r"), host.store.list_due("", FAR)) == ("paused", [])
        await asyncio.sleep(0.3)
        ended = await host.engine.resume("r")
        assert (ended.status, host.did) == ("completed", ["a", "b"])
        assert host.sound(ended)

    played(play)


def test_branch_that_waits_goes_on_while_another_one_works() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), wait(seconds=0.05), node("b", "w"), node("end", "a", "b")])
        await until(lambda: "b" in host.did)
        host.gates["a"].set()
        ended = await run
        assert (ended.status, host.did) == ("completed", ["b", "a", "end"])
        assert host.sound(ended)

    played(play)


# ── a signal ─────────────────────────────────────────────────────────────────────────────────────


def test_signal_ends_the_wait_and_gives_its_data() -> None:
    async def play() -> None:
        host = Host()
        rests = await host.start([wait(signal="paid"), node("b", "w")])
        assert (rests.status, rests.waiting[0]["signal"]) == ("waiting", "paid")
        assert not host.other.send_signal("r", "other", by="eve")
        assert host.other.send_signal("r", "paid", {"amount": 5}, by="ann")
        ended = await host.other.resume("r")
        came = ended.outputs["w"]
        assert (came["signal"], came["data"], came["by"], came["until"]) == ("paid", {"amount": 5}, "ann", None)
        assert [each["kind"] for each in records(host, CONTROL)] == ["signal", "signal"]
        assert host.sound(ended)

    played(play)


def test_signal_reaches_a_node_that_waits_while_another_one_works() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), wait(signal="go"), node("b", "w")])
        await waits(host)
        assert not host.other.send_signal("r", "go"), "the driver has the run"
        await until(lambda: "b" in host.did)
        host.gates["a"].set()
        assert (await run).status == "completed"

    played(play)


def test_signal_is_kept_for_a_node_that_comes_to_wait_and_each_is_taken_once() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), wait("v", signal="s"), wait(signal="s")], edges=edges("a", "v", "w"))
        await until(lambda: host.store.leases.holder("r"))
        host.other.send_signal("r", "s", 1)
        host.gates["a"].set()
        rests = await run
        assert (rests.status, rests.outputs["v"]["data"]) == ("waiting", 1)
        assert host.engine.send_signal("r", "s", 2)
        ended = await host.engine.resume("r")
        assert (ended.status, ended.outputs["w"]["data"]) == ("completed", 2)
        assert host.sound(ended)

    played(play)


def test_two_nodes_that_wait_for_one_name_take_one_signal_each() -> None:
    async def play() -> None:
        host = Host()
        assert (await host.start([wait("v", signal="s"), wait(signal="s")], edges=[])).status == "waiting"
        host.engine.send_signal("r", "s", 1)
        assert len((await host.engine.resume("r")).waiting) == 1
        host.engine.send_signal("r", "s", 2)
        ended = await host.engine.resume("r")
        assert sorted(ended.outputs[name]["data"] for name in ("v", "w")) == [1, 2]

    played(play)


def test_signal_before_its_time_and_time_before_the_signal() -> None:
    async def play() -> None:
        host = Host()
        assert (await host.start([wait(signal="s", until=FAR)])).status == "waiting"
        assert host.store.due("r") == FAR
        host.engine.send_signal("r", "s")
        assert (await host.engine.resume("r")).outputs["w"]["signal"] == "s"
        ended = await host.start([wait(signal="s", seconds=0.01)], run_id="q")
        assert ended.outputs["w"]["signal"] is None

    played(play)


def test_output_chooses_the_branch() -> None:
    async def play() -> None:
        host = Host()
        edges = [{"from": "w", "to": "b", "when": "output.signal"}, {"from": "w", "to": "late"}]
        ended = await host.start([wait(signal="s", seconds=0), node("b"), node("late")], edges=edges)
        assert (ended.path, host.did) == (["w", "late"], ["late"])

    played(play)


def test_signal_with_a_secret_is_recorded_without_it() -> None:
    async def play(patch: pytest.MonkeyPatch) -> None:
        patch.setenv("TOKEN", "s3cr3t-s3cr3t-s3cr3t")
        host = Host(secrets=Secrets(("TOKEN",)))
        await host.start([wait(signal="s")])
        host.engine.send_signal("r", "s", {"t": "s3cr3t-s3cr3t-s3cr3t"})
        ended = await host.engine.resume("r")
        assert ended.outputs["w"]["data"] == {"t": "[redacted:TOKEN]"}

    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(play(patch))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 129, 5])
def test_name_that_no_signal_can_have_is_refused(name: Any) -> None:
    async def play() -> None:
        host = Host()
        await host.start([wait(signal="s")])
        with pytest.raises(DefinitionError, match="1 to 128 letters"):
            host.engine.send_signal("r", name)
        with pytest.raises(DefinitionError, match="must be JSON"):
            host.engine.send_signal("r", "s", object())
        assert records(host, CONTROL) == []

    played(play)


def test_signal_to_a_run_that_has_ended_or_is_unknown_is_refused() -> None:
    async def play() -> None:
        host = Host()
        await host.start([node("a")])
        with pytest.raises(DecisionError, match="ended as completed"):
            host.engine.send_signal("r", "s")
        with pytest.raises(RunNotFound):
            host.engine.send_signal("q", "s")

    played(play)


def test_decision_about_a_node_that_waits_for_an_event_is_refused() -> None:
    async def play() -> None:
        host = Host()
        await host.start([wait(signal="s")])
        with pytest.raises(DecisionError, match=r"flow/w\.1:2 waits for the signal 's', not for a decision"):
            await host.engine.resume("r", decisions={("flow/w.1", 2): Approve()})

    played(play)


# ── beside the other ways of a node ──────────────────────────────────────────────────────────────


def test_wait_that_a_person_has_to_let_through_waits_after_that() -> None:
    async def play() -> None:
        host = Host()
        rests = await host.start([wait(signal="s", approval="always")])
        assert [each["reason"] for each in rests.waiting] == ["awaiting_approval"]
        rests = await host.engine.resume("r", decisions={("flow/w.1", 0): Approve()})
        assert [(each["reason"], each["n"]) for each in rests.waiting] == [("awaiting_event", 4)]
        host.engine.send_signal("r", "s")
        ended = await host.engine.resume("r")
        assert ended.status == "completed"
        assert host.sound(ended)

    played(play)


def test_each_item_of_a_list_waits_for_a_signal_of_its_own() -> None:
    async def play() -> None:
        host = Host()
        whole = [wait(signal="paid-{{item}}", foreach=["a", "b"]), node("end", "w.results")]
        rests = await host.start(whole)
        assert sorted(each["signal"] for each in rests.waiting) == ["paid-a", "paid-b"]
        host.engine.send_signal("r", "paid-b", 2)
        assert [each["signal"] for each in (await host.engine.resume("r")).waiting] == ["paid-a"]
        host.engine.send_signal("r", "paid-a", 1)
        ended = await host.engine.resume("r")
        assert [each["data"] for each in ended.outputs["w"]["results"]] == [1, 2]
        assert host.sound(ended)

    played(play)


def test_wait_of_a_workflow_that_an_agent_calls_lets_all_runs_above_it_wait(tmp_path: Path) -> None:
    (tmp_path / "below.json").write_text(
        json.dumps({"id": "below", "nodes": [wait(signal="s")], "outputs": {"got": "{{nodes.w.data}}"}})
    )

    async def play() -> None:
        host = Host([action("invoke_workflow"), final("done")])
        tools = [{"tool": "invoke_workflow", "preset": {"workflow": "below.json"}}]
        workflow = load_workflow({"id": "w", "nodes": [agent(allowed_tools=tools)]}, base=tmp_path)
        rests = await host.engine.run(workflow, run_id="r")
        output = rests.outputs["agent_core"]
        assert (rests.status, output["finish_reason"]) == ("waiting", "awaiting_event")
        assert [each["signal"] for each in output["waiting"]] == ["s"]
        host.engine.send_signal("r", "s", {"n": 7})
        ended = await host.engine.resume("r")
        assert (ended.status, ended.outputs["agent_core"]["final_answer"]) == ("completed", "done")
        assert '"n":7' in ended.outputs["agent_core"]["trace"][0]["observation"].replace(" ", "")
        assert host.sound(ended)

    played(play)


def test_cancelled_run_withdraws_its_waits() -> None:
    async def play() -> None:
        host = Host()
        await host.start([wait(signal="s"), wait("v", until=FAR)], edges=[])
        assert await host.other.cancel("r", by="ann") == "cancelled"
        assert [each["kind"] for each in records(host, "flow/w.1")[-1:]] == ["cancelled"]
        assert waiting_calls(host.store.journal.load("r")) == []

    played(play)


def test_cancellation_reaches_a_node_that_waits_beside_one_that_works() -> None:
    async def play() -> None:
        host = Host()
        host.gate("a")
        run = host.start([node("a"), wait(signal="s")], edges=[])
        await waits(host)
        await host.other.cancel("r")
        ended = await run
        assert (ended.status, host.aborted) == ("cancelled", ["a"])
        assert host.sound(ended)

    played(play)


def test_fork_keeps_what_came_and_waits_anew_where_it_begins_before_that() -> None:
    async def play() -> None:
        host = Host()
        await host.start([wait(signal="s"), node("b", "w")])
        host.engine.send_signal("r", "s", 1)
        await host.engine.resume("r")
        kept = await host.engine.fork("r", ("flow/b.1", 0), new_id="kept")
        assert (kept.status, kept.outputs["w"]["data"]) == ("completed", 1)
        assert "n" not in records(host, "flow/w.1", "kept")[-1]
        anew = await host.engine.fork("r", ("flow/w.1", 3), new_id="anew")
        assert (anew.status, anew.waiting[0]["signal"]) == ("waiting", "s")
        assert host.sound(kept)
        assert verify(host.store.journal, run_id="anew", **anew.journal).ok

    played(play)


def test_two_runs_that_waited_differ_in_nothing_but_times() -> None:
    async def play() -> None:
        host = Host()
        for run in ("r", "q"):
            await host.start([wait(seconds=0.01)], run_id=run)
        assert [*map(normalize, records(host, "flow/w.1"))] == [*map(normalize, records(host, "flow/w.1", "q"))]

    played(play)


# ── what validate says ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("config", "where", "message"),
    [
        ({}, "nodes/0/config", "at least 1"),
        ({"seconds": -1}, "nodes/0/config/seconds", "-1"),
        ({"seconds": 4e8}, "nodes/0/config/seconds", "315360000"),
        ({"seconds": 1, "until": FAR}, "nodes/0/config/until", "not both"),
        ({"until": "tomorrow"}, "nodes/0/config/until", "is no time"),
        ({"until": "2026-12-01T08:00:00"}, "nodes/0/config/until", "has no time zone"),
        ({"until": "0001-01-01T00:00:00+10:00"}, "nodes/0/config/until", "years 1 to 9999"),
        ({"signal": "a b"}, "nodes/0/config/signal", "a b"),
        ({"second": 5}, "nodes/0/config/second", "did you mean seconds"),
    ],
)
def test_wait_that_cannot_be_is_refused_before_a_run(config: dict[str, Any], where: str, message: str) -> None:
    found = validate(load_workflow({"id": "w", "nodes": [{"tool": "wait", "config": config}]}), default_registry())
    assert [(each.where, message in each.message) for each in found] == [(where, True)]


def test_timeout_beside_the_time_of_a_wait_is_refused() -> None:
    node = {"tool": "wait", "config": {"seconds": 5}, "timeout": 60}
    found = validate(load_workflow({"id": "w", "nodes": [node]}), default_registry())
    assert [(each.where, "leave out the timeout" in each.message) for each in found] == [("nodes/0/timeout", True)]


def test_time_that_a_placeholder_gives_is_read_in_the_run() -> None:
    async def play() -> None:
        host = Host()
        workflow = load_workflow({"id": "w", "nodes": [wait(until="{{external.when}}")]})
        ended = await host.engine.run(workflow, external={"when": "soon"})
        assert ended.error is not None
        assert "'soon' is no time" in ended.error["message"]

    played(play)


def edges(*names: str) -> list[dict[str, str]]:
    return [{"from": a, "to": b} for a, b in pairwise(names)]
