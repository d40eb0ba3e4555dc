"""Feeds: the events of the runs of a store, for all who follow them, and one look at the store for all of those."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent_core.errors import JournalError
from agent_core.journal.record import Row, Tape
from engine_shim.intervals import FEED_INTERVAL_S, QUIET_INTERVAL_S
from engine_shim.runs.passing import PassingReader, PassingWatch
from engine_shim.service.feed import Feed
from engine_shim.service.feed_merge import Frame, Position, Show
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.passing_events import PassingEvents
from engine_shim.store.run_store import DatabaseRunStore, RunStore

HEARTBEAT: Final = b": still here\n\n"
EXPECTED_S: Final = 5.0
"""How long what happens in a run is kept for somebody who asked for it to begin, and is about to follow it."""
TOGETHER_S: Final = (0.02, 0.1)
"""What happens in a run within this time is read together: the more runs are followed, the more of it."""
READS_A_SECOND: Final = 1000.0
"""So many reads all feeds make together, as long as the longest of these times allows it."""
TOGETHER_BYTES: Final = 64 * 1024
"""How much is sent together: what a follower that does not read has of the events for itself."""
OVERLAP: Final = 256
"""So many rows a look at the store goes back: what was written side by side may be seen in another order."""
QUIET_READS: Final = 25
"""How many feeds at most a look has read their runs without any news, however many there are."""
_OVER: Final = b"event: over\ndata: {}\n\n"
_MISSING: Final = b"event: missing\ndata: {}\n\n"
log = logging.getLogger("engine_shim")


class Feeds:
    """The feeds of a store, each for as long as somebody follows it.

    One look at the store for all of them says which have new rows; the drivers of this process wake theirs at once.
    With `passing` workers drive the runs, and what no record holds is found there.
    """

    def __init__(self, store: RunStore, passing: PassingEvents | None = None) -> None:
        self._store, self._runs, self._passing = store, AsyncRunStore(store), passing
        self._passing_watch = None if passing is None else PassingWatch(passing)
        self._feeds: dict[str, Feed] = {}
        self._looking: asyncio.Task[None] | None = None

    def watch(self, run: str) -> "FeedListener":
        """Return what the driver of a run in this process tells of it."""
        return FeedListener(self, run, asyncio.get_running_loop())

    def find(self, run: str) -> Feed | None:
        """Return the feed of a run that somebody follows, or is about to."""
        return self._feeds.get(run)

    def expect(self, run: str) -> None:
        """Keep what happens from now on for somebody who is about to follow the run."""
        feed = self._open(run)
        asyncio.get_running_loop().call_later(EXPECTED_S, self._drop, run, feed)

    def _drop(self, run: str, feed: Feed) -> None:
        if not feed.is_followed and self._feeds.get(run) is feed:
            del self._feeds[run]
        if not self._feeds and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def follow(self, run: str, after: Position) -> AsyncGenerator[bytes]:
        """Yield the events of a run as server-sent events, after a position; a comment where there are none."""
        async with aclosing(self.frames(run, after)) as followed:
            async for frames in followed:
                for piece in _pieces(frames):
                    yield piece

    def frames(self, run: str, after: Position) -> AsyncGenerator[list[Frame]]:
        """Return the events of a run after a position, as `Feed.follow` gives them. The run counts as followed from now
        on."""
        return self._open(run).follow(after)

    def _open(self, run: str) -> Feed:
        """Return the feed of a run; there is a look at the store as long as there is one."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        if (feed := self._feeds.get(run)) is None:
            reader = None if self._passing is None else PassingReader(self._passing, run)
            feed = self._feeds[run] = Feed(self._store, run, reader, pace=self._pace, on_left=partial(self._drop, run))
        return feed

    def _pace(self) -> float:
        shortest, longest = TOGETHER_S
        return min(longest, max(shortest, len(self._feeds) / READS_A_SECOND))

    async def _look_on(self) -> None:
        """Wake the feeds of runs with new rows, until it is cancelled, when there is no feed any more.

        Rows may be seen a little later than others with a higher position: so each look goes back by some.
        """
        newest, seen, quiet = 0, dict[str, int](), QuietReads()
        while True:
            await asyncio.sleep(FEED_INTERVAL_S)  # a feed reads its run itself when it begins
            found: dict[str, int] = {}
            try:
                found = await self._runs.run_blocking(self._store.list_news, max(0, newest - OVERLAP))
                await self._look_for_passing()
            except Exception as error:  # whatever it is, the next look comes: the followers of all runs wait for it
                is_away = isinstance(error, JournalError)
                log.log(logging.DEBUG if is_away else logging.ERROR, "the store cannot be looked at: %r", error)
            for run in found.keys() & self._feeds.keys():
                if found[run] > seen.get(run, 0):
                    self._feeds[run].wake()
            for run in quiet.take(self._feeds):
                self._feeds[run].wake()
            newest, seen = max([newest, *found.values()]), found or seen

    async def _look_for_passing(self) -> None:
        """Wake the feeds of runs in which something passed."""
        if self._passing_watch is not None:
            feeds = [feed for feed in self._feeds.values() if feed.passing is not None]
            readers = [feed.passing for feed in feeds if feed.passing is not None]
            found = await self._runs.run_blocking(self._passing_watch.look, readers)
            for feed in feeds:
                if feed.passing in found:
                    feed.wake()

    async def check_readable(self, run: str) -> None:
        """Unreadable for a run whose records were erased, or are encrypted by a key that is not here."""
        if isinstance(self._store, DatabaseRunStore):
            await self._runs.run_blocking(self._store.contents.check_readable, run)

    async def follow_many(
        self, wanted: Sequence[tuple[str, Position]], missing: Collection[int] = ()
    ) -> AsyncGenerator[bytes]:
        """Yield the events of several runs as one stream, each after a position.

        Each event begins with a line `of: N`, the number of its run among those that are wanted. An event `over` says
        that no more come of a run, and `missing` that the run of a number in `missing` is none.
        """
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)

        async def pump(number: int, run: str, after: Position) -> None:
            try:
                async with aclosing(self.frames(run, after)) as followed:
                    async for frames in followed:
                        for piece in _pieces([frame._replace(data=_of(number) + frame.data) for frame in frames]):
                            await pieces.put(piece)
                await pieces.put(_of(number) + _OVER)
            except Exception as error:  # its follower comes again
                log.error("the events of run %s cannot be read on: %s", run, error)
                await pieces.put(None)

        for number in missing:
            yield _of(number) + _MISSING
        left = [(number, *each) for number, each in enumerate(wanted) if number not in missing]
        pumps = [asyncio.create_task(pump(*each)) for each in left]
        try:
            yield HEARTBEAT  # all earlier events were sent
            while not (pieces.empty() and all(each.done() for each in pumps)):
                if (piece := await pieces.get()) is None:
                    return
                yield piece
        finally:
            for each in pumps:
                each.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def close(self) -> None:
        """Let all followers go; a later one is served anew."""
        feeds, self._feeds = self._feeds, {}
        for feed in feeds.values():
            feed.close()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None


