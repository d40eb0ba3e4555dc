"""What makes a tape whole: each strand's chain, the strands that records close, and where each must end. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, get_args

import orjson

from agent_core.errors import Damaged, Newer, Unreadable
from agent_core.journal.kinds import LOOP_OF_START
from agent_core.journal.path import is_within, parent_of
from agent_core.journal.record import ERASED, FORMAT, SHORTEST, Record, Row, Tape, genesis, link
from agent_core.journal.started import STARTED
from agent_core.outputs import JsonValue
from agent_core.records import Kind
from agent_core.rules import CURRENT, unknown_rule

_KINDS: Final = get_args(Kind)
_FORMAT: Final = b"%d" % FORMAT
_RULES: Final = orjson.dumps(CURRENT)
"""How a run begins, and the rules in it, when nothing has to be decoded to know that it can be read."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """A record that is wrong in its position, and why. `is_newer`: it is not known to be; a newer version can tell."""

    strand: str
    n: int
    why: str
    is_newer: bool = False


def check_chains(run: str, tape: Tape) -> Tape:
    """Return the same tape, once every chain of it holds and its format is known: a driver checks before it continues.

    Raises `Damaged` at the first broken link, `Unreadable` for records that cannot be read here, and `Newer` for a run
    of a newer format or newer rules.
    """
    for path, rows in tape.items():
        _check_links(run, path, rows)
        first = rows[0].data
        if not first.startswith(STARTED) or _is_usual(first):
            if len(first) < SHORTEST:
                raise Unreadable(run, erased=first == ERASED)
            continue
        if (started := _decode(rows[0])) is not None and (why := _explain_newer(started)):
            raise Newer(run, why)
    return tape


def _is_usual(first: bytes) -> bool:
    """Return whether a run can be read that begins so, as far as its bytes tell."""
    start = LOOP_OF_START.match(first)
    return start is not None and start[2] == _FORMAT and _RULES in first


def _check_links(run: str, path: str, rows: list[Row]) -> None:
    previous = genesis(run, path)
    for n, row in enumerate(rows):
        own_path, own_n, own_hash, data, stored = row
        if own_hash != sha256(previous + (stored or data)).digest() or own_n != n or own_path != path:
            raise Damaged(path, n, _explain_broken(row, path, n, previous))
        previous = own_hash


def is_finished(tape: Tape, strand: str) -> bool:
    """Return whether a strand ends in `run_finished`."""
    last = _decode(tape[strand][-1]) if strand in tape else None
    return last is not None and last["kind"] == "run_finished"


def has_closed(tape: Tape) -> bool:
    """Return whether there are records that cannot be read here."""
    return any(row.is_closed for rows in tape.values() for row in rows)


def is_closed(tape: Tape, strand: str) -> bool:
    """Return whether the run of a strand, or one that it is nested in, has ended: nothing more belongs to the
    strand."""
    return is_finished(tape, strand) or ("/" in strand and is_closed(tape, parent_of(strand)))


def find_chain_faults(run: str, tape: Tape, root: str) -> Iterator[ChainFault]:
    """Everything that is wrong with a root strand and those below it, the chains first.

    What follows a strand's first fault is not checked, nor how the strands of a newer run fit together.
    """
    records: dict[str, list[Record]] = {}
    is_newer = False
    for path, rows in tape.items():
        if not is_within(path, root):
            yield ChainFault(path, 0, f"strand {path!r} does not belong to the run of strand {root!r}")
        records[path], fault = _decode_until_fault(run, path, rows)
        if fault:
            is_newer = is_newer or fault.is_newer
            yield fault
    if is_newer:
        return
    closed: set[str] = set()
    for path, n, below, end in _closings(records):
        closed.add(below)
        if why := _explain_closing(tape, path, below, end):
            yield ChainFault(path, n, why)
    if is_finished(tape, root) and not has_closed(tape):
        for path in tape:
            if path != root and path not in closed:
                yield ChainFault(path, 0, f"no record of the finished run closes strand {path!r}")


def _decode_until_fault(run: str, path: str, rows: list[Row]) -> tuple[list[Record], ChainFault | None]:
    """Return the records of a strand up to its first fault, and the fault."""
    records: list[Record] = []
    previous = genesis(run, path)
    for n, row in enumerate(rows):
        why = _explain_broken(row, path, n, previous)
        if row.is_closed and not why:
            previous = row.hash
            continue
        record = _decode(row)
        if record is None:
            return records, ChainFault(path, n, why or "it is no record")
        if records and len(records) == n and records[-1]["kind"] == "run_finished":
            why = why or "it follows the end of its run"
        if why:
            return records, ChainFault(path, n, why)
        if newer := _explain_newer(record):
            return records, ChainFault(path, n, newer, is_newer=True)
        records.append(record)
        previous = row.hash
    return records, None


def _explain_broken(row: Row, path: str, n: int, previous: bytes) -> str:
    if row.n != n or row.path != path:
        return f"record {row.n} of strand {row.path!r} is in the position of record {n} of {path!r}"
    if row.hash != link(previous, row.stored or row.data):
        return "its hash does not follow from its bytes and the record before it"
    return ""


def _explain_newer(record: Record) -> str:
    """Return why a run can only be read by a newer version; empty when this one will do."""
    if record["kind"] != "run_started":
        return ""
    written = record.get("format")
    if isinstance(written, int) and written > FORMAT:
        return f"it has format {written}, this agent_core knows {FORMAT}: use a newer version"
    unknown = unknown_rule(record)
    return f"{unknown}: use a newer version" if unknown else ""


def _decode(row: Row) -> Record | None:
    """Return the record of a row, or None when it is no record."""
    try:
        record: JsonValue = orjson.loads(row.data)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) and record.get("kind") in _KINDS else None


def _closings(records: dict[str, list[Record]]) -> Iterator[tuple[str, int, str, tuple[str, int]]]:
    """Yield each closing entry: strand and n of its record, the strand that it closes, and that one's head and
    count."""
    for path, strand_records in records.items():
        for n, record in enumerate(strand_records):
            closes: JsonValue = record.get("closes", [])
            for entry in closes if isinstance(closes, list) else [closes]:
                match entry:
                    case [str(below), str(head), int(count)]:
                        yield path, n, below, (head, count)
                    case _:
                        yield path, n, "", ("", 0)


def _explain_closing(tape: Tape, path: str, below: str, end: tuple[str, int]) -> str:
    """Return what is wrong with a record of strand `path` that closes strand `below` at `end`; empty when nothing
    is."""
    if below == path or not is_within(below, path):
        return f"it closes strand {below!r}, which is not below its own"
    if below not in tape:
        return f"it closes strand {below!r}, which is missing"
    if end != (tape[below][-1].hash.hex(), len(tape[below])):
        return f"it closes strand {below!r} at another head and count than it has"
    return ""
