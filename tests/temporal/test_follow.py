"""How runs are followed that others drive: one look at the store for all of them."""

import asyncio
from collections.abc import Collection
from contextlib import ExitStack

import pytest

from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from engine_shim.runs.run_entry import RunEntry
from engine_shim.runs.store import MemoryRunStore
from engine_shim.runs.temporal.follow import AGAIN_S, LONGEST_S, SHORTEST_S, StoreWatch

MANY = 200


class CountingStore(MemoryRunStore):
    """Counts the looks at it; `is_away` makes them fail."""

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.is_away = 0, False

    def look(self, runs: Collection[str]) -> dict[str, tuple[str, int]]:
        self.looks += 1
        if self.is_away:
            raise JournalError("away")
        return super().look(runs)

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


async def await_news(news: asyncio.Event) -> None:
    await asyncio.wait_for(news.wait(), AGAIN_S)
    news.clear()


async def test_row_and_status_of_a_run_wake_those_who_follow_it_and_nobody_else(store: CountingStore) -> None:
    watch, news, other = StoreWatch(store), asyncio.Event(), asyncio.Event()
    with watch.waking("r1", news), watch.waking("r2", other):
        await await_news(news)  # what was there before they came
        await await_news(other)
        store.add_row("r1")
        await await_news(news)
        store.begin("r1", "waiting")
        await await_news(news)
        assert not other.is_set()


async def test_all_who_follow_are_served_by_one_look(store: CountingStore) -> None:
    watch, all_news = StoreWatch(store), [asyncio.Event() for _ in range(MANY)]
    with ExitStack() as stack:
        for n, news in enumerate(all_news):
            stack.enter_context(watch.waking(f"r{n}", news))
        for news in all_news:
            await await_news(news)
        store.looks = 0
        for n in range(MANY):
            store.add_row(f"r{n}")
        for news in all_news:
            await await_news(news)
    assert store.looks < MANY / 4


async def test_store_that_was_away_is_looked_at_again(store: CountingStore) -> None:
    watch, news = StoreWatch(store), asyncio.Event()
    store.is_away = True
    with watch.waking("r1", news):
        while store.looks < 3:
            await asyncio.sleep(SHORTEST_S)
        store.is_away = False
        await await_news(news)


async def test_nobody_looks_once_nobody_follows(store: CountingStore) -> None:
    watch, news = StoreWatch(store), asyncio.Event()
    for run in ("r1", "r2"):
        with watch.waking(run, news):
            await await_news(news)
    looks = store.looks
    await asyncio.sleep(2 * LONGEST_S)
    assert store.looks - looks <= 1
