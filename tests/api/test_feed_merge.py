"""The rows of a run and what no record holds, merged by hand: what is shown when, and to whom."""

import asyncio
from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent
from agent_core.journal.record import Row
from agent_core.models import ScriptedModel
from engine_shim.service.feed_merge import FeedMerge, Position, Show
from support.by_hand import final


@pytest.fixture(scope="module")
def rows() -> list[tuple[int, Row]]:
    """The rows of a run in which an agent answers at once: begun, asked, answered, decided, finished."""
    journal = MemoryJournal()
    config = {"model": "m", "prompt": "Hello?", "max_steps": 2, "allowed_tools": []}
    asyncio.run(run_agent(config, registry=[], model=ScriptedModel([final("Hello.")]), journal=journal, run_id="r"))
    found = journal.tail("r")
    assert [row.kind for _, row in found] == ["run_started", "asked", "answered", "decided", "run_finished"]
    return found


def piece(text: str | None) -> Show:
    return lambda listener: listener.show_delta("agent", 1, text)


def kinds(merge: FeedMerge) -> list[str]:
    return [frame.event["event"] for frame in merge.frames]


def test_nothing_passing_is_shown_before_all_is_read_that_was_there(rows: Any) -> None:
    merge = FeedMerge()
    merge.read(*rows[0])
    merge.show(piece("He"))
    merge.read(*rows[1])
    assert kinds(merge) == ["step_started"]
    merge.note_all_read()
    assert kinds(merge) == ["step_started", "answer_delta"]


def test_row_that_was_appended_keeps_back_what_follows_until_the_journal_has_it(rows: Any) -> None:
    merge = FeedMerge()
    merge.read(*rows[0])
    merge.note_all_read()
    merge.note(rows[1][1])
    merge.show(piece("He"))
    assert kinds(merge) == []
    merge.read(*rows[1])
    assert kinds(merge) == ["step_started", "answer_delta"]
    merge.show(piece("llo."))
    assert kinds(merge)[-1] == "answer_delta"


def test_row_is_read_once_and_the_last_one_ends_the_feed(rows: Any) -> None:
    merge = FeedMerge()
    for row in [*rows[:4], rows[1], *rows[3:]]:
        assert not merge.is_over
        merge.read(*row)
    assert merge.is_over
    assert kinds(merge) == ["step_started", "finished"]
    assert merge.row == rows[-1][0]


def test_follower_gets_what_comes_after_a_position(rows: Any) -> None:
    merge = FeedMerge()
    for row in rows:
        merge.read(*row)
    first, last = merge.frames
    assert merge.select(0, Position(0, 0), 0) == [first, last]
    assert first.position is not None
    assert merge.select(0, first.position, 2) == [last]


def test_later_follower_gets_all_of_an_answer_that_is_written_and_nothing_of_a_settled_one(rows: Any) -> None:
    merge = FeedMerge()
    for row in rows[:2]:
        merge.read(*row)
    merge.note_all_read()
    for text in ("He", "llo."):
        merge.show(piece(text))
    known = len(merge.frames)
    pieces = merge.select(0, Position(rows[1][0], 9), known)
    assert [frame.event["text"] for frame in pieces if frame.event["event"] == "answer_delta"] == ["He", "llo."]
    for row in rows[2:]:
        merge.read(*row)
    late = merge.select(0, Position(0, 0), len(merge.frames))
    assert [frame.event["event"] for frame in late] == ["step_started", "finished"]
