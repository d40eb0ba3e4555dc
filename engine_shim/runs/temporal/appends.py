"""Rows that a workflow wants appended, as Temporal's history has them: by reference, unless they are short.

Most rows follow from the tape. Messages that an agent receives are on the tape, too, in another strand. What is left
follows from a reply that no record holds: that a run was cancelled, or why a nested run could not begin.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from agent_core.effects import Classify
from agent_core.journal.control import CONTROL, read_message
from agent_core.journal.operations import Slot
from agent_core.journal.record import Row, Tape, genesis
from engine_shim.runs.temporal.references import NotOnTape, Reference, find_on_tape, reference_to_rows

Part = list[Any]
"""["found", …] the reference to rows that a walk along the tape comes to; ["received", path, n, hash, numbers of
messages]; ["whole", path, n, hash, data]."""
_FOUND: Final = tuple(
    b'{"kind":"%b"' % kind for kind in (b"asked", b"decided", b"waiting", b"resolved", b"run_finished")
)
_ANSWERED: Final = b'{"kind":"answered"'
_RECEIVED: Final = b'{"kind":"received"'


def are_found_again(rows: Sequence[Row]) -> bool:
    """Whether a walk along the tape comes to these rows."""
    return all(map(_is_found_again, rows))


def _is_found_again(row: Row) -> bool:
    return row.data.startswith(_FOUND) or (row.data.startswith(_ANSWERED) and bool(row.record().get("closes")))


def parts_of(rows: Sequence[Row]) -> list[Part]:
    """What history has of rows, in order."""
    parts: list[Part] = []
    for is_found, group in groupby(rows, _is_found_again):
        alike = list(group)
        parts += [["found", *reference_to_rows(alike)[1:]]] if is_found else map(_describe, alike)
    return parts


def _describe(row: Row) -> Part:
    place = [row.path, row.n, row.hash.hex()]
    if row.data.startswith(_RECEIVED):
        return ["received", *place, [message["n"] for message in row.record()["messages"]]]
    return ["whole", *place, row.data.decode()]


def reference_to_parts(parts: Sequence[Part]) -> Reference:
    """The reference to all rows of the parts: by the last one."""
    _, path, n, hash_, *_ = parts[-1]
    return "rows", path, n, hash_


def find_rows(run: str, tape: Tape, parts: Sequence[Part], classify: Callable[[Classify], str]) -> list[Row]:
    """The rows of the parts. NotOnTape where the tape does not lead to them."""
    rows: list[Row] = []
    tape = {path: list(held) for path, held in tape.items()}
    for part in parts:
        found = _find_part(run, tape, part, classify)
        rows += found
        for row in found:
            strand = tape.setdefault(row.path, [])
            strand += [row] if row.n == len(strand) else []
    return rows


def _find_part(run: str, tape: Tape, part: Part, classify: Callable[[Classify], str]) -> Sequence[Row]:
    kind, path, n, hash_, *rest = part
    match kind:
        case "found":
            rows: Sequence[Row] = find_on_tape(run, tape, ("rows", path, n, hash_), classify)
            return rows
        case "received":
            return [_receive(run, tape, path, n, hash_, rest[0])]
        case _:
            return [Row(path, n, bytes.fromhex(hash_), rest[0].encode())]


def _receive(run: str, tape: Tape, path: str, n: int, hash_: str, numbers: Sequence[int]) -> Row:
    before, control = tape.get(path, [])[:n], tape.get(CONTROL, [])
    if len(before) == n and max(numbers) < len(control):
        slot = Slot(path, n, before[-1].hash if before else genesis(run, path))
        row = slot.row({"kind": "received", "messages": [read_message(control[number]) for number in numbers]})
        if row.hash.hex() == hash_:
            return row
    raise NotOnTape(f"run {run!r}: the messages of {path}:{n} are others")
