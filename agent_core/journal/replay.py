"""Replay: the real loop on a recorded tape, with no way to the outside, to prove that it decides the same again."""

from dataclasses import dataclass
from typing import Any

from agent_core.errors import Divergence, JournalError
from agent_core.journal.chain import checked
from agent_core.journal.operations import Act, Append, Begin, Fork, Operations, Spec
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended, recorded
from agent_core.journal.source import Source, load
from agent_core.journal.strand import Loops, Run
from agent_core.loop.effects import Classify, Json
from agent_core.loop.react import react

AGENT_LOOPS: Loops = {"agent": react}


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a replay.

    `identical` when every decision, the finish reason and the output came out byte for byte. `divergence` is
    {strand, n, recorded, now} of the first difference; `tape_ended` names the strand where an unfinished run's
    tape ends; `outputs` are the replayed outcomes by strand; `steps` counts model replies.
    """

    identical: bool
    divergence: Json | None
    tape_ended: str | None
    outputs: dict[str, Any]
    steps: int


class _TapeEnded(Exception):
    def __init__(self, path: str) -> None:
        self.path = path


def replay(source: Source, *, run_id: str | None = None, loops: Loops = AGENT_LOOPS) -> Replay:
    """Replay a recorded run: a path, a journal, or rows. Needs no registry: the schemas are in the journal.

    `loops` says which kinds of run can be replayed; of a workflow, the agents in it. Raises JournalError for a
    source that cannot be read, or that is damaged.
    """
    run, tape = load(source, run_id)
    checked(run, tape)
    outputs: dict[str, Any] = {}
    try:
        for path in _roots(tape, loops):
            outputs[path] = _replayed(run, tape, loops, path)
    except Divergence as found:
        divergence = {"strand": found.strand, "n": found.n, "recorded": found.recorded, "now": found.now}
        return Replay(False, divergence, None, outputs, _steps(tape))
    except _TapeEnded as ended:
        return Replay(False, None, ended.path, outputs, _steps(tape))
    return Replay(True, None, None, outputs, _steps(tape))


def _roots(tape: Tape, loops: Loops) -> list[str]:
    """The outermost runs of a kind that can be replayed."""
    known = [path for path, rows in sorted(tape.items()) if rows and rows[0].record().get("loop") in loops]
    if not known:
        raise JournalError("there is no run here that can be replayed")
    return [path for path in known if not any(path.startswith(f"{other}/") for other in known)]


def _replayed(run: str, tape: Tape, loops: Loops, path: str) -> Any:
    walk = Run(run, tape, loops)
    ended = perform(recorded(walk, path, Spec("", {})))
    if not isinstance(ended, Ended):
        raise _TapeEnded(path)
    for strand in walk.strands.values():
        if strand.n < len(strand.rows):
            raise Divergence(strand.path, strand.n, strand.rows[strand.n].record(), "nothing more")
    return ended.outcome


def perform(operations: Operations) -> Any:
    """The driver of a replay: it refuses to append, to act, to ask."""
    reply: Any = None
    while True:
        try:
            operation = operations.send(reply)
        except StopIteration as stop:
            return stop.value
        reply = _refuse_or_fork(operation)


def _refuse_or_fork(operation: Any) -> Any:
    match operation:
        case Fork(branches, more):
            queue, results = list(branches), []
            for branch in queue:
                results.append(perform(branch))
                queue.extend(more(results[-1]) if more else ())
            return results
        case Append(rows):
            raise _TapeEnded(rows[0].path)
        case Act(rows=rows):
            raise _TapeEnded(rows[-1].path)
        case Begin(path=path):
            raise _TapeEnded(path)
        case Classify():
            raise _TapeEnded(operation.tool)
        case _:
            raise AssertionError(operation)


def _steps(tape: Tape) -> int:
    return sum(row.data.startswith(b'{"kind":"answered","reply":"said"') for rows in tape.values() for row in rows)
