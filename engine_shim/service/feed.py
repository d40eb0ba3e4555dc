"""Feed: the events of a run, read from the journal once for all who follow it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

from agent_core.errors import JournalAway
from agent_core.journal.record import Row
from engine_shim.runs.passing import PassingReader, Placed, Shown
from engine_shim.service.feed_merge import FeedMerge, Frame, Position, Show
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.passing_events import Passing
from engine_shim.store.run_store import RunStore

HEARTBEAT_S: Final = 15.0
"""How long a follower hears nothing at most."""
AT_ONCE: Final = 200
"""How many rows are read before others have their turn."""

log = logging.getLogger("engine_shim")


class Feed:
    """The events of one run: each is read and encoded once for all followers. `pace` gives the seconds within which
    what happens is read together, `heartbeat` those without news after which a follower gets an empty list, and
    `on_left` hears of a follower who leaves."""

    def __init__(
        self,
        store: RunStore,
        run: str,
        passing: PassingReader | None = None,
        *,
        pace: Callable[[], float],
        heartbeat: float = HEARTBEAT_S,
        on_left: "Callable[[Feed], None]",
    ) -> None:
        self._store, self._run, self._merge = AsyncRunStore(store), run, FeedMerge()
        self._pace, self._heartbeat, self._on_left = pace, heartbeat, on_left
        self.passing = passing
        self._news, self._added = asyncio.Event(), asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._followers = 0
        self._is_closed = self._has_read = False

    def wake(self) -> None:
        """Look at the journal: there may be something new."""
        self._news.set()

    def note(self, row: Row) -> None:
        """Note a row that was appended to the journal just now."""
        self._merge.note(row)
        self._news.set()

    def show(self, show: Show) -> None:
        """Show what no record holds, after all that is recorded before it."""
        self._merge.show(show)
        self._wake()

    async def follow(self, after: Position) -> AsyncGenerator[list[Frame]]:
        """Yield the events after a position, then those to come, until the run ends; none after a while without any."""
        self._followers += 1
        if self._pump is None:
            self._pump = asyncio.create_task(self._read_on())
            self._pump.add_done_callback(self._end)
        frames = self._merge.frames
        known, at, now = len(frames), 0, asyncio.get_running_loop().time
        silent_until = now() + self._heartbeat
        try:
            while True:
                start, at = at, len(frames)
                if selected := self._merge.select(start, after, known):
                    yield selected
                    silent_until = now() + self._heartbeat
                if at < len(frames):
                    continue
                if self._is_over:
                    return
                try:
                    async with asyncio.timeout_at(silent_until):  # a look at the journal that finds nothing is no news
                        await self._added.wait()
                except TimeoutError:
                    yield []
                    silent_until = now() + self._heartbeat
        finally:
            self._followers -= 1
            if not self._followers:
                self._pump.cancel()
            self._on_left(self)

    @property
    def is_followed(self) -> bool:
        return self._followers > 0

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._merge.is_over

    def close(self) -> None:
        """Let all followers go."""
        self._is_closed = True
        self._wake()

    async def _read_on(self) -> None:
        """Read the journal whenever there is news of the run, and now and then, which `Feeds` has it do."""
        while not self._is_over:
            for count, told in enumerate(await self._read_tail(), 1):
                if isinstance(told, Shown):
                    self._merge.show_placed(told.tell)
                else:
                    self._merge.read(*told)
                if count % AT_ONCE == 0:
                    self._wake()
                    await asyncio.sleep(0)
            self._merge.note_all_read()
            self._wake()
            await asyncio.sleep(self._pace())
            await self._news.wait()
            self._news.clear()

    async def _read_tail(self) -> Iterable[Placed | Shown]:
        """Return the rows that are not read yet, and what passes where others drive; none while the database is
        away."""
        try:
            if self.passing is None:
                return await self._store.tail(self._run, self._merge.row)
            rows, found = await self._store.run_blocking(self._read_passing, self.passing)
            return self.passing.merge(rows, found)
        except JournalAway as error:
            log.debug("the events of run %s wait for the journal: %s", self._run, error)
            return []

    def _read_passing(self, passing: PassingReader) -> tuple[list[Placed], list[Passing]]:
        """Return new rows, and then what passes, so that all is there that was before them."""
        rows = self._store.store.tail(self._run, self._merge.row)
        if not self._has_read:  # who comes late has no need of what passed before the records that are there
            passing.resume_from(row for _, row in rows)
            self._has_read = True
        return rows, passing.read() if rows or passing.has_news else []

    def _end(self, pump: "asyncio.Task[None]") -> None:
        """Let all followers go where nothing is read any more; they come again for what is missing."""
        self.close()
        if not pump.cancelled() and (error := pump.exception()):
            log.error("the events of run %s cannot be read on: %s", self._run, error)

    def _wake(self) -> None:
        self._added.set()
        self._added = asyncio.Event()
