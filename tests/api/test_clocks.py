"""Servers whose clocks differ: what is due goes by the clock of their store, and each says how its own differs."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine_shim import Engine
from engine_shim.definition.load import load_workflow
from engine_shim.definition.validate import check
from engine_shim.host.config import read_host_config
from engine_shim.service.deliveries import BACKOFF_S, Deliveries
from engine_shim.service.run_service import RunService
from engine_shim.service.tenants import open_tenant
from engine_shim.service.timers import Timers
from engine_shim.service.triggers import Triggers
from engine_shim.store.clock import StoreClock
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import SqliteRunStore
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.telemetry.telemetry import Telemetry
from support.served_host import served, write_host

HOURS = (-5, 0, 5)
MORNING = datetime(2026, 3, 2, 5, 59, tzinfo=UTC)


class SharedTime:
    """The time of a store, and the clocks of servers of it, each as many hours off."""

    def __init__(self) -> None:
        self.now = MORNING.timestamp()
        self.clocks = [self.open(hours) for hours in HOURS]

    def open(self, hours: int) -> StoreClock:
        def own() -> float:
            return self.now + hours * 3600

        return StoreClock(lambda db: self.now, remote=True, own=own, ticks=lambda: self.now)

    def go_on(self, seconds: float = 0) -> None:
        self.now += seconds
        for each in self.clocks:
            each.measure()


def test_trigger_starts_once_when_the_clock_of_the_store_says_so(tmp_path: Path) -> None:
    write_host(tmp_path)
    (tmp_path / "triggers").mkdir()
    (tmp_path / "triggers" / "daily.yaml").write_text(
        "{workflow: count, cron: '0 6 * * *', inputs: {sum: '1 + 1'}, missed: skip}"
    )
    shared, config = SharedTime(), read_host_config(tmp_path / "agent-core.yaml")
    tenants = [open_tenant(config, tmp_path / "runs.db", None, Telemetry()) for _ in HOURS]

    async def play() -> tuple[list[list[str]], list[str]]:
        triggers = [
            Triggers(tmp_path / "triggers", each.store.database, each.workflows, each.runs, clock=clock.now)
            for each, clock in zip(tenants, shared.clocks, strict=True)
        ]
        found = []
        for seconds in (0, 30, 30, 30):
            shared.go_on(seconds)
            for each in triggers:
                each.load()
                await each.start_due()
            found.append([entry.run for entry in tenants[0].store.entries()])
        told = [(await each.describe())[0]["next_at"] for each in triggers]
        for tenant in tenants:
            await tenant.close(5)
        return found, told

    found, told = asyncio.run(play())
    assert [len(each) for each in found] == [0, 0, 1, 1]
    assert told == ["2026-03-03T06:00:00+00:00"] * len(HOURS)


def test_delivery_is_sent_again_when_the_clock_of_the_store_says_so(tmp_path: Path) -> None:
    shared, store = SharedTime(), SqliteRunStore(tmp_path / "runs.db")
    shared.go_on()
    behind, right, ahead = (Deliveries(store.database, "hook", clock.read) for clock in shared.clocks)
    right.begin()
    store.save(RunEntry("r", "w", "1", "completed", "2026-01-01T00:00:00Z", ".", 3))
    ahead.collect(lambda run, status: True)
    [delivery] = behind.claim()
    assert (right.claim(), ahead.claim()) == ([], [])
    assert ahead.postpone(delivery)
    shared.go_on(BACKOFF_S[0] - 1)
    assert (behind.claim(), right.claim(), ahead.claim()) == ([], [], [])
    shared.go_on(1)
    assert [each.attempt for each in behind.claim()] == [2]
    store.close()


@pytest.mark.parametrize("hours", HOURS)
def test_waiting_run_is_resumed_when_the_clock_of_the_store_says_so(hours: int) -> None:
    shift = [hours * 3600.0]
    store = MemoryRunStore(clock=lambda: time.time() + shift[0])

    async def play() -> list[str]:
        engine = Engine(store=store)
        runs, found = RunService(engine), []
        definition = {"id": "w", "nodes": [{"id": "a", "tool": "wait", "config": {"seconds": 60}}]}
        run, _ = await runs.submit(check(load_workflow(definition), engine.registry), {}, by="ann")
        for seconds in (0, 30, 30):
            shift[0] += seconds
            await Timers(runs).resume_due()
            await runs.wait(run, 10)
            found.append(engine.status(run))
        await runs.close(1)
        return found

    assert asyncio.run(play()) == ["waiting", "waiting", "completed"]


@pytest.mark.parametrize(("ahead", "told"), [(0.4, None), (90.0, 90.0), (-3600.0, -3600.0)])
def test_health_says_how_the_clock_differs(tmp_path: Path, ahead: float, told: float | None) -> None:
    shared = SharedTime()
    with served(tmp_path) as host:
        assert host.client.get("/health").json()["clock_difference_s"] is None
        host.store.clock = StoreClock(
            lambda db: shared.now, remote=True, own=lambda: shared.now + ahead, ticks=lambda: shared.now
        )
        host.store.clock.measure()
        assert host.client.get("/health").json()["clock_difference_s"] == told


@pytest.mark.xdist_group("postgres")
def test_server_on_a_database_measures_its_clock_at_the_start(tmp_path: Path, new_database: Callable[[], str]) -> None:
    with served(tmp_path, store=new_database()) as host:
        difference = host.store.clock.compare()
        assert abs(difference.seconds) < timedelta(minutes=1).total_seconds()
        assert difference.within > 0
