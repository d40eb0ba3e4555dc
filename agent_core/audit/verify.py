"""Whether a recorded run is as it was written, and whether all of it is there."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from agent_core.journal.chain import find_chain_faults, has_closed, is_finished
from agent_core.journal.path import find_root, is_within
from agent_core.journal.record import ERASED, Tape
from agent_core.journal.signature import (
    Keys,
    can_check,
    describe_seal,
    head_and_count,
    signature_fault,
    split_own_strands,
)
from agent_core.journal.source import Contents, Fault, Source, open_source

End = tuple[str, int]
"""A head and the number of rows under it."""
Readable = Literal["read", "encrypted", "erased", "newer"]
"""Whether the records of a run can be read here."""
DAMAGED_RUN: Final = "seal not checked: a record is damaged"
NEWER_RUN: Final = "seal not checked: a newer version wrote this run"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`.

    Attributes:
        ok: Whether the run is intact, and proven to be whole.
        complete: Whether the run is finished.
        torn: Whether the last line of a file was cut off as its writer died.
        first_bad: {"strand", "n", "line"} of the first damage, each None where unknown (only JSONL has lines).
        head: The head (hex) of the run, or of one strand as its node emits it: without its `run_finished`.
        count: The number of rows under that head.
        why: A sentence that says why the run is not ok.
        seal: What was checked of its signature: `sealed by KEY`, `sealed by KEY, which names no store` (an older one,
            of a run in a store), `sealed by KEY, not checked: no key here`, `sealed by KEY, which does not hold`,
            `not sealed`, or `seal not checked:` and why: `a record is damaged`, `a newer version wrote this run`.
        contents: Whether its records could be read; of those that are `encrypted` by a key that is not here, or that
            were `erased`, the chains, the head and the seal were checked, and it is not known whether the run is
            finished. A run that a `newer` version wrote is neither proven nor damaged: only that version can tell.
    """

    ok: bool
    complete: bool
    torn: bool
    first_bad: dict[str, Any] | None
    head: str
    count: int
    why: str | None
    seal: str = "not sealed"
    contents: Readable = "read"


def verify(
    source: Source,
    *,
    run_id: str | None = None,
    strand: str | None = None,
    head: str | None = None,
    count: int | None = None,
    keys: Keys | None = None,
) -> Verification:
    """Check that a recorded run is as it was written, and that all of it is there. Damage is reported, never raised.

    Args:
        source: The path of a JSONL or SQLite file, a journal, or the rows of a run.
        run_id: The run's id; needed for rows, and where the source holds several runs.
        strand: Limits the check to that strand and those below.
        head: The head (hex) that a node or a workflow emitted: the run has to be at it.
        count: The number of rows that was emitted with it.
        keys: The whole run must be signed by one of them, as it is, in the store that it is in. That also proves a run
            that waits or is paused, which is then ok and not complete.

    Returns:
        Whether the run is intact, and finished or at the head; else where and why not.

    Raises:
        JournalError: No such source or run, or several runs and no `run_id`.
        DefinitionError: Keys that are no Keys.

    Example:
        ```python
        from agent_core import run_agent_sync, verify
        from agent_core.models import ScriptedModel

        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
        output = run_agent_sync(config, registry=[], model=model, journal="run.jsonl")
        assert verify("run.jsonl", head=output.journal["head"]).ok
        ```
    """
    return verify_contents(open_source(source, run_id), strand=strand, head=head, count=count, keys=keys)


def verify_contents(
    contents: Contents,
    *,
    strand: str | None = None,
    head: str | None = None,
    count: int | None = None,
    keys: Keys | None = None,
) -> Verification:
    """Return the same of a run that was opened."""
    Keys.check(keys)
    own, others = split_own_strands(contents.tape)
    root = strand if strand is not None else find_root(own)
    tape = {path: rows for path, rows in own.items() if strand is None or is_within(path, root)}
    finished = is_finished(tape, root)
    ends = _ends(tape, root, finished)[:: 1 if strand is None else -1]
    matching = [end for end in ends if head in (None, end[0]) and count in (None, end[1])]
    first = _first_fault(contents, tape, root, others)
    home = contents.identity
    keys = keys if first or can_check(contents.tape) else None
    readable = _find_readable(contents.tape)
    has_proof = finished or head is not None or keys is not None or readable != "read"
    why = first.why if first else _shortfall(contents, tape, has_proof, matching)
    seal_fault = None if keys is None or first else signature_fault(contents.run, contents.tape, keys, home)
    why = why or seal_fault
    return Verification(
        ok=why is None,
        complete=finished,
        torn=contents.torn,
        first_bad={"strand": first.strand, "n": first.n, "line": first.line} if first and not first.is_newer else None,
        head=(matching or ends)[0][0],
        count=(matching or ends)[0][1],
        why=why,
        seal=_explain_unchecked(first) if first else describe_seal(contents.tape, keys, seal_fault, home),
        contents="newer" if first and first.is_newer else readable,
    )


def _find_readable(tape: Tape) -> Readable:
    if not has_closed(tape):
        return "read"
    return "erased" if any(row.data == ERASED for rows in tape.values() for row in rows) else "encrypted"


def _first_fault(contents: Contents, tape: Tape, root: str, others: Tape) -> Fault | None:
    """Return the first damage by line; where there are no lines, the first found."""
    faults = list(contents.faults)
    other_faults = [
        fault for path, rows in others.items() for fault in find_chain_faults(contents.run, {path: rows}, path)
    ]
    for fault in [*find_chain_faults(contents.run, tape, root), *other_faults]:
        numbers = contents.lines.get(fault.strand)
        line = numbers[fault.n] if numbers else None
        faults.append(Fault(fault.why, fault.strand, fault.n, line, fault.is_newer))
    return min(faults, key=lambda fault: (fault.is_newer, fault.line or 0), default=None)


def _explain_unchecked(first: Fault) -> str:
    return NEWER_RUN if first.is_newer else DAMAGED_RUN


def _shortfall(contents: Contents, tape: Tape, has_proof: bool, matching: list[End]) -> str | None:
    """Return what is missing from a run in which no record is damaged. `has_proof`: its end, a head or a seal says
    so."""
    if contents.torn:
        return "the last line has no newline: its writer died, and resuming the run drops this line"
    if not tape:
        return "there are no records"
    if not matching:
        return "the records are sound, but they do not end at the given head and count"
    if not has_proof:
        return "the run is not finished: only the head that its node emitted, or a seal, could prove it"
    return None


def _ends(tape: Tape, root: str, finished: bool) -> list[End]:
    """Head and count of all rows and, when the root has its `run_finished`, of those before it."""
    before = {**tape, root: tape[root][:-1]} if finished else tape
    return [head_and_count(tape), head_and_count(before)]
