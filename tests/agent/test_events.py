"""The events of every recorded run are of the types that callers and the API's document are given."""

from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter

from agent_core import Event
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.reader import Reader
from agent_core.run.event_listener import EventListener
from agent_core.run.events import Place

TRANSCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "transcripts").rglob("*.jsonl"))
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
KINDS = {kind for each in get_args(Event) for kind in get_args(each.__annotations__["event"])}


def events_of(path: Path, reader: Reader | None = None) -> list[Event]:
    journal, events = JsonlJournal(path), list[Event]()
    (run,) = journal.runs()
    source = EventListener(events.append)
    source.reader = reader or source.reader
    tape = journal.load(run)
    for strand in sorted(tape, key=lambda strand: strand.count("/")):
        for row in tape[strand]:
            source(row)
    return events


@pytest.mark.sampled
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_event_of_a_transcript_is_of_its_type(path: Path) -> None:
    events = events_of(path)
    assert events
    for event in events:
        EVENT.validate_python(event, strict=True, extra="forbid")


@pytest.mark.sampled
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_who_follows_a_run_in_flight_hears_what_its_whole_records_say(path: Path) -> None:
    assert events_of(path) == events_of(path, Reader())


def test_the_transcripts_have_an_event_of_each_kind_that_a_record_holds() -> None:
    found = {event["event"] for path in TRANSCRIPTS for event in events_of(path)}
    assert KINDS - found == {"thought_delta", "answer_delta", "answer_discarded", "tool_progress"}


def test_passing_events_are_of_their_type() -> None:
    events = list[Event]()
    source = EventListener(events.append)
    source.show_progress("flow/fetch.1", 1, "half of it", 0.5)
    source.show_delta("agent", 3, "The an")
    source.show_delta("agent", 3, None)
    assert [event["event"] for event in events] == ["tool_progress", "answer_delta", "answer_discarded"]
    for event in events:
        EVENT.validate_python(event, strict=True, extra="forbid")
    assert {key: events[0][key] for key in Place.__annotations__} == {"strand": "flow/fetch.1", "n": 1, "node": "fetch"}  # type: ignore[literal-required]
