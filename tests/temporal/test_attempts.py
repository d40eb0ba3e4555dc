"""An activity that comes again finds what became of the attempt before."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment

from agent_core.effects import ToolCall
from agent_core.journal.operations import Act, Slot
from agent_core.journal.record import genesis
from agent_core.records import encode_asked
from agent_core.run.executor import Executor
from engine_shim import SqliteRunStore
from engine_shim.runs.temporal.activities import RunActivities
from engine_shim.runs.temporal.references import AT_HAND, reference_to
from engine_shim.runs.temporal.run_host import RunHosts
from utools.registry import ToolRegistry
from utools.tool import Tool

RUN, STRAND = "run-1", "flow/pays.1"
DONE: list[str] = []
SIGNALS: list[str] = []


class Client:
    """A client of Temporal that notes what is signalled."""

    def get_workflow_handle(self, _: str) -> "Client":
        return self

    async def signal(self, name: str, _: str) -> None:
        SIGNALS.append(name)


async def pay(args: Any, context: Any) -> Any:
    DONE.append(context.idempotency_key)
    await asyncio.sleep(0.05)
    return {"paid": True}


@contextmanager
def attempt(effect: Any, folder: Path) -> Iterator[tuple[RunActivities, list[Any]]]:
    """The activities of a worker, and what the act of a run is told by."""
    DONE.clear()
    SIGNALS.clear()
    registry = ToolRegistry([Tool("pay", "Pays.", {"type": "object"}, pay, effect=effect)])
    hosts = RunHosts(lambda run: Executor(run, registry, lambda *_: pytest.fail("no model"), {}))
    call = ToolCall("call_1", "pay", {}, {}, effect, within=5.0)
    asked = Slot(STRAND, 0, genesis(RUN, STRAND)).row(encode_asked(call))
    act = Act((asked,), call, Slot(STRAND, 1, asked.hash), key="key", once_only=effect == "write")
    reference = reference_to(act)
    with AT_HAND.holding(RUN, reference, act):
        yield RunActivities(SqliteRunStore(folder / "runs.db"), hosts, None), [*reference, False]


async def test_of_two_attempts_at_one_write_the_second_does_not_act(tmp_path: Path) -> None:
    with attempt("write", tmp_path) as (activities, told):
        tries = [ActivityEnvironment(client=Client()).run(activities.act, RUN, told) for _ in range(2)]
        first, second = await asyncio.gather(*tries)
        assert DONE == ["key"]
        assert first == second, "whoever comes later has the doubt that is there"
        assert first.rows[0].record()["message"] == "the process ended before the call was answered"
        rows = activities._journal.load(RUN)[STRAND]
        assert [row.record()["kind"] for row in rows] == ["asked", "waiting", "resolved"]
        assert rows[2].record()["answer"]["output"] == {"paid": True}, "the answer comes late, and is kept"
        assert SIGNALS == ["wake"], "and the workflow is told of it"
        assert await ActivityEnvironment().run(activities.act, RUN, told) == first
        assert DONE == ["key"]


async def test_answered_write_that_comes_again_has_its_answer(tmp_path: Path) -> None:
    with attempt("write", tmp_path) as (activities, told):
        first, second = [await ActivityEnvironment().run(activities.act, RUN, told) for _ in range(2)]
        assert first == second
        assert first.rows[0].record()["kind"] == "answered"
        assert DONE == ["key"]


@pytest.mark.parametrize(
    ("why", "kinds"),
    [
        ("not_found", ["asked", "answered"]),
        ("timed_out", ["asked", "answered"]),
        ("cancel_requested", ["asked"]),
    ],
)
async def test_only_a_cancelled_run_aborts_a_write(tmp_path: Path, why: str, kinds: list[str]) -> None:
    with attempt("write", tmp_path) as (activities, told):
        environment = ActivityEnvironment()
        acting = asyncio.create_task(environment.run(activities.act, RUN, told))
        while not DONE:
            await asyncio.sleep(0.005)
        environment.cancel(ActivityCancellationDetails(**{why: True}))
        await acting
        rows = activities._journal.load(RUN)[STRAND]
        assert [row.record()["kind"] for row in rows] == kinds


async def test_read_that_comes_again_is_done_again_until_it_is_answered(tmp_path: Path) -> None:
    with attempt("read", tmp_path) as (activities, told):
        first, second = await asyncio.gather(*[ActivityEnvironment().run(activities.act, RUN, told) for _ in range(2)])
        assert DONE == ["key", "key"]
        assert first == second, "the first answer stands"
        assert await ActivityEnvironment().run(activities.act, RUN, told) == first
        assert len(DONE) == 2
