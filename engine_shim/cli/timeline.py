"""in_time(): the records of a run in the order in which they were written, as far as their times tell."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_core.journal.path import is_below, segments
from agent_core.journal.record import Tape
from engine_shim.runs.store import parse_time

UNKNOWN = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimedRecord:
    """A record and its time; None where nothing before it tells one."""

    at: datetime | None
    strand: str
    n: int
    record: dict[str, Any]


def in_time(tape: Tape) -> list[TimedRecord]:
    """All records by time. Those of a strand keep their order, and a strand comes before what is below it.

    A record that closes strands comes after theirs. One that nothing before it dates began with the first below it.
    """
    strands = {path: list(_timed(path, [row.record() for row in tape[path]])) for path in sorted(tape)}
    begun = {path: min((each.at for each in timed if each.at), default=None) for path, timed in strands.items()}
    for path, timed in strands.items():
        if timed and timed[0].at is None:
            below = min((at for other, at in begun.items() if at and is_below(other, path)), default=None)
            strands[path] = [replace(each, at=each.at or below) for each in timed]
    return list(heapq.merge(*strands.values(), key=_rank))


def _rank(each: TimedRecord) -> tuple[datetime, int]:
    depth = len(segments(each.strand))
    return each.at or UNKNOWN, -depth if "closes" in each.record else -(2**20)


def _timed(path: str, records: list[dict[str, Any]]) -> Iterator[TimedRecord]:
    """A strand's records with their times. What was asked began before its answer; else the time before holds on."""
    last: datetime | None = None
    for n, record in enumerate(records):
        at = _own_time(record) or _began(records[n + 1 : n + 2])
        last = max(filter(None, (last, at)), default=None)
        yield TimedRecord(last, path, n, record)


def _own_time(record: dict[str, Any]) -> datetime | None:
    return parse_time(str(record["at"])) if "at" in record else None


def _began(following: list[dict[str, Any]]) -> datetime | None:
    """When that began which the following record answers; a run that is nested there tells it itself."""
    for answer in following:
        ended = _own_time(answer)
        if ended is not None and "closes" not in answer and isinstance(answer.get("seconds"), int | float):
            return ended - timedelta(seconds=answer["seconds"])
    return None
