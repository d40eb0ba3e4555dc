"""Feeds: the events of runs for those who follow them, read from the journal once for all followers of a run."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

from agent_core.errors import JournalAway, JournalError
from agent_core.journal.record import Row, Tape
from engine_shim.intervals import FEED_INTERVAL_S, QUIET_INTERVAL_S
from engine_shim.service.feed_merge import FeedMerge, Frame, Position, Show
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.run_store import RunStore

TOGETHER_S: Final = 0.02
"""What happens within this time is read together."""
HEARTBEAT_S: Final = 15.0
"""How long a follower hears nothing at most."""
HEARTBEAT: Final = b": still here\n\n"
AT_ONCE: Final = 200
"""How many rows are read before others have their turn."""
EXPECTED_S: Final = 5.0
"""How long what happens in a run is kept for somebody who asked for it to begin, and is about to follow it."""
TOGETHER_BYTES: Final = 64 * 1024
"""How much is sent together: what a follower that does not read has of the events for itself."""
OVERLAP: Final = 256
"""So many rows a look at the store goes back: what was written side by side may be seen in another order."""
_OVER: Final = b"event: over\ndata: {}\n\n"
_MISSING: Final = b"event: missing\ndata: {}\n\n"

log = logging.getLogger("engine_shim")


class Feed:
    """The events of one run: each is read and encoded once for all followers."""

    def __init__(self, store: RunStore, run: str) -> None:
        self._store, self._run, self._merge = AsyncRunStore(store), run, FeedMerge()
        self._news, self._added = asyncio.Event(), asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._followers = 0
        self._is_closed = False

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
        known, at = len(frames), 0
        try:
            while True:
                start, at = at, len(frames)
                if selected := self._merge.select(start, after, known):
                    yield selected
                if at < len(frames):
                    continue
                if self._is_over:
                    return
                try:
                    await asyncio.wait_for(self._added.wait(), HEARTBEAT_S)
                except TimeoutError:
                    yield []
        finally:
            self._followers -= 1
            if not self._followers:
                self._pump.cancel()

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
        """Read the journal whenever there is news of the run, and now and then."""
        while not self._is_over:
            for count, (position, row) in enumerate(await self._read_tail(), 1):
                self._merge.read(position, row)
                if count % AT_ONCE == 0:
                    self._wake()
                    await asyncio.sleep(0)
            self._merge.note_all_read()
            self._wake()
            await asyncio.sleep(TOGETHER_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), QUIET_INTERVAL_S)
            self._news.clear()

    async def _read_tail(self) -> list[tuple[int, Row]]:
        """Return the rows that are not read yet; none while the database is away."""
        try:
            return await self._store.tail(self._run, self._merge.row)
        except JournalAway as error:
            log.debug("the events of run %s wait for the journal: %s", self._run, error)
            return []

    def _end(self, pump: "asyncio.Task[None]") -> None:
        """Let all followers go where nothing is read any more; they come again for what is missing."""
        self.close()
        if not pump.cancelled() and (error := pump.exception()):
            log.error("the events of run %s cannot be read on: %s", self._run, error)

    def _wake(self) -> None:
        self._added.set()
        self._added = asyncio.Event()


class Feeds:
    """The feeds of a store, each for as long as somebody follows it.

    One look at the store for all of them says which have new rows; the drivers of this process wake theirs at once.
    """

    def __init__(self, store: RunStore) -> None:
        self._store, self._runs = store, AsyncRunStore(store)
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

    async def follow(self, run: str, after: Position) -> AsyncGenerator[bytes]:
        """Yield the events of a run as server-sent events, after a position; a comment where there are none."""
        async with aclosing(self.frames(run, after)) as followed:
            async for frames in followed:
                for piece in _pieces(frames):
                    yield piece

    def frames(self, run: str, after: Position) -> AsyncGenerator[list[Frame]]:
        """Return the events of a run after a position, as `Feed.follow` gives them. The run counts as followed from now
        on."""
        return self._follow(run, self._open(run), after)

    def _open(self, run: str) -> Feed:
        """Return the feed of a run; there is a look at the store as long as there is one."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())
        return self._feeds.setdefault(run, Feed(self._store, run))

    async def _look_on(self) -> None:
        """Wake the feeds of runs with new rows, until there is no feed.

        Rows may be seen a little later than others with a higher position: so each look goes back by some.
        """
        newest, seen = 0, dict[str, int]()
        while True:
            found: dict[str, int] = {}
            try:
                found = await self._runs.run_blocking(self._store.list_news, max(0, newest - OVERLAP))
            except JournalError as error:
                log.debug("the store cannot be looked at: %s", error)
            for run in found.keys() & self._feeds.keys():
                if found[run] > seen.get(run, 0):
                    self._feeds[run].wake()
            newest, seen = max([newest, *found.values()]), found or seen
            await asyncio.sleep(FEED_INTERVAL_S)
            if not self._feeds:
                return

    async def _follow(self, run: str, feed: Feed, after: Position) -> AsyncGenerator[list[Frame]]:
        try:
            async with aclosing(feed.follow(after)) as followed:  # its follower is gone before the look at the others
                async for frames in followed:
                    yield frames
        finally:
            self._drop(run, feed)

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
        for feed in list(self._feeds.values()):
            feed.close()
        if self._looking is not None:
            self._looking.cancel()


@dataclass(frozen=True, slots=True)
class FeedListener:
    """A driver's listener: wakes the feed of its run, if somebody follows that."""

    feeds: Feeds
    run: str
    loop: asyncio.AbstractEventLoop

    @property
    def wants_answers(self) -> bool:
        return self.feeds.find(self.run) is not None

    def resume_from(self, tape: Tape) -> None:
        """Nothing: a feed reads the journal itself."""

    def __call__(self, row: Row) -> None:
        if feed := self.feeds.find(self.run):
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
