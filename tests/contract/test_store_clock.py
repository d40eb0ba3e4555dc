"""The clock of a store: kept without a query, told where that of the process differs; what goes by it."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine_shim.intervals import CLOCK_INTERVAL_S
from engine_shim.runs.engine import Engine
from engine_shim.store.clock import ClockDifference, StoreClock
from engine_shim.store.clock_watch import ClockWatch
from engine_shim.store.run_store import RunStore, SqliteRunStore
from engine_shim.store.run_store_memory import MemoryRunStore
from utools.errors import DatabaseError

NOON = 1_800_000_000.0


class Times:
    """A store's clock over a network, the clock of a process, and its ticks, all as the test sets them."""

    def __init__(self) -> None:
        self.store, self.own, self.ticks, self.asked, self.trip = NOON, NOON, 0.0, 0, 0.0
        self.clock = StoreClock(self.ask, remote=True, own=lambda: self.own, ticks=lambda: self.ticks)

    def ask(self, db: object = None) -> float:
        self.asked += 1
        self.go_on(self.trip / 2)
        answer = self.store
        self.go_on(self.trip / 2)
        return answer

    def go_on(self, seconds: float) -> None:
        self.store, self.own, self.ticks = self.store + seconds, self.own + seconds, self.ticks + seconds


@pytest.fixture
def times() -> Times:
    return Times()


def test_time_goes_on_by_ticks_without_a_query(times: Times) -> None:
    times.own += 3600
    times.clock.measure()
    for _ in range(10):
        times.go_on(1)
        assert times.clock.read() == times.store
    assert (times.asked, times.clock.now()) == (1, datetime.fromtimestamp(NOON + 10, UTC))
    assert times.clock.write_now(2.5) == "2027-01-15T08:00:07.500Z"


def test_clock_of_the_process_that_is_set_meanwhile_moves_nothing_and_shows(times: Times) -> None:
    times.clock.measure()
    times.own -= 600
    assert times.clock.read() == NOON
    assert str(times.clock.compare()) == "600.0 seconds behind that of its store"


def test_answer_is_of_the_midst_of_the_round_trip(times: Times) -> None:
    times.trip = 4.0
    times.clock.measure()
    assert times.clock.read() == times.store
    assert times.clock.compare() == ClockDifference(0.0, 2.0)


def test_slow_answer_does_not_replace_a_quick_one_until_that_is_old(times: Times) -> None:
    for trip, seconds, within in ((4.0, 0.0, 2.0), (0.2, 1.0, 0.1), (6.0, 1.0, 0.1), (6.0, CLOCK_INTERVAL_S, 3.0)):
        times.go_on(seconds)
        times.trip = trip
        times.clock.measure()
        assert times.clock.compare().within == pytest.approx(within)


@pytest.mark.parametrize(
    ("ahead", "trip", "is_notable"),
    [(0.9, 0.0, False), (1.1, 0.0, True), (-1.1, 0.0, True), (1.1, 0.4, False), (1.3, 0.4, True), (30.0, 60.0, False)],
)
def test_difference_is_told_where_the_round_trip_cannot_explain_it(
    times: Times, ahead: float, trip: float, is_notable: bool
) -> None:
    times.own, times.trip = times.own + ahead, trip
    times.clock.measure()
    assert times.clock.compare().is_notable is is_notable


def test_before_it_was_measured_it_is_that_of_the_process(times: Times) -> None:
    times.own += 60
    assert (times.clock.read(), times.clock.compare().is_notable) == (times.own, False)
    times.clock.measure()
    assert times.clock.read() == times.store


async def test_engine_that_is_warm_goes_by_the_clock_of_its_store(times: Times) -> None:
    """A worker has no leases, by whose queries a server comes to know it."""
    store, times.own = MemoryRunStore(), NOON + 5 * 3600
    store.clock = times.clock
    engine = Engine([], store=store)
    await engine.warm_up()
    await engine.close()
    assert (times.asked, times.clock.read()) == (1, NOON)


def test_clock_of_this_machine_is_asked_each_time() -> None:
    now = [NOON]
    clock = StoreClock.of_machine(lambda: now[0])
    now[0] += 5
    assert (clock.measure(), clock.read(), clock.compare().is_notable) == (NOON + 5, NOON + 5, False)


