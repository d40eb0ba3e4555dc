"""FeedMerge: the rows of a run and what no record holds, in the order in which they happened, as frames. Pure.

| what comes | is shown |
|---|---|
| a row, from the journal | at once, after what was noted before it |
| a row that was appended just now | as soon as it comes from the journal; until then it keeps back what follows it |
| a piece of an answer, a tool's word | at once where nothing is kept back, else after that |
| before all is read that was there | nothing that no record holds: it follows what is recorded |
| the row that ends the run | as the last one: the feed is over |

A follower gets each frame of a row after its position; of what no record holds what came since they follow, and of an
answer that is still being written all of it.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from agent_core.journal.record import Row
from agent_core.run.event_listener import EventListener
from agent_core.run.events import Event

PASSING: Final = ("thought_delta", "answer_delta", "answer_discarded", "tool_progress")
"""Events that no record holds: only those who follow at that moment get them."""

POSITION_TEXT: Final = r"^([0-9]{1,15}\.[0-9]{1,9})?$"
"""The id of an event, as in `12.0`; empty for the beginning."""

Show = Callable[[EventListener], None]


class Position(NamedTuple):
    """Where an event stands: the row that it comes from, and its number among those of the row."""

    row: int
    number: int

    @classmethod
    def read(cls, text: str | None) -> "Position":
        """Return the position in an event's id; the beginning for any other text."""
        if not text or not re.fullmatch(POSITION_TEXT, text):
            return cls(0, 0)
        row, _, number = text.partition(".")
        return cls(int(row), int(number))


class _Key(NamedTuple):
    """Which row it is."""

    path: str
    n: int


class Frame(NamedTuple):
    """One event, and as it is sent. A passing one has no position."""

    position: Position | None
    event: Event
    data: bytes


class FeedMerge:
    """The frames of one run. `frames` only grows; `is_over` says that no more come."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.is_over = False
        self._listener = EventListener(self._add)
        self._at = Position(0, 0)
        self._unsettled: dict[str, int] = {}
        """By strand the first frame of an answer that is still being written."""
        self._last: dict[str, int] = {}
        self._noted: deque[_Key | Show] = deque()
        """What happened since the journal was read, in order: rows that it has by now, and what no record holds."""
        self._has_read = False

    @property
    def row(self) -> int:
        """The position of the last row that was read."""
        return self._at.row

    def note(self, row: Row) -> None:
        """Note a row that was appended to the journal just now."""
        if row.n > self._last.get(row.path, -1):
            self._noted.append(_Key(row.path, row.n))

    def show(self, show: Show) -> None:
        """Show what no record holds, after all that is recorded before it."""
        if self._noted or not self._has_read:
            self._noted.append(show)
        else:
            show(self._listener)

    def show_placed(self, show: Show) -> None:
        """Show at once what comes from the store at its place among the rows that are read."""
        show(self._listener)

    def read(self, position: int, row: Row) -> None:
        """Read a row of the journal, unless it was read before."""
        if position <= self._at.row:
            return
        self._show_noted(_Key(row.path, row.n))
        self._at, self._last[row.path] = Position(position, 0), row.n
        self._listener(row)
        if self._has_read:
            self._show_noted()
        if "/" not in row.path and row.kind == "run_finished":
            self.is_over = True

    def note_all_read(self) -> None:
        """Note that all is read that the journal had."""
        self._has_read = True
        self._show_noted()

    def select(self, start: int, after: Position, known: int) -> list[Frame]:
        """Return the frames from number `start` on that a follower needs, who has had those up to the position `after`
        and came when there were `known` frames."""
        return [
            frame
            for number, frame in enumerate(self.frames[start:], start)
            if (self._is_new(frame, number, known) if frame.position is None else frame.position > after)
        ]

    def _is_new(self, frame: Frame, number: int, known: int) -> bool:
        return number >= known or number >= self._unsettled.get(frame.event["strand"], known)

    def _show_noted(self, key: "_Key | None" = None) -> None:
        """Show what happened before a row was appended; without one, before any that is not read yet."""
        if key is not None and key not in self._noted:
            return
        while self._noted and (key is not None or not isinstance(self._noted[0], _Key)):
            each = self._noted.popleft()
            if not isinstance(each, _Key):
                each(self._listener)
            elif each == key:
                return

    def _add(self, event: Event) -> None:
        self._at = Position(self._at.row, self._at.number + 1)
        position = None if event["event"] in PASSING else self._at
        if event["event"] == "answer_delta":
            self._unsettled.setdefault(event["strand"], len(self.frames))
        elif event["event"] not in ("tool_progress", "thought_delta"):
            self._unsettled.pop(event["strand"], None)
        self.frames.append(Frame(position, event, _encode(event, position)))


def _encode(event: Event, position: Position | None) -> bytes:
    identity = b"" if position is None else b"id: %d.%d\n" % position
    return b"%sevent: %s\ndata: %s\n\n" % (identity, event["event"].encode(), orjson.dumps(event))
