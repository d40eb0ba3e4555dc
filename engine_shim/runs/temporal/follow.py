"""How runs are followed that others drive: one look at the store for all of them, then one at each that has news."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

from agent_core.errors import Damaged, JournalError
from agent_core.run.control import Stopping, StopSignal
from agent_core.run.row_listener import AnswerListener
from agent_core.statuses import SETTLED, ListedStatus
from engine_shim.intervals import FEED_INTERVAL_S, FOLLOW_INTERVALS_S, QUIET_INTERVAL_S
from engine_shim.runs.drive import RunResult
from engine_shim.runs.passing import PassingReader, PassingWatch, Shown
from engine_shim.runs.results import read_paused, read_result
from engine_shim.store.index import RunIndex
from engine_shim.store.passing_events import Passing, passing_events_of
from engine_shim.store.run_store import RunStore

if TYPE_CHECKING:
    from agent_core.journal.record import Row

SHORTEST_S, LONGEST_S = FOLLOW_INTERVALS_S
SHARE: Final = 4
"""A pause is at least so many times as long as the look before it."""
log = logging.getLogger("engine_shim")


class StoreWatch:
    """Looks at a store for all who follow runs of it, and tells each what it saw of its run."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._events = passing_events_of(store)
        self._passing = None if self._events is None else PassingWatch(self._events)
        self._followers: set[Follower] = set()
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def telling(self, follower: "Follower") -> Iterator[None]:
        """Tell the follower of its run until the end of the block."""
        self._followers.add(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            self._followers.remove(follower)
            if not self._followers:
                self._looking.cancel()
                self._looking = None

    async def _look_on(self) -> None:
        """Look until the task is cancelled. While the store is away those who follow say so."""
        pause_s = SHORTEST_S
        while True:
            began, asking = monotonic(), list(self._followers)
            try:
                found, passed = await asyncio.to_thread(self._look, asking)
            except Exception as error:  # whatever it is, the next look comes: all who follow wait for it
                is_away = isinstance(error, JournalError)
                log.log(logging.DEBUG if is_away else logging.ERROR, "the store cannot be looked at: %r", error)
                found, passed = {}, []
            told = [each.note(*found[each.run]) for each in asking if each.run in found]
            for each in passed:
                each.news.set()
            longest_s = FEED_INTERVAL_S if any(each.passing for each in asking) else LONGEST_S
            pause_s = SHORTEST_S if any(told) else min(pause_s * 1.5, longest_s)
            await asyncio.sleep(min(max(pause_s, SHARE * (monotonic() - began)), QUIET_INTERVAL_S))

    def _look(self, asking: "list[Follower]") -> "tuple[dict[str, tuple[ListedStatus, int]], list[Follower]]":
        """Return the status of each run with its last row, and the followers of those in which something passes."""
        found = self._store.poll_status([each.run for each in asking])
        readers = [each.passing for each in asking if each.passing is not None]
        if self._passing is None or not readers:
            return found, []
        try:
            read = self._passing.look(readers)
        except JournalError as error:  # the records are read all the same
            log.debug("what passes cannot be looked at: %s", error)
            return found, []
        return found, [each for each in asking if each.passing in read]

    def open_reader(self, run: str) -> PassingReader | None:
        """Return what reads that which passes in a run, which counts as followed from now on."""
        if self._events is None:
            return None
        try:
            self._events.follow([run])
        except JournalError as error:
            log.debug("nobody hears that run %s is followed: %s", run, error)
        return PassingReader(self._events, run)


class Follower:
    """Tells the listener of a run of the rows that are appended to it from now on, and hears who stops it.

    `news` is set whenever there may be something new. Of a stop that was `taken` the workers know already.
    """

    def __init__(
        self,
        store: RunStore,
        run: str,
        stop: StopSignal,
        taken: Stopping | None,
        listener: AnswerListener | None,
        passing: PassingReader | None = None,
    ) -> None:
        self.run, self.news, self.passing = run, asyncio.Event(), passing
        self._store, self._index, self._listener = store, RunIndex(store), listener
        self._stop, self._taken = stop, taken
        self._noted: tuple[ListedStatus, int] | None = None
        self._looked = -QUIET_INTERVAL_S
        stop.listeners.append(self.news.set)
        found = store.tail(run)
        self._after = found[-1][0] if found else 0
        if listener is not None:
            tape = store.journal.load(run)
            listener.resume_from(tape)
            if passing is not None:
                passing.resume_from(row for rows in tape.values() for row in rows)

    def note(self, status: ListedStatus, last: int) -> bool:
        """Note the status of the run and the position of its last row; whether something is new for the follower."""
        known, before = self._noted or (None, 0)
        is_new = status != known or (last > before and self._listener is not None)
        self._noted = status, max(last, before)
        if is_new:
            self.news.set()
        return is_new

    def look_soon(self) -> None:
        """Let the next look come now, and read the status anew."""
        self._looked = -QUIET_INTERVAL_S
        self.news.set()

    def take_stop(self) -> Stopping | None:
        """Return what was requested since this was last asked."""
        new = self._stop.requested if self._is_stopped else None
        self._taken = self._stop.requested
        return new

    async def wait(self) -> None:
        """Wait until there may be something new."""
        while not (self.news.is_set() or self._stop.has_messages or self._is_stopped or self._is_due):
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_S):
                    await self.news.wait()

    @property
    def _is_stopped(self) -> bool:
        """Whether somebody stops the run, and the workers do not know it yet."""
        return self._stop.requested != self._taken

    @property
    def _is_due(self) -> bool:
        """Whether it is time to look without any news."""
        return monotonic() - self._looked > QUIET_INTERVAL_S

    async def look(self) -> tuple[ListedStatus | None, RunResult | None]:
        """Return the status of the run, None while its store is away, and its result where it rests."""
        noted = None if self._is_due else self._noted
        self.news.clear()
        self._looked = monotonic()
        try:
            status, result, rows, passed = await asyncio.to_thread(self._read_all, noted)
        except JournalError as error:
            if isinstance(error, Damaged):
                raise
            log.warning("run %s cannot be looked at: %s", self.run, error)
            return None, None
        for told in rows if self.passing is None else self.passing.merge(rows, passed):
            if not isinstance(told, Shown):
                self._after, row = told
                if self._listener is not None:
                    self._listener(row)
            elif self._listener is not None:
                told.tell(self._listener)
        return status, result

    def _read_all(
        self, noted: tuple[ListedStatus, int] | None
    ) -> "tuple[ListedStatus, RunResult | None, list[tuple[int, Row]], list[Passing]]":
        """Read status, result and rows, and what passes: after the rows, so that all is there that was before them."""
        status, result, rows = self._read(noted)
        is_read = self.passing is not None and (rows or self.passing.has_news)
        return status, result, rows, self.passing.read() if self.passing is not None and is_read else []

    def _read(
        self, noted: tuple[ListedStatus, int] | None
    ) -> "tuple[ListedStatus, RunResult | None, list[tuple[int, Row]]]":
        """Read status, result and rows; the rows last, so that none of a settled run is missing."""
        status = self._index.status(self.run) if noted is None else noted[0]
        result = read_settled(self._index, self.run, status) if status in SETTLED else None
        has_rows = noted is None or result is not None or noted[1] > self._after
        is_told = has_rows and self._listener is not None
        return status, result, self._store.tail(self.run, self._after) if is_told else []


def read_settled(index: RunIndex, run: str, status: ListedStatus | None = None) -> RunResult | None:
    """Return the result of a run that rests; None while something is left to do, unless it is paused."""
    tape, _ = index.load(run)
    return read_result(run, tape, index.store.clock.write_now()) or (
        read_paused(run, tape) if status == "paused" else None
    )
