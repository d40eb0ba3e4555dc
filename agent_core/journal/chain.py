"""What makes a tape whole: each strand's chain, the strands that records close, and where each must end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, get_args

import orjson

from agent_core.errors import Damaged, JournalError
from agent_core.journal.record import FORMAT, Kind, Record, Row, Tape, genesis, link, within

_KINDS: Final = get_args(Kind)
_KNOWN: Final = b'{"kind":"run_started","loop":"agent","format":%d,' % FORMAT
"""How nearly every run begins; what begins so need not be decoded to know that it can be read."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A record that cannot stand where it stands, and why."""

    strand: str
    n: int
    why: str


def checked(run: str, tape: Tape) -> Tape:
    """The same tape, now that every chain of it holds: what a driver asks for before it goes on from it.

    Raises `Damaged` at the first broken link, and `JournalError` when a newer format was written there.
    """
    for path, rows in tape.items():
        _unbroken(run, path, rows)
        first = None if rows[0].data.startswith(_KNOWN) else _record(rows[0])
        if first is not None and (why := _newer(first)):
            raise JournalError(f"run {run!r} cannot be read: {why}")
    return tape


def _unbroken(run: str, path: str, rows: list[Row]) -> None:
    previous = genesis(run, path)
    for n, row in enumerate(rows):
        if row.hash != link(previous, row.data) or row.n != n or row.path != path:
            raise Damaged(path, n, _broken(row, path, n, previous))
        previous = row.hash


def complete(tape: Tape, strand: str) -> bool:
    """Whether a strand ends in `run_finished`."""
    last = _record(tape[strand][-1]) if strand in tape else None
    return last is not None and last["kind"] == "run_finished"


def flaws(run: str, tape: Tape, root: str) -> Iterator[Flaw]:
    """Everything that is wrong with a root strand and those below it, the chains first.

    In a strand, what stands behind its first flaw is not looked at.
    """
    records: dict[str, list[Record]] = {}
    for path, rows in tape.items():
        if not within(path, root):
            yield Flaw(path, 0, f"strand {path!r} does not belong to the run of strand {root!r}")
        records[path], flaw = _sound(run, path, rows)
        if flaw:
            yield flaw
    closed: set[str] = set()
    for path, n, below, end in _closings(records):
        closed.add(below)
        if why := _misclosed(tape, path, below, end):
            yield Flaw(path, n, why)
    if complete(tape, root):
        for path in tape:
            if path != root and path not in closed:
                yield Flaw(path, 0, f"no record of the finished run closes strand {path!r}")


def _sound(run: str, path: str, rows: list[Row]) -> tuple[list[Record], Flaw | None]:
    """The records of a strand up to its first flaw."""
    records: list[Record] = []
    previous = genesis(run, path)
    for n, row in enumerate(rows):
        record = _record(row)
        why = _broken(row, path, n, previous)
        if record is None:
            return records, Flaw(path, n, why or "it is no record")
        if records and records[-1]["kind"] == "run_finished":
            why = why or "it stands behind the end of its run"
        if why := why or _newer(record):
            return records, Flaw(path, n, why)
        records.append(record)
        previous = row.hash
    return records, None


def _broken(row: Row, path: str, n: int, previous: bytes) -> str:
    if row.n != n or row.path != path:
        return f"record {row.n} of strand {row.path!r} stands where record {n} of {path!r} belongs"
    if row.hash != link(previous, row.data):
        return "its hash does not follow from its bytes and the record before it"
    return ""


def _newer(record: Record) -> str:
    written = record.get("format")
    if record["kind"] == "run_started" and isinstance(written, int) and written > FORMAT:
        return f"it has format {written}, this agent_core knows {FORMAT}: use a newer version"
    return ""


def _record(row: Row) -> Record | None:
    """What a row holds, or None when that is no record."""
    try:
        record = orjson.loads(row.data)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) and record.get("kind") in _KINDS else None


def _closings(records: dict[str, list[Record]]) -> Iterator[tuple[str, int, str, tuple[str, int]]]:
    """Each closing entry: the strand and n where it stands, the strand that it closes, that one's head and count."""
    for path, told in records.items():
        for n, record in enumerate(told):
            closes = record.get("closes", [])
            for entry in closes if isinstance(closes, list) else [closes]:
                match entry:
                    case [str(below), str(head), int(count)]:
                        yield path, n, below, (head, count)
                    case _:
                        yield path, n, "", ("", 0)


def _misclosed(tape: Tape, path: str, below: str, end: tuple[str, int]) -> str:
    """What is wrong with a record of strand `path` that closes another at `end`."""
    if below == path or not within(below, path):
        return f"it closes strand {below!r}, which does not stand below its own"
    if below not in tape:
        return f"it closes strand {below!r}, which is missing"
    if end != (tape[below][-1].hash.hex(), len(tape[below])):
        return f"it closes strand {below!r} at another end than the one that stands there"
    return ""
