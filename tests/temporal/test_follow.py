"""How runs are followed that others drive: one look at the store for all of them."""

import asyncio
from collections.abc import Collection
from contextlib import ExitStack

import pytest

from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from agent_core.run.control import StopSignal
from agent_core.run.event_listener import EventListener
from engine_shim.intervals import QUIET_INTERVAL_S
from engine_shim.runs.temporal.follow import LONGEST_S, SHORTEST_S, Follower, StoreWatch
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store_memory import MemoryRunStore

MANY = 200


class CountingStore(MemoryRunStore):
    """Counts the looks at it; `is_away` makes them fail, `is_odd` with an error that nobody foresees."""

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.is_away, self.is_odd = 0, False, False

    def poll_status(self, runs: Collection[str]) -> dict[str, tuple[str, int]]:
        self.looks += 1
        if self.is_away:
            raise JournalError("away")
        if self.is_odd:
            raise RuntimeError("odd")
        return super().poll_status(runs)

    def begin(self, run: str, status: str = "running") -> None:
        self.save(RunEntry(run, "flow", "1", status, "2025-01-01", "/base"))

    def add_row(self, run: str) -> None:
        self.journal.append(run, [chain_row("flow", 0, genesis(run, "flow"), {"kind": "run_started"})])


@pytest.fixture
def store() -> CountingStore:
    store = CountingStore()
    for n in range(MANY):
        store.begin(f"r{n}")
    return store


def follow(store: CountingStore, run: str) -> Follower:
    return Follower(store, run, StopSignal(), None, EventListener(lambda event: None))


async def await_news(follower: Follower) -> None:
    await asyncio.wait_for(follower.news.wait(), QUIET_INTERVAL_S)
    follower.news.clear()


async def test_row_and_status_of_a_run_are_told_to_those_who_follow_it_and_nobody_else(store: CountingStore) -> None:
    watch, one, other = StoreWatch(store), follow(store, "r1"), follow(store, "r2")
    with watch.telling(one), watch.telling(other):
        await await_news(one)  # what was there before they came
        await await_news(other)
        store.add_row("r1")
        await await_news(one)
        store.begin("r1", "waiting")
        await await_news(one)
        assert not other.news.is_set()


async def test_only_a_listener_is_told_of_rows(store: CountingStore) -> None:
    watch, deaf, last = StoreWatch(store), Follower(store, "r1", StopSignal(), None, None), follow(store, "r2")
    with watch.telling(deaf), watch.telling(last):
        await await_news(deaf)
        await await_news(last)
        store.add_row("r1")
        store.add_row("r2")
        await await_news(last)
        assert not deaf.news.is_set()
        store.begin("r1", "waiting")
        await await_news(deaf)


async def test_all_who_follow_are_served_by_one_look(store: CountingStore) -> None:
    watch, followers = StoreWatch(store), [follow(store, f"r{n}") for n in range(MANY)]
    with ExitStack() as stack:
        for each in followers:
            stack.enter_context(watch.telling(each))
        for each in followers:
            await await_news(each)
        store.looks = 0
        for each in followers:
            store.add_row(each.run)
        for each in followers:
            await await_news(each)
    assert store.looks < MANY / 4


async def test_look_outlives_an_error_that_nobody_foresaw(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    watch, one = StoreWatch(store), follow(store, "r1")
    with watch.telling(one):
        await await_news(one)
        store.is_odd = True
        looks = store.looks
        while store.looks < looks + 2:
            await asyncio.sleep(SHORTEST_S)
        store.is_odd = False
        store.add_row("r1")
        await await_news(one)
    assert "RuntimeError('odd')" in caplog.text


async def test_follower_that_comes_again_hears_nothing_of_before(store: CountingStore) -> None:
    """What a run was like before it was resumed would be taken for its end."""
    watch, one = StoreWatch(store), follow(store, "r1")
    store.begin("r1", "paused")
    with watch.telling(one):
        await await_news(one)
    store.begin("r1", "running")
    again = follow(store, "r1")
    with watch.telling(again):
        assert (await again.look())[0] == "running"


async def test_stop_that_came_while_the_run_was_handed_in_is_passed_on(store: CountingStore) -> None:
    stop = StopSignal("cancel")
    told, untold = (Follower(store, "r1", stop, taken, None) for taken in ("cancel", None))
    assert (told.take_stop(), untold.take_stop(), untold.take_stop()) == (None, "cancel", None)


async def test_stop_that_came_during_a_look_is_not_waited_for(store: CountingStore) -> None:
    stop = StopSignal()
    follower = Follower(store, "r1", stop, None, None)
    stop.request("pause")
    await follower.look()
    await asyncio.wait_for(follower.wait(), SHORTEST_S)
    assert follower.take_stop() == "pause"


async def test_store_that_was_away_is_looked_at_again(store: CountingStore) -> None:
    watch, one = StoreWatch(store), follow(store, "r1")
    store.is_away = True
    with watch.telling(one):
        while store.looks < 3:
            await asyncio.sleep(SHORTEST_S)
        store.is_away = False
        await await_news(one)


async def test_nobody_looks_once_nobody_follows(store: CountingStore) -> None:
    watch = StoreWatch(store)
    for run in ("r1", "r2"):
        one = follow(store, run)
        with watch.telling(one):
            await await_news(one)
    looks = store.looks
    await asyncio.sleep(2 * LONGEST_S)
    assert store.looks - looks <= 1
