"""read_result(): the result of a run by its journal alone."""

from collections.abc import Set
from functools import partial
from typing import Any

from agent_core.effects import Classify, Suspended
from agent_core.journal.control import untaken_signals
from agent_core.journal.operations import Act, Append, Begin, Listen, Operation, Sleep, walk
from agent_core.journal.path import name_of
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended, continue_run
from agent_core.journal.strand import Run
from agent_core.outputs import WaitingCall
from engine_shim.definition.model import ROOT
from engine_shim.runs.drive import RunResult
from engine_shim.runs.loops import LOOPS


class _GoesOn(Exception):
    """Something is left to do in the run."""


def read_result(run: str, tape: Tape, now: str) -> RunResult | None:
    """Return the result of a run that has ended, waits or was paused; None while something is left to do in it, or
    once the time has come for which it waits. `now` is written as records write times.

    Divergence for records that this version of the loops does not understand.
    """
    sent = {each.name for each in untaken_signals(tape)}
    try:
        ended = walk(continue_run(Run(run, tape, LOOPS), ROOT), partial(_wait_on, sent, now))
    except _GoesOn:
        return None
    assert isinstance(ended, Ended)
    return RunResult._from_ended(ended)


def read_paused(run: str, tape: Tape) -> RunResult:
    """Return the result of a run that was paused: what it would do next is what it waits with."""
    ended = walk(continue_run(Run(run, tape, LOOPS), ROOT), _suspend)
    assert isinstance(ended, Ended)
    return RunResult._from_ended(ended)


def _suspend(operation: Operation) -> Any:
    match operation:
        case Append() | Listen():
            return None
        case Classify():
            return "read"
        case Act(slot=slot):
            path, n = slot.path, slot.n
        case _:
            path, n = operation.path if isinstance(operation, Begin | Sleep) else "", 0
    waiting: WaitingCall = {"strand": path, "n": n, "tool": name_of(path), "args": {}, "reason": "paused"}
    return Suspended("paused", (waiting,))


def _wait_on(sent: Set[str], now: str, operation: Operation) -> None:
    """Wait for what has not come, neither its time nor a signal that was sent; anything else is left to do."""
    if not isinstance(operation, Listen) or operation.rows:
        raise _GoesOn
    if operation.signal in sent or (operation.until is not None and operation.until <= now):
        raise _GoesOn
