"""What passes in a run that others drive is told at its place among the rows, and an answer is whole or discarded."""

from collections.abc import Sequence
from typing import Any

import pytest

from agent_core.journal.record import Row
from agent_core.run.event_listener import EventListener
from agent_core.run.events import Event
from engine_shim.runs.passing import PassingReader, PassingWatch, Shown
from engine_shim.store.passing_events import Passing, Piece

STRAND = "flow/agent"
Told = list[Any]


class Events:
    """In place of the events of a store."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Passing]] = []
        self.followed: list[set[str]] = []

    def read(self, run: str, after: int) -> list[tuple[int, Passing]]:
        return [each for each in self.found if each[0] > after]

    def follow(self, runs: Any) -> None:
        self.followed.append(set(runs))

    def list_news(self, runs: Any, after: int) -> dict[str, int]:
        return {run: seq for run in runs for seq, _ in self.found if seq > after}


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def reader(events: Events) -> PassingReader:
    return PassingReader(events, "r1")  # type: ignore[arg-type]


def row(n: int, strand: str = STRAND) -> Row:
    return Row(strand, n, b"", b"{}")


def answer(at: int, text: str, *more: Piece, n: int = 1, strand: str = STRAND) -> Passing:
    return Passing(strand, n, [Piece("answer", text, at), *more])


def whole(length: int) -> Piece:
    return Piece("whole", "", length)


def told(reader: PassingReader, rows: Sequence[Row], found: Sequence[Passing] = ()) -> Told:
    """What is told: the numbers of rows, the texts of pieces, and None for what is discarded."""
    placed = list(enumerate(rows, 1))
    return [
        (None if each.piece.kind == "discarded" else each.piece.text) if isinstance(each, Shown) else each[1].n
        for each in reader.merge(placed, found)
    ]


CASES: dict[str, tuple[list[Row], list[Passing], Told]] = {
    "after its question, before its answer": ([row(1), row(2)], [answer(0, "a", whole(1))], [1, "a", 2]),
    "no answer yet": ([row(0), row(1)], [answer(0, "a"), answer(1, "b")], [0, 1, "a", "b"]),
    "two answers": (
        [row(1), row(2), row(3), row(4)],
        [answer(0, "a", whole(1)), answer(0, "b", whole(1), n=3)],
        [1, "a", 2, 3, "b", 4],
    ),
    "two strands": (
        [row(1), row(1, "flow/b"), row(2, "flow/b")],
        [answer(0, "a"), answer(0, "b", whole(1), strand="flow/b")],
        [1, 1, "b", 2, "a"],
    ),
    "not whole": ([row(1), row(2)], [answer(0, "a")], [1, "a", None, 2]),
    "a piece is missing": ([row(1), row(2)], [answer(0, "a"), answer(5, "b", whole(6))], [1, "a", None, 2]),
    "the end is missing": ([row(1), row(2)], [answer(0, "a", whole(2))], [1, "a", None, 2]),
    "the beginning is missing": ([row(1), row(2)], [answer(5, "b", whole(6))], [1, 2]),
    "begun anew": ([row(1), row(2)], [answer(0, "a"), answer(0, "b", whole(1))], [1, "a", None, "b", 2]),
    "discarded": (
        [row(1), row(2)],
        [answer(0, "a", Piece("discarded"), Piece("answer", "b", 0), whole(1))],
        [1, "a", None, "b", 2],
    ),
    "a thought, and a tool's word": (
        [row(1), row(2)],
        [Passing(STRAND, 1, [Piece("thought", "t"), Piece("progress", "p", 0.5)])],
        [1, "t", "p", 2],
    ),
}


@pytest.mark.parametrize(("rows", "found", "expected"), CASES.values(), ids=CASES)
def test_what_passes_is_told_at_its_place(
    reader: PassingReader, rows: list[Row], found: list[Passing], expected: Told
) -> None:
    assert told(reader, rows, found) == expected


@pytest.mark.parametrize(
    ("rows", "found", "expected"),
    [case for name, case in CASES.items() if name != "two strands"],
    ids=[name for name in CASES if name != "two strands"],
)
def test_it_is_told_there_also_when_it_was_read_before_the_rows(
    reader: PassingReader, rows: list[Row], found: list[Passing], expected: Told
) -> None:
    heard = told(reader, [], found)
    for each in rows:
        heard += told(reader, [each])
    assert heard == expected


def test_what_was_recorded_before_its_follower_came_is_not_shown(reader: PassingReader) -> None:
    reader.resume_from([row(1), row(2), row(3)])
    assert told(reader, [], [answer(0, "old", whole(3)), answer(0, "new", n=3)]) == ["new"]


def test_all_is_shown_of_an_answer_that_is_still_being_written(reader: PassingReader) -> None:
    reader.resume_from([row(0), row(1)])
    assert told(reader, [row(2)], [answer(0, "a"), answer(1, "b", whole(2))]) == ["a", "b", 2]


def test_pieces_become_the_events_of_a_run_in_this_process(reader: PassingReader) -> None:
    heard: list[Event] = []
    listener = EventListener(heard.append)
    pieces = [Piece("thought", "t"), Piece("answer", "a", 0), Piece("discarded"), Piece("progress", "p", 0.5)]
    for each in reader.merge([(1, row(1))], [Passing(STRAND, 1, pieces)]):
        if isinstance(each, Shown):
            each.tell(listener)
    place = {"strand": STRAND, "n": 1, "node": "agent"}
    assert heard == [
        {"event": "thought_delta", "text": "t", **place},
        {"event": "answer_delta", "text": "a", **place},
        {"event": "answer_discarded", **place},
        {"event": "tool_progress", "text": "p", "fraction": 0.5, **place},
    ]


def test_each_event_is_read_once(reader: PassingReader, events: Events) -> None:
    events.found = [(3, answer(0, "a"))]
    assert (reader.read(), reader.read()) == ([answer(0, "a")], [])
    events.found.append((7, answer(1, "b")))
    reader.note(7)
    assert reader.has_news
    assert (reader.read(), reader.has_news) == ([answer(1, "b")], False)


def test_events_that_are_gone_are_no_news_any_more(reader: PassingReader) -> None:
    reader.note(7)
    assert (reader.read(), reader.has_news) == ([], False)


def test_one_look_says_for_all_that_they_follow_and_who_has_news(events: Events) -> None:
    watch = PassingWatch(events)  # type: ignore[arg-type]
    readers = [PassingReader(events, run) for run in ("r1", "r2")]  # type: ignore[arg-type]
    assert watch.look([]) == []
    assert watch.look(readers) == []
    events.found = [(3, answer(0, "a"))]
    assert watch.look(readers) == readers
    readers[0].read()
    assert watch.look(readers) == readers[1:]
    assert events.followed == [{"r1", "r2"}], "it is said again after a while, or for another run"
    watch.look([*readers, PassingReader(events, "r3")])  # type: ignore[arg-type]
    assert events.followed[1:] == [{"r1", "r2", "r3"}]
