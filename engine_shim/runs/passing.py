"""What passes in runs that other processes drive, read from their store and told at its place among the rows."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from agent_core.journal.record import Row
from agent_core.run.row_listener import AnswerListener
from engine_shim.store.passing_events import FOLLOWED_S, Passing, PassingEvents, Piece

RENEWED_S: Final = FOLLOWED_S / 3
"""How often a follower says that it follows."""
Placed = tuple[int, Row]
"""A row with its position."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece to show, behind record `n` of its strand."""

    strand: str
    n: int
    piece: Piece

    def tell(self, listener: AnswerListener) -> None:
        kind, text, number = self.piece
        if kind == "answer":
            listener.show_delta(self.strand, self.n, text)
        elif kind == "discarded":
            listener.show_delta(self.strand, self.n, None)
        elif kind == "thought":
            listener.show_thought(self.strand, self.n, text)
        elif kind == "progress":
            listener.show_progress(self.strand, self.n, text, number)


class PassingReader:
    """What passes in one run: `read` it after the rows, so that all is there that was before them, and `merge` it.

    Each event is told behind the row that its act began with, and before the act's answer. An answer of which a piece
    is missing is discarded: so is one whose writer died, at the latest when the act has its answer.
    """

    def __init__(self, events: PassingEvents, run: str) -> None:
        self._events, self.run = events, run
        self.seq = 0
        """The position of the last event that was read."""
        self._newest = 0
        self._last: dict[str, int] = {}
        """By strand the number of the last row that was told."""
        self._later: list[Passing] = []
        """What is behind rows that are still to come."""
        self._shown: dict[str, int] = {}
        """By strand how many characters of an answer were shown that is not whole yet."""

    def resume_from(self, rows: Iterable[Row]) -> None:
        """Know rows that are told already, or need not be."""
        self._last |= {row.path: row.n for row in rows}

    def note(self, seq: int) -> None:
        """Note that the run has an event at this position."""
        self._newest = max(self._newest, seq)

    @property
    def has_news(self) -> bool:
        return self._newest > self.seq

    def read(self) -> list[Passing]:
        """Return the events that are not read yet."""
        found = self._events.read(self.run, self.seq)
        self.seq = found[-1][0] if found else max(self.seq, self._newest)
        return [each for _, each in found]

    def merge(self, rows: Iterable[Placed], found: Sequence[Passing]) -> Iterator[Placed | Shown]:
        """Yield new rows, and what passed before and after them, in order."""
        self._later += [each for each in found if each.n >= self._last.get(each.strand, -1)]
        for position, row in rows:
            yield from self._show_before(row)
            self._last[row.path] = row.n
            yield position, row
        due, self._later = self._later, []
        for each in due:
            last = self._last.get(each.strand, -1)
            if each.n == last:
                yield from self._show(each)
            elif each.n > last:
                self._later.append(each)

    def _show_before(self, row: Row) -> Iterator[Shown]:
        """Yield what passed in a strand before its next row; an answer is discarded that did not become whole."""
        mine = [each for each in self._later if each.strand == row.path and each.n == row.n - 1]
        for each in mine:
            yield from self._show(each)
        if mine:
            self._later = [each for each in self._later if each.strand != row.path or each.n >= row.n]
        yield from self._discard(row.path, row.n - 1)

    def _show(self, passing: Passing) -> Iterator[Shown]:
        strand, n = passing.strand, passing.n
        for piece in passing.pieces:
            known = self._shown.get(strand, 0)
            if piece.kind == "whole":
                if piece.number == known:
                    self._shown.pop(strand, None)
            elif piece.kind != "answer":
                if piece.kind == "discarded":
                    self._shown.pop(strand, None)
                yield Shown(strand, n, piece)
            else:
                if piece.number != known:
                    yield from self._discard(strand, n)
                if piece.number in (known, 0):
                    self._shown[strand] = int(piece.number or 0) + len(piece.text)
                    yield Shown(strand, n, piece)

    def _discard(self, strand: str, n: int) -> Iterator[Shown]:
        if self._shown.pop(strand, None):
            yield Shown(strand, n, Piece("discarded"))


class PassingWatch:
    """Says for all followers of a process that they follow, and looks for events of all their runs at once."""

    def __init__(self, events: PassingEvents) -> None:
        self._events = events
        self._said: frozenset[str] = frozenset()
        self._said_at = -FOLLOWED_S

    def look(self, readers: Collection[PassingReader]) -> list[PassingReader]:
        """Return those with events that they have not read."""
        runs = frozenset(reader.run for reader in readers)
        if not runs:
            return []
        if monotonic() - self._said_at > RENEWED_S or not runs <= self._said:
            self._events.follow(runs)
            self._said, self._said_at = runs, monotonic()
        found = self._events.list_news(runs, min(reader.seq for reader in readers))
        for reader in readers:
            reader.note(found.get(reader.run, 0))
        return [reader for reader in readers if reader.has_news]
