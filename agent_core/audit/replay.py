"""Replay: the real loop on a recorded tape, with no way to the outside, to prove that it decides the same again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.audit.explain import explain_difference
from agent_core.audit.whatif import WhatIf, has_outlived
from agent_core.effects import Classify
from agent_core.errors import Divergence, JournalError
from agent_core.journal.chain import check_chains
from agent_core.journal.kinds import LOOP_OF_START, beginning
from agent_core.journal.operations import Act, Append, Begin, Listen, Operation, Sleep, Spec, walk
from agent_core.journal.path import is_below
from agent_core.journal.record import Row, Tape
from agent_core.journal.recorder import Ended, record_run
from agent_core.journal.source import Source, load_run
from agent_core.journal.started import read_started
from agent_core.journal.strand import Loops, Run
from agent_core.loop.agent import AGENT_LOOPS
from agent_core.outputs import Json, PolicyDecision

_MODEL_ANSWERED = beginning("answered", reply="said")


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay.

    `identical` when every decision, the finish reason and the output were the same byte for byte; under another
    policy, when no decision changed. `divergence` is {strand, n, recorded, now} of the first difference;
    `tape_ended` names the strand whose tape ends before the run does; `outputs` are the replayed outcomes by strand;
    `steps` counts model replies. `decisions`, under another policy, are those about each call: what comes after the
    first change is counterfactual, since the run would not have come there. `why` says what made the first difference:
    of a policy, the rule with its key and value.
    """

    identical: bool
    divergence: Json | None
    tape_ended: str | None
    outputs: dict[str, Any]
    steps: int
    decisions: tuple[PolicyDecision, ...] = ()
    why: str | None = None


class _TapeEnded(Exception):
    def __init__(self, path: str) -> None:
        self.path = path


def replay(
    source: Source,
    *,
    run_id: str | None = None,
    policy: Mapping[str, Any] | None = None,
    strand: str | None = None,
    loops: Loops = AGENT_LOOPS,
) -> Replay:
    """Replay a recorded run: a path, a journal, or rows. Needs no registry: the schemas are in the journal.

    With a `policy` the run is judged as if it had been in force, up to the first decision that changes; with a `strand`
    too, in the agent of that strand alone. `loops` says
    which kinds of run can be replayed; of a workflow, the agents in it. Raises JournalError for a source that cannot
    be read, or that is damaged, and DefinitionError for a policy that no run can have.
    """
    run, tape = load_run(source, run_id)
    return replay_tape(run, tape, policy=policy, strand=strand, loops=loops)


def replay_tape(
    run: str,
    tape: Tape,
    *,
    policy: Mapping[str, Any] | None = None,
    strand: str | None = None,
    loops: Loops = AGENT_LOOPS,
) -> Replay:
    """Return the same of a run that was loaded."""
    check_chains(run, tape)
    whatif = None if policy is None else WhatIf(policy, strand)
    outputs: dict[str, Any] = {}

    def result(identical: bool, divergence: Divergence | None = None, tape_ended: str | None = None) -> Replay:
        decisions = tuple(whatif.decisions) if whatif else ()
        described = None if divergence is None else _describe(divergence)
        why = None if divergence is None else _explain(divergence, whatif)
        return Replay(identical, described, tape_ended, outputs, _count_steps(tape), decisions, why)

    try:
        for path in _outermost_runs(tape, loops):
            outputs[path] = _replay_run(Run(run, tape, loops, whatif), path)
    except Divergence as divergence:
        if whatif is not None and has_outlived(divergence):
            return result(False, tape_ended=divergence.strand)
        if whatif is not None:
            whatif.judge_rest(tape, divergence)
        return result(False, divergence)
    except _TapeEnded as unfinished:
        return result(False, tape_ended=unfinished.path)
    return result(True)


def _describe(divergence: Divergence) -> Json:
    return {
        "strand": divergence.strand,
        "n": divergence.n,
        "recorded": divergence.recorded,
        "now": divergence.now,
    }


def _explain(divergence: Divergence, whatif: WhatIf | None) -> str:
    if whatif is not None:
        return whatif.explain(divergence)
    return explain_difference(divergence.recorded, divergence.now)


def _outermost_runs(tape: Tape, loops: Loops) -> list[str]:
    """Return the strands of the outermost runs that can be replayed."""
    runs: list[str] = []
    for path in sorted(tape):
        if not any(is_below(path, run) for run in runs) and _loop_of(tape[path][0]) in loops:
            runs.append(path)
    if not runs:
        raise JournalError("there is no run here that can be replayed")
    return runs


def _loop_of(first: Row) -> str | None:
    usual = LOOP_OF_START.match(first.data)
    loop: str | None = usual[1].decode() if usual else read_started(first).get("loop")
    return loop


def _replay_run(run: Run, path: str) -> Any:
    ended = walk(record_run(run, path, Spec("", {})), _refuse)
    if not isinstance(ended, Ended):
        raise _TapeEnded(path)
    for strand in run.strands.values():
        if strand.n < len(strand.rows):
            raise Divergence(strand.path, strand.n, strand.rows[strand.n].record(), "nothing more")
    return ended.outcome


def _refuse(operation: Operation) -> None:
    """Perform an operation of the replay, which appends nothing, acts on nothing and asks no person."""
    match operation:
        case Append(rows):
            raise _TapeEnded(rows[0].path)
        case Listen(rows=()):
            return  # it waits, as it did then
        case Act(slot=slot) | Listen(slot=slot):
            raise _TapeEnded(slot.path)
        case Begin(path=path) | Sleep(path=path) | Classify(strand=path):
            raise _TapeEnded(path)
        case _:
            raise AssertionError(operation)


def _count_steps(tape: Tape) -> int:
    return sum([row.data.startswith(_MODEL_ANSWERED) for rows in tape.values() for row in rows])
