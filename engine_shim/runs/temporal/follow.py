"""How runs are followed that others drive: one look at the store for all of them, then one at each that has news."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

from agent_core.errors import Damaged, JournalError
from agent_core.run.control import Stopping, StopSignal
from agent_core.run.events import EventSource, Watcher
from engine_shim.runs.drive import RunResult
from engine_shim.runs.results import read_paused, read_result
from engine_shim.runs.run_index import ENDED, RunIndex
from engine_shim.runs.store import RunStore

if TYPE_CHECKING:
    from agent_core.journal.record import Row

SHORTEST_S: Final = 0.03
LONGEST_S: Final = 0.5
"""How often a store is looked at: often while something happens."""
SHARE: Final = 4
"""A pause is at least so many times as long as the look before it."""
AGAIN_S: Final = 5.0
"""How often a run is looked at that seems to have no news."""
RESTS: Final = (*ENDED, "waiting", "paused")
log = logging.getLogger("engine_shim")


class StoreWatch:
    """Looks at a store for all who follow runs of it, and wakes each whose run has news."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._followers: dict[str, list[asyncio.Event]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def waking(self, run: str, news: asyncio.Event) -> Iterator[None]:
        """Set the event whenever the run has news."""
        self._followers.setdefault(run, []).append(news)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            self._followers[run].remove(news)
            if not self._followers[run]:
                del self._followers[run]
            if not self._followers:
                self._looking.cancel()
                self._looking = None

    async def _look_on(self) -> None:
        """Look until the task is cancelled. While the store is away those who follow say so."""
        pause_s, known = SHORTEST_S, dict[str, tuple[str, int]]()
        while True:
            began, found = monotonic(), known
            try:
                found = await asyncio.to_thread(self._store.look, list(self._followers))
            except JournalError as error:
                log.debug("the store cannot be looked at: %s", error)
            new = [run for run, (status, last) in found.items() if _is_news(known.get(run), status, last)]
            for news in (news for run in new for news in self._followers.get(run, ())):
                news.set()
            known, pause_s = found, SHORTEST_S if new else min(pause_s * 1.5, LONGEST_S)
            await asyncio.sleep(max(pause_s, SHARE * (monotonic() - began)))


def _is_news(known: tuple[str, int] | None, status: str, last: int) -> bool:
    return known is None or status != known[0] or last > known[1]


class Follower:
    """Tells the listener of a run of the rows that are appended to it from now on, and hears who stops it."""

    def __init__(self, store: RunStore, run: str, stop: StopSignal, listener: Watcher | None) -> None:
        self._store, self._index, self._run, self._listener = store, RunIndex(store), run, listener
        self._stop, self._taken = stop, stop.requested
        self.news, self._looked = asyncio.Event(), -AGAIN_S
        """`news` is set whenever there may be something new."""
        stop.listeners.append(self.news.set)
        found = store.tail(run)
        self._after = found[-1][0] if found else 0
        if isinstance(listener, EventSource):
            listener.resume_from(store.journal.load(run))

    def take_stop(self) -> Stopping | None:
        """What was requested since this was last asked."""
        new = self._stop.requested if self._stop.requested != self._taken else None
        self._taken = self._stop.requested
        return new

    async def wait(self) -> None:
        """Wait until there may be something new."""
        while not (self.news.is_set() or self._stop.has_messages or monotonic() - self._looked > AGAIN_S):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), LONGEST_S)

    async def look(self) -> tuple[str, RunResult | None]:
        """The status of the run, empty while its store is away, and its result where it rests."""
        self.news.clear()
        self._looked = monotonic()
        try:
            status, result, rows = await asyncio.to_thread(self._read)
        except JournalError as error:
            if isinstance(error, Damaged):
                raise
            log.warning("run %s cannot be looked at: %s", self._run, error)
            return "", None
        for position, row in rows:
            self._after = position
            if self._listener is not None:
                self._listener(row)
        return status, result

    def _read(self) -> "tuple[str, RunResult | None, list[tuple[int, Row]]]":
        """The rows come last, so that none of a run at rest is missing."""
        status = self._index.status(self._run)
        result = read_rested(self._index, self._run, status) if status in RESTS else None
        return status, result, self._store.tail(self._run, self._after)


def read_rested(index: RunIndex, run: str, status: str = "") -> RunResult | None:
    """The result of a run that rests; None while something is left to do, unless it is paused."""
    tape, _ = index.load(run)
    return read_result(run, tape) or (read_paused(run, tape) if status == "paused" else None)
