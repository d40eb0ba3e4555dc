"""A strand as the recorder walks it: what the tape holds first, then what is written now."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_core.effects import Json, Loop
from agent_core.errors import Divergence
from agent_core.journal.operations import Slot
from agent_core.journal.record import Record, Row, Tape, chained, closing, encode, genesis, run_head, within

Loops = Mapping[str, Callable[[Record], Loop]]
"""The loops that can be run, by the name that `run_started` gives."""


class Variation(Protocol):
    """Another policy to walk a tape under."""

    def vary(self, started: Record, inherited: Json) -> Record:
        """A `run_started` record as it would have been."""
        ...

    def compare(self, strand: str, n: int, recorded: Record, now: Record) -> None:
        """Raise Divergence when what is decided now is not what was recorded."""
        ...


@dataclass(slots=True)
class Run:
    """What all strands of a run share. Without a `variation` the tape must be matched exactly."""

    id: str
    tape: Tape
    loops: Loops
    variation: Variation | None = None
    strands: dict[str, "Strand"] = field(default_factory=dict)
    causes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The strands whose ends let a visit's strand begin."""

    def open(self, path: str, pending: list[Row]) -> "Strand":
        strand = self.strands[path] = Strand(self, path, pending)
        return strand

    def below(self, path: str) -> dict[str, tuple[bytes, int]]:
        """Head and count of every strand at or below `path`."""
        return {p: (s.head, s.n) for p, s in self.strands.items() if s.n and within(p, path)}

    def journal(self, path: str) -> Json:
        """What a node says of its own records, so that a cut tail can be found."""
        strands = self.below(path)
        head = run_head((p, head, count) for p, (head, count) in strands.items())
        return {"strand": path, "head": head, "count": sum(count for _, count in strands.values())}

    def closes(self, paths: Sequence[str]) -> list[list[Any]]:
        live = {p: self.strands[p] for p in paths if p in self.strands}
        return closing({p: (s.head, s.n) for p, s in live.items() if s.n})


class Strand:
    """One sequential line of records: what the tape holds first, then what is written now."""

    __slots__ = ("head", "n", "path", "pending", "rows", "run", "visited")

    def __init__(self, run: Run, path: str, pending: list[Row]) -> None:
        self.run, self.path, self.pending = run, path, pending
        self.rows = run.tape.get(path, ())
        self.n, self.head = 0, genesis(run.id, path)
        self.visited: list[str] = []

    def peek(self) -> Record | None:
        return self.rows[self.n].record() if self.n < len(self.rows) else None

    def take(self, *kinds: str) -> Record | None:
        """The next record of the tape, which must be of one of these kinds; None where the tape ends."""
        if self.n >= len(self.rows):
            return None
        row = self.rows[self.n]
        record = row.record()
        if record["kind"] not in kinds:
            raise Divergence(self.path, self.n, record["kind"], " or ".join(kinds))
        self.n, self.head = self.n + 1, row.hash
        return record

    def write(self, record: Record) -> bool:
        """Compare with the tape, or write where it has ended. True when it stood there already."""
        if self.n < len(self.rows):
            row = self.rows[self.n]
            if self.run.variation is not None:
                self.run.variation.compare(self.path, self.n, row.record(), record)
            elif row.data != encode(record) and row.record() != record:
                raise Divergence(self.path, self.n, row.record(), record)
            self.n, self.head = self.n + 1, row.hash
            return True
        row = chained(self.path, self.n, self.head, record)
        self.pending.append(row)
        self.n, self.head = self.n + 1, row.hash
        return False

    def back(self, slot: Slot) -> None:
        """Step back to where the strand stood: the driver has not appended what was written since."""
        self.n, self.head = slot.n, slot.head

    def slot(self) -> Slot:
        return Slot(self.path, self.n, self.head)

    def flush(self) -> tuple[Row, ...]:
        """What has to be appended before the next act."""
        rows = tuple(self.pending)
        self.pending.clear()
        return rows
