"""References to what a workflow asks for: small enough for Temporal's history, and free of content.

The process that walks a run has what it asks for at hand; only an act may be done by another one. That finds it by
walking the run's tape, as far as that goes: what a recorder asks for depends on nothing else.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from agent_core.effects import Classify
from agent_core.errors import AgentCoreError
from agent_core.journal.operations import Act, Append, Begin, Fork, Operation, Perform, Sleep, walk
from agent_core.journal.record import Row, Tape
from agent_core.journal.recorder import continue_run
from agent_core.journal.strand import Run
from engine_shim.definition.model import ROOT
from engine_shim.runs.loops import LOOPS

Reference = Sequence[Any]
"""What is to be done, in which strand, at which record, and the hash there, hex, or which of several."""
_FOUND: Final = ("asked", "decided", "run_finished")


def reference_to(operation: Begin | Classify | Act) -> Reference:
    """Return the reference to one operation of a run."""
    match operation:
        case Begin(slot):
            return "begin", slot.path, 0, ""
        case Classify():
            return "classify", operation.strand, operation.n, str(operation.index)
        case Act(slot=slot):
            return "act", slot.path, slot.n, slot.head.hex()


def reference_to_rows(rows: Sequence[Row]) -> Reference:
    """Return the reference to rows that are to be appended: by the last one."""
    return "rows", rows[-1].path, rows[-1].n, rows[-1].hash.hex()


def are_found_again(rows: Sequence[Row]) -> bool:
    """Return whether a walk along the tape comes to these rows."""
    return all(row.kind in _FOUND for row in rows)


class AtHand:
    """What this process's workflows ask for right now, by run and reference."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, ...], Any] = {}

    @contextmanager
    def holding(self, run: str, reference: Reference, what: Any) -> Iterator[None]:
        """Have it at hand until the end of the block."""
        key = (run, *map(str, reference))
        self._held[key] = what
        try:
            yield
        finally:
            self._held.pop(key, None)

    def has(self, run: str, reference: Reference) -> bool:
        return (run, *map(str, reference)) in self._held

    def get(self, run: str, reference: Reference) -> Any:
        return self._held[run, *map(str, reference)]


AT_HAND: Final = AtHand()


class NotOnTape(AgentCoreError):
    """The tape does not lead to what is referred to: another driver has gone another way."""


def find_on_tape(run: str, tape: Tape, reference: Reference, classify: Callable[[Classify], str]) -> Act:
    """Return the act that a walk along the tape asks for. NotOnTape where it does not."""
    found: list[Act] = []

    def look(operation: Operation) -> Any:
        match operation:
            case Classify():
                return classify(operation)
            case Append() | Sleep():
                return None
            case Act() if list(reference_to(operation)) == list(reference):
                found.append(operation)
        raise _Unknown

    with suppress(_Unknown):
        walk(continue_run(Run(run, tape, LOOPS), ROOT), look, _walk_branches)
    if not found:
        raise NotOnTape(f"run {run!r}: nothing on the tape leads to {' '.join(map(str, reference))}")
    return found[0]


class _Unknown(Exception):
    """The tape ends here: how it continues is not known."""


def _walk_branches(fork: Fork, look: Perform) -> list[Any]:
    """Walk as far as the tape goes, in every branch. Raises _Unknown unless that is the end."""
    queue, replies, unknown = list(fork.branches), list[Any](), False
    for branch in queue:
        try:
            replies.append(walk(branch, look, _walk_branches))
        except _Unknown:
            unknown = True
        else:
            queue.extend(fork.more(replies[-1]) if fork.more else ())
    if unknown:
        raise _Unknown
    return replies
