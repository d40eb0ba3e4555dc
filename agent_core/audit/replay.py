"""Replay: the real loop on a recorded tape, with no way to the outside, to prove that it decides the same again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.audit.whatif import WhatIf, outlived
from agent_core.effects import Classify, Json
from agent_core.errors import Divergence, JournalError
from agent_core.journal.chain import checked
from agent_core.journal.operations import Act, Append, Begin, Operation, Sleep, Spec, walked
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended, recorded
from agent_core.journal.source import Source, load
from agent_core.journal.strand import Loops, Run
from agent_core.loop.react import react

AGENT_LOOPS: Loops = {"agent": react}


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a replay.

    `identical` when every decision, the finish reason and the output came out byte for byte; under another policy,
    when no decision changed. `divergence` is {strand, n, recorded, now} of the first difference; `tape_ended` names
    the strand whose tape ends before the run does; `outputs` are the replayed outcomes by strand; `steps` counts
    model replies. `decisions`, under another policy, are {strand, n, tool, recorded, now, counterfactual} of each
    call: counterfactual are those after the first that changed, since the run would not have come there.
    """

    identical: bool
    divergence: Json | None
    tape_ended: str | None
    outputs: dict[str, Any]
    steps: int
    decisions: tuple[Json, ...] = ()


class _TapeEnded(Exception):
    def __init__(self, path: str) -> None:
        self.path = path


def replay(
    source: Source,
    *,
    run_id: str | None = None,
    policy: Mapping[str, Any] | None = None,
    loops: Loops = AGENT_LOOPS,
) -> Replay:
    """Replay a recorded run: a path, a journal, or rows. Needs no registry: the schemas are in the journal.

    With a `policy` the run is judged as if it had been in force, up to the first decision that comes out otherwise.
    `loops` says which kinds of run can be replayed; of a workflow, the agents in it. Raises JournalError for a
    source that cannot be read, or that is damaged, and DefinitionError for a policy that no run can have.
    """
    run, tape = load(source, run_id)
    checked(run, tape)
    whatif = None if policy is None else WhatIf(policy)
    outputs: dict[str, Any] = {}

    def ended(identical: bool, divergence: Divergence | None = None, tape_ended: str | None = None) -> Replay:
        decisions = tuple(whatif.decisions) if whatif else ()
        told = None if divergence is None else _told(divergence)
        return Replay(identical, told, tape_ended, outputs, _steps(tape), decisions)

    try:
        for path in _roots(tape, loops):
            outputs[path] = _replayed(Run(run, tape, loops, whatif), path)
    except Divergence as found:
        if whatif is not None and outlived(found):
            return ended(False, tape_ended=found.strand)
        if whatif is not None:
            whatif.go_on(tape, found)
        return ended(False, found)
    except _TapeEnded as unfinished:
        return ended(False, tape_ended=unfinished.path)
    return ended(True)


def _told(found: Divergence) -> Json:
    return {"strand": found.strand, "n": found.n, "recorded": found.recorded, "now": found.now}


def _roots(tape: Tape, loops: Loops) -> list[str]:
    """The outermost runs of a kind that can be replayed."""
    roots: list[str] = []
    for path in sorted(tape):
        below = any(path.startswith(f"{root}/") for root in roots)
        if not below and tape[path][0].record().get("loop") in loops:
            roots.append(path)
    if not roots:
        raise JournalError("there is no run here that can be replayed")
    return roots


def _replayed(walk: Run, path: str) -> Any:
    ended = walked(recorded(walk, path, Spec("", {})), _refuse)
    if not isinstance(ended, Ended):
        raise _TapeEnded(path)
    for strand in walk.strands.values():
        if strand.n < len(strand.rows):
            raise Divergence(strand.path, strand.n, strand.rows[strand.n].record(), "nothing more")
    return ended.outcome


def _refuse(operation: Operation) -> Any:
    """What a replay does of what the recorder needs done: nothing. It does not append, act or ask."""
    match operation:
        case Append(rows):
            raise _TapeEnded(rows[0].path)
        case Act(slot=slot):
            raise _TapeEnded(slot.path)
        case Begin(path=path) | Sleep(path=path) | Classify(strand=path):
            raise _TapeEnded(path)
        case _:
            raise AssertionError(operation)


def _steps(tape: Tape) -> int:
    said = b'{"kind":"answered","reply":"said"'
    return sum([row.data.startswith(said) for rows in tape.values() for row in rows])
