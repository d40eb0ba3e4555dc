"""in_time(): the records of a run in the order in which they were written, as far as their times tell."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from agent_core.journal.path import is_below, last_segment, parent_of, parse_segment, segments
from agent_core.journal.record import Tape
from engine_shim.store.entries import parse_time


@dataclass(frozen=True, slots=True)
class TimedRecord:
    """A record and its time; None where nothing before it tells one."""

    at: datetime | None
    strand: str
    n: int
    record: dict[str, Any]


def in_time(tape: Tape) -> list[TimedRecord]:
    """Return all records by time. Those of a strand keep their order, and a strand comes before what is below it, also
    where the clock was set back meanwhile.

    A record that closes strands comes after theirs. One that nothing before it dates began when its batch was asked
    for, else with the first below it; else it comes before the next one of its strand, and has no time. A strand
    without any time has just begun, and comes last.
    """
    strands: dict[str, list[TimedRecord]] = {}
    for path in sorted(tape):
        above = strands.get(parent_of(path))
        timed = list(_timed(path, [row.record() for row in tape[path]], above[0].at if above else None))
        strands[path] = [replace(each, at=each.at or _asked_at(strands, path)) for each in timed]
    for path in reversed(strands):
        strands[path] = list(_after_what_they_close(strands, strands[path]))
    begun = {path: min((each.at for each in timed if each.at), default=None) for path, timed in strands.items()}
    for path, timed in strands.items():
        if timed and timed[0].at is None:
            below = min((at for other, at in begun.items() if at and is_below(other, path)), default=None)
            strands[path] = [replace(each, at=each.at or below) for each in timed]
    dated = [timed for timed in strands.values() if any(each.at for each in timed)]
    under_way = [each for timed in strands.values() if not any(each.at for each in timed) for each in timed]
    merged = heapq.merge(*map(_ranked, dated), key=itemgetter(0))
    return [*(each for _, each in merged), *under_way]


def _asked_at(strands: Mapping[str, list[TimedRecord]], path: str) -> datetime | None:
    """Return when the batch was asked for that a strand is an item of; None for any other strand."""
    segment, above = parse_segment(last_segment(path)), strands.get(parent_of(path), [])
    is_item = segment.name is None and segment.number < len(above)
    return above[segment.number].at if is_item else None


def _after_what_they_close(strands: Mapping[str, list[TimedRecord]], timed: list[TimedRecord]) -> Iterator[TimedRecord]:
    """Yield a strand's records, none earlier than the ends of the strands that it or one before it closes."""
    last: datetime | None = None
    for each in timed:
        ends = [strands[path][-1].at for path, *_ in each.record.get("closes", ()) if strands.get(path)]
        last = max(filter(None, (last, each.at, *ends)), default=None)
        yield replace(each, at=last)


def _ranked(timed: list[TimedRecord]) -> Iterator[tuple[tuple[datetime, int], TimedRecord]]:
    """Yield a strand's records with their ranks among all; those at its beginning without a time have that of the
    next."""
    first = next(each.at for each in timed if each.at)
    for each in timed:
        depth = len(segments(each.strand))
        yield (each.at or first, -depth if "closes" in each.record else -(2**20)), each


def _timed(path: str, records: list[dict[str, Any]], above: datetime | None) -> Iterator[TimedRecord]:
    """Yield a strand's records with their times, none before the strand `above` began. What was asked began before its
    answer; else the time before holds on."""
    last: datetime | None = None
    for n, record in enumerate(records):
        at = _own_time(record) or _began(records[n + 1 : n + 2])
        last = max(filter(None, (last, at, above if at else None)), default=None)
        yield TimedRecord(last, path, n, record)


def _own_time(record: dict[str, Any]) -> datetime | None:
    return parse_time(str(record["at"])) if "at" in record else None


def _began(following: list[dict[str, Any]]) -> datetime | None:
    """Return when that began which the following record answers; a run that is nested there tells it itself."""
    for answer in following:
        ended = _own_time(answer)
        if ended is not None and "closes" not in answer and isinstance(answer.get("seconds"), int | float):
            return ended - timedelta(seconds=answer["seconds"])
    return None
