"""Replay: the real loop on a recorded tape, with no way to the outside, to prove that it decides the same again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.audit.explain import explain_difference
from agent_core.audit.whatif import WhatIf, has_outlived
from agent_core.effects import Classify
from agent_core.errors import DefinitionError, Divergence, JournalError
from agent_core.journal.chain import check_chains
from agent_core.journal.kinds import beginning
from agent_core.journal.operations import Act, Append, Begin, Listen, Operation, Sleep, walk
from agent_core.journal.path import is_below
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended, continue_run
from agent_core.journal.source import Source, load_run
from agent_core.journal.started import loop_of
from agent_core.journal.strand import Loops, Run
from agent_core.loop.agent import AGENT_LOOPS
from agent_core.outputs import Json, PolicyDecision
from utools.schema.faults import hint

_MODEL_ANSWERED = beginning("answered", reply="said")
_BEGINNING = slice(len(_MODEL_ANSWERED))


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay.

    Attributes:
        identical: Whether every decision, the finish reason and the output were the same byte for byte; under another
            policy, whether no decision changed.
        divergence: {strand, n, recorded, now} of the first difference.
        tape_ended: The strand whose tape ends before the run does.
        outputs: The replayed outcomes, by strand.
        steps: The number of model replies.
        decisions: Under another policy, those about each call. What comes after the first change is counterfactual,
            since the run would not have come there.
        why: What made the first difference; of a policy, the rule with its key and value.
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
    """Replay a recorded run: the real loop on the recorded answers, offline. Needs no registry.

    Args:
        source: The path of a JSONL or SQLite file, a journal, or the rows of a run.
        run_id: The run's id; needed for rows, and where the source holds several runs.
        policy: Keys of an agent's config, such as `max_steps` or `deny_tools`: the run is judged as if they had been in
            force, up to the first decision that changes.
        strand: The strand of the one agent that the policy is for; by default all of them.
        loops: Which kinds of run are replayed; by default agents, in a workflow too.

    Returns:
        Whether everything was decided the same again, and what was not.

    Raises:
        JournalError: A source that cannot be read, or that is damaged.
        DefinitionError: A policy that no run can have, or a strand in which no agent ran.

    Example:
        ```python
        from agent_core import replay, run_agent_sync
        from agent_core.models import ScriptedModel

        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
        run_agent_sync(config, registry=[], model=model, journal="run.jsonl")
        assert replay("run.jsonl").identical
        ```
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
    agents = [] if strand is None else [path for path in sorted(tape) if loop_of(tape[path][0]) == "agent"]
    if strand is not None and strand not in agents:
        raise DefinitionError(f"no agent ran in this strand; {hint(strand, agents)}", where="strand", value=strand)
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
        if not any(is_below(path, run) for run in runs) and loop_of(tape[path][0]) in loops:
            runs.append(path)
    if not runs:
        raise JournalError("there is no run here that can be replayed")
    return runs


def _replay_run(run: Run, path: str) -> Any:
    ended = walk(continue_run(run, path), _refuse)
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
    return sum([row.data[_BEGINNING] == _MODEL_ANSWERED for rows in tape.values() for row in rows])