def test_difference_is_logged_once_and_again_when_it_changes(times: Times, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryRunStore()
    store.clock = times.clock
    watch = ClockWatch(store)

    def look(*, ahead: float) -> tuple[list[str], float | None]:
        caplog.clear()
        times.own = times.store + ahead
        asyncio.run(watch.look())
        return [each.message for each in caplog.records], watch.find_difference()

    with caplog.at_level(logging.INFO, "engine_shim"):
        assert look(ahead=0.5) == ([], None)
        [told], difference = look(ahead=90.04)
        assert (told.partition(":")[0], difference) == (
            "the clock of this machine is 90.0 seconds ahead of that of its store", 90.0
        )  # fmt: skip
        assert look(ahead=90.4) == ([], 90.4)
        assert len(look(ahead=120.0)[0]) == 1
        assert look(ahead=0.2) == (["the clock of this machine agrees with that of its store again"], None)
        assert look(ahead=0.4) == ([], None)


# ── what goes by it ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunStore]:
    if request.param == "memory":
        yield MemoryRunStore()
        return
    if request.param == "sqlite":
        with closing(SqliteRunStore(tmp_path / "runs.db")) as made:
            yield made
        return
    new_database = request.getfixturevalue("new_database")
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(new_database())) as shared:
        yield shared


@pytest.mark.parametrize("hours", [-5, 5])
def test_wait_goes_by_the_clock_of_the_store_and_records_by_that_of_the_process(store: Any, hours: int) -> None:
    """The store's clock is hours from that of the process: the wait is as long, and ends by the former."""
    shift = [hours * 3600.0]
    store.clock = StoreClock.of_machine(lambda: time.time() + shift[0])
    workflow = {"id": "w", "nodes": [{"id": "a", "tool": "wait", "config": {"seconds": 60}}]}
    engine = Engine(store=store)
    waits = engine.run_sync(workflow, run_id="r")
    [waiting] = waits.waiting
    until = datetime.fromisoformat(waiting["until"])
    assert timedelta(seconds=50) < until - store.clock.now() <= timedelta(seconds=60)
    assert engine.result("r") is not None
    assert asyncio.run(engine.resume("r")).status == "waiting"
    shift[0] += 60
    assert engine.result("r") is None
    ended = asyncio.run(engine.resume("r"))
    assert ended.status == "completed"
    at = datetime.fromisoformat(ended.outputs["a"]["at"])
    assert abs(datetime.now(UTC) - at) < timedelta(hours=1)


@pytest.mark.xdist_group("postgres")
def test_processes_whose_clocks_differ_have_the_same_time(new_database: Callable[[], str]) -> None:
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(new_database())) as store:
        clocks = [
            StoreClock(store.database.read_clock, remote=True, own=lambda hours=hours: time.time() + hours * 3600)
            for hours in (-3, 0, 3)
        ]
        for each in clocks:
            each.measure()
        before, read, after = store.database.read_clock(), [each.read() for each in clocks], store.database.read_clock()
        found = [each.compare() for each in clocks]
    within = max(each.within for each in found)
    assert all(before - within - 0.001 <= each <= after + within + 0.001 for each in read)
    assert [round(each.seconds / 3600) for each in found] == [-3, 0, 3]
    assert [each.is_notable for each in found] == [True, False, True]


@pytest.mark.xdist_group("postgres")
def test_store_in_a_database_has_the_clock_of_its_server(new_database: Callable[[], str]) -> None:
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(new_database())) as store:
        assert store.clock.is_remote
        before = store.clock.read()
        assert store.leases.acquire("r", "elsewhere:1:aa") is None
        assert store.clock.compare() != ClockDifference(0.0)  # whoever takes a lease has measured it
        assert abs(store.clock.read() - before) < 3600
    assert not MemoryRunStore().clock.is_remote


def test_clock_that_cannot_be_asked_keeps_the_last_time(times: Times) -> None:
    times.clock.measure()

    def fail(db: object) -> float:
        raise DatabaseError("away")

    times.clock._read_clock = fail
    times.go_on(5)
    with pytest.raises(DatabaseError):
        times.clock.measure()
    assert times.clock.read() == times.store


@pytest.mark.xdist_group("postgres")
def test_doctor_tells_how_the_clock_of_this_machine_differs(new_database: Callable[[], str]) -> None:
    from engine_shim.cli.doctor.postgres import check_clock
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(new_database())) as store:
        found = check_clock(store.clock)
        ahead = check_clock(StoreClock(store.database.read_clock, remote=True, own=lambda: time.time() + 3600))
    assert (found.name, found.status) == ("clock", "ok")
    assert (ahead.status, ahead.message.rpartition(" seconds")[2]) == ("warning", " ahead of that of its store")
    assert round(ahead.facts["difference_s"] / 60) == 60
    assert "NTP" in ahead.advice