class QuietReads:
    """Whose turn it is to be read without any news, look by look: each run every QUIET_INTERVAL_S, but QUIET_READS at a
    look at most, so that a store is asked no more often because more runs are open."""

    def __init__(self) -> None:
        self._due, self._in_turn = 0.0, list[str]()

    def take(self, runs: Collection[str]) -> list[str]:
        """Return the runs that are read at this look."""
        self._due = min(self._due + len(runs) * FEED_INTERVAL_S / QUIET_INTERVAL_S, QUIET_READS)
        taken = list[str]()
        while runs and self._due >= 1:
            self._in_turn = self._in_turn or [*runs]
            run = self._in_turn.pop()
            if run in runs:
                taken.append(run)
                self._due -= 1
        return taken


@dataclass(frozen=True, slots=True)
class FeedListener:
    """A driver's listener: wakes the feed of its run, if somebody follows that."""

    feeds: Feeds
    run: str
    loop: asyncio.AbstractEventLoop

    @property
    def wants_answers(self) -> bool:
        return self.run in self.feeds._feeds

    def resume_from(self, tape: Tape) -> None:
        """Nothing: a feed reads the journal itself."""

    def __call__(self, row: Row) -> None:
        if feed := self.feeds._feeds.get(self.run):
            feed.note(row)

    def show_progress(self, strand: str, n: int, text: str, fraction: float | None) -> None:
        """Show a tool's own word, perhaps from its own thread."""
        self.loop.call_soon_threadsafe(self._show, lambda source: source.show_progress(strand, n, text, fraction))

    def show_thought(self, strand: str, n: int, text: str) -> None:
        self._show(lambda source: source.show_thought(strand, n, text))

    def show_delta(self, strand: str, n: int, text: str | None) -> None:
        self._show(lambda source: source.show_delta(strand, n, text))

    def _show(self, show: Show) -> None:
        if feed := self.feeds.find(self.run):
            feed.show(show)


def _pieces(frames: list[Frame]) -> Iterator[bytes]:
    """Yield what is sent of the frames, together as far as it is not much; a comment for none."""
    together: list[bytes] = []
    size = 0
    for frame in frames:
        together.append(frame.data)
        size += len(frame.data)
        if size >= TOGETHER_BYTES:
            yield b"".join(together)
            together, size = [], 0
    if together or not frames:
        yield b"".join(together) or HEARTBEAT


def _of(number: int) -> bytes:
    return b"of: %d\n" % number
