"""PassingWriter: writes what no record holds of a worker's acts, for those who follow their runs in other processes."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Final

from agent_core.effects import CallModel
from agent_core.errors import JournalError
from agent_core.journal.operations import Act
from agent_core.journal.record import Row, Tape
from agent_core.run.executor import Executor
from engine_shim.store.passing_events import Passing, PassingEvents, Piece

WRITTEN_S: Final = 0.2
"""What passes in this time is written together, of all acts of a worker."""
ASKED_S: Final = 1.0
"""How often it is asked whether somebody still follows."""
PATIENCE_S: Final = 1.0
"""How long an answer waits until the last of what was shown of it is written."""
KEPT_S: Final = 3.0
"""How long the events of an act stay after its answer, for followers that have not looked yet."""
SWEPT_S: Final = 60.0
"""How often a worker deletes what others have left that died."""
MOST: Final = 1000
"""So many pieces of an act are kept until they are written."""
log = logging.getLogger("engine_shim")


class ShownAct:
    """Hears what passes in one act of a run, in the event loop of its worker."""

    def __init__(self, writer: "PassingWriter", run: str) -> None:
        self.run, self._writer, self._loop = run, writer, asyncio.get_running_loop()
        self.place: tuple[str, int] | None = None
        """Its strand, and the number of the record that it began with, once something was written."""
        self.is_followed, self.asked_at = False, -inf
        self._strand, self._n = "", -1
        self._pieces: list[Piece] = []
        self._length = self._deltas = 0
        self._asking: asyncio.Task[None] | None = None

    def begin(self, act: Act) -> None:
        """Begin to ask whether somebody follows, where that decides how a model is asked."""
        if isinstance(act.effect, CallModel) and self._writer.is_heard:
            self._asking = asyncio.create_task(self._writer.ask(self))

    async def executor(self, executor: Executor) -> Executor:
        """Return what acts, and shows what passes."""
        if self._asking is not None:
            await self._asking
        return replace(executor, events=self) if self._writer.is_heard else executor

    async def settle(self) -> None:
        """Write what is left, before the act's answer is. An answer that came in one piece is in that as soon."""
        if self._length:
            self._add(Piece("whole", "", self._length))
        if self._pieces and (self.place or self._deltas > 1 or self._pieces[0].kind == "progress"):
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await asyncio.shield(self._writer.write())

    def take(self) -> Passing | None:
        """Return what is to be written now."""
        pieces, self._pieces = self._pieces, []
        return Passing(self._strand, self._n, pieces) if pieces else None

    @property
    def has_pieces(self) -> bool:
        return bool(self._pieces)

    # ── as a listener ─────────────────────────────────────────────────────────────────────────────

    @property
    def wants_answers(self) -> bool:
        return self.is_followed

    def resume_from(self, tape: Tape) -> None:
        """Nothing: followers read the records themselves."""

    def __call__(self, row: Row) -> None:
        """Nothing, likewise."""

    def show_progress(self, strand: str, n: int, text: str, fraction: float | None) -> None:
        """Show a tool's own word, perhaps from its own thread."""
        self._loop.call_soon_threadsafe(self._show, strand, n, Piece("progress", text, fraction))

    def show_thought(self, strand: str, n: int, text: str) -> None:
        self._show(strand, n, Piece("thought", text))

    def show_delta(self, strand: str, n: int, text: str | None) -> None:
        if text:
            self._show(strand, n, Piece("answer", text, self._length))
            self._length, self._deltas = self._length + len(text), self._deltas + 1
        elif text is None and self._length:
            self._show(strand, n, Piece("discarded"))
            self._length = 0

    def _show(self, strand: str, n: int, piece: Piece) -> None:
        self._strand, self._n = strand, n
        self._add(piece)
        self._writer.begin()

    def _add(self, piece: Piece) -> None:
        """Add a piece, to the last one where both are of one text."""
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.kind == piece.kind and piece.kind in ("answer", "thought"):
            self._pieces[-1] = last._replace(text=last.text + piece.text)
        elif len(self._pieces) < MOST or piece.kind != "progress":
            self._pieces.append(piece)


class PassingWriter:
    """Writes for all acts of a worker together, while somebody follows their runs. What cannot be written is lost, and
    nothing waits for it.

    Without `events` nothing is shown: no other process has the store.
    """

    def __init__(self, events: PassingEvents | None) -> None:
        self._events = events
        self._acts: set[ShownAct] = set()
        self._answered = deque[tuple[float, tuple[str, str, int]]]()
        """Acts that have their answers, with the time when their events are deleted."""
        self._turn = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None
        self._swept_at = -inf

    @property
    def is_heard(self) -> bool:
        """Whether other processes can hear what passes."""
        return self._events is not None

    @asynccontextmanager
    async def showing(self, run: str) -> AsyncIterator[ShownAct]:
        """Show what passes in an act of a run, until its answer is recorded at the end of the block."""
        act = ShownAct(self, run)
        self._acts.add(act)
        try:
            yield act
        finally:
            self._acts.remove(act)
            if act.place is not None:
                self._answered.append((monotonic() + KEPT_S, (run, *act.place)))
                self.begin()

    async def ask(self, act: ShownAct) -> None:
        """Find out whether somebody follows the run of an act."""
        await asyncio.to_thread(self._ask, [act])

    def begin(self) -> None:
        """Write soon, for as long as there is something."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_on())

    async def write(self) -> None:
        """Write what has passed, and delete what is over."""
        async with self._turn:  # of each act one piece after another
            taken = [(act, passing) for act in self._acts if (passing := act.take())]
            now, over = monotonic(), list[tuple[str, str, int]]()
            while self._answered and self._answered[0][0] <= now:
                over.append(self._answered.popleft()[1])
            if taken or over:
                await asyncio.to_thread(self._write, taken, over)

    async def close(self) -> None:
        """Delete at once what is still there of acts that have their answers."""
        if self._writing is not None:
            self._writing.cancel()
        self._answered = deque((0.0, place) for _, place in self._answered)
        await self.write()

    async def _write_on(self) -> None:
        while self._answered or any(act.has_pieces for act in self._acts):
            await asyncio.sleep(WRITTEN_S)
            await self.write()

    # ── in a thread ───────────────────────────────────────────────────────────────────────────────

    def _ask(self, acts: list[ShownAct]) -> None:
        assert self._events is not None
        if not acts:
            return
        try:
            followed = self._events.find_followed({act.run for act in acts})
        except Exception as error:  # whatever it is, the act goes on
            _note_lost("it is not known who follows", error)
            followed = set[str]()
        for act in acts:
            act.is_followed, act.asked_at = act.run in followed, monotonic()

    def _write(self, taken: list[tuple[ShownAct, Passing]], over: list[tuple[str, str, int]]) -> None:
        assert self._events is not None
        now = monotonic()
        self._ask([act for act, _ in taken if now - act.asked_at > ASKED_S])
        shown = [(act, passing) for act, passing in taken if act.is_followed]
        try:
            if shown or over:
                self._events.write([(act.run, passing) for act, passing in shown], over)
            if over and now - self._swept_at > SWEPT_S:
                self._swept_at = now
                self._events.sweep()
        except Exception as error:  # likewise, and its answer is recorded
            _note_lost("what passes cannot be shown", error)
        for act, passing in shown:
            act.place = passing.strand, passing.n


def _note_lost(what: str, error: Exception) -> None:
    """Note why something is not shown; a store that is away is nothing to complain of here."""
    log.log(logging.DEBUG if isinstance(error, JournalError) else logging.ERROR, "%s: %r", what, error)
