"""A strand as the recorder walks it: first what is on the tape, then what is written now. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from agent_core.effects import Loop, Visit
from agent_core.encryption.record_cipher import Encrypt
from agent_core.errors import Divergence
from agent_core.inherited import Inherited
from agent_core.journal.operations import Slot
from agent_core.journal.path import attempt, child, is_within, last_attempt
from agent_core.journal.record import Record, Row, Tape, chain_row, closing_entries, genesis, run_head
from agent_core.journal.started import read_started
from agent_core.outputs import Json
from agent_core.records import AnyRecord

Loops = Mapping[str, Callable[[Record], Loop]]
"""The loops that can be run, by the name that `run_started` gives."""


class Variation(Protocol):
    """Another policy to walk a tape under."""

    def vary(self, path: str, started: Record, inherited: Inherited) -> Record:
        """Return the `run_started` record of a strand as it would be under the policy."""
        ...

    def compare(self, strand: str, n: int, recorded: Record, now: Mapping[str, Any]) -> None:
        """Raise Divergence when the decision now differs from the recorded one.

        It is asked about each `decided` record, and about others that have not the same bytes.
        """
        ...


@dataclass(slots=True)
class Run:
    """What all strands of a run share. Without a `variation` the tape must match exactly.

    `causes` are the strands whose ends let a visit's strand begin. `encrypt` is given for a run in an encrypted store.
    """

    id: str
    tape: Tape
    loops: Loops
    variation: Variation | None = None
    encrypt: Encrypt | None = None
    strands: dict[str, "Strand"] = field(default_factory=dict)
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def open(self, path: str, pending: list[Row]) -> "Strand":
        strand = self.strands[path] = Strand(self, path, pending)
        return strand

    def journal_of(self, path: str) -> Json:
        """Return what a node says of its own records, so that a cut tail can be found."""
        strands = {p: (s.head, s.n) for p, s in self.strands.items() if s.n and is_within(p, path)}
        head = run_head((p, head, count) for p, (head, count) in strands.items())
        return {"strand": path, "head": head, "count": sum(count for _, count in strands.values())}

    def close(self, paths: Sequence[str]) -> list[list[Any]]:
        """Return the `closes` field of a record that ends these strands."""
        strands = {path: self.strands[path] for path in paths if path in self.strands}
        return closing_entries({path: (strand.head, strand.n) for path, strand in strands.items() if strand.n})


class Strand:
    """One sequential line of records. `visited` are the strands of the visits that it started."""

    __slots__ = ("head", "n", "path", "pending", "rows", "run", "visited")

    def __init__(self, run: Run, path: str, pending: list[Row]) -> None:
        self.run, self.path, self.pending = run, path, pending
        self.rows = run.tape.get(path, ())
        self.n, self.head = 0, genesis(run.id, path)
        self.visited: list[str] = []

    def peek(self) -> Record | None:
        return self.rows[self.n].record() if self.n < len(self.rows) else None

    def is_next(self, start: bytes) -> bool:
        """Return whether the next record on the tape begins so."""
        return self.n < len(self.rows) and self.rows[self.n].data.startswith(start)

    def take(self, *kinds: str) -> Record | None:
        """Return the next record of the tape, which must be of one of these kinds; None where the tape ends."""
        try:
            row = self.rows[self.n]
        except IndexError:
            return None
        record: Record = orjson.loads(row.data) if self.n else read_started(row)
        if record["kind"] not in kinds:
            raise Divergence(self.path, self.n, record["kind"], " or ".join(kinds))
        self.n, self.head = self.n + 1, row.hash
        return record

    def write(self, record: AnyRecord) -> bool:
        """Compare with the tape, or write where it has ended. True when the record was on the tape."""
        try:
            row = self.rows[self.n]
        except IndexError:
            row = chain_row(self.path, self.n, self.head, record, self.run.encrypt)
            self.pending.append(row)
            self.n, self.head = self.n + 1, row.hash
            return False
        is_same, variation = row.data == orjson.dumps(record), self.run.variation
        if variation is not None and (not is_same or record["kind"] == "decided"):
            variation.compare(self.path, self.n, row.record(), record)
        elif variation is None and not is_same and row.record() != record:
            raise Divergence(self.path, self.n, row.record(), record)
        self.n, self.head = self.n + 1, row.hash
        return True

    def causes_of(self, visit: Visit) -> tuple[str, ...]:
        """Return the strands whose ends let a visit of this workflow begin."""
        if visit.attempt:
            return (attempt(child(self.path, visit.node, visit.n), visit.attempt - 1),)
        earlier = [child(self.path, node, n) for node, n in visit.after]
        return tuple(last_attempt(path, self.run.strands) for path in earlier)

    def step_back(self, slot: Slot) -> None:
        """Return to a slot: the driver has not appended what was written since."""
        self.n, self.head = slot.n, slot.head

    def slot(self) -> Slot:
        return Slot(self.path, self.n, self.head, self.run.encrypt)

    def flush(self) -> tuple[Row, ...]:
        """Return the rows that have to be appended before the next act."""
        rows = tuple(self.pending)
        self.pending.clear()
        return rows
