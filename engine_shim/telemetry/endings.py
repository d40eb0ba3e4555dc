"""Endings: whether an operation failed, by what the record that ends it says. Pure."""

from typing import NamedTuple

from agent_core.effects import Failed
from agent_core.journal.facts import Answered, Cancelled, Fact, RunFinished, Waiting


class Ending(NamedTuple):
    """The kind of a failure, None for a success; and what was said of it."""

    error: str | None = None
    message: str | None = None


def ending_of(fact: Fact) -> Ending:
    """Return how a run, a question or a call ended: as it should, by a failure, cancelled or in doubt."""
    match fact:
        case RunFinished(failure=(kind, message)):
            return Ending(kind, message)
        case Answered(answer=Failed(reason=reason, message=message)):
            return Ending(reason, message)
        case Answered(succeeded=False, error=message):
            return Ending("tool_error", message)
        case Waiting(reason=reason, message=message):
            return Ending(reason, message)
        case Cancelled():
            return Ending("cancelled")
        case _:
            return Ending()
