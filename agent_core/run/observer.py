"""Observer: follows a run beside its listener, and surrounds its acts: how telemetry hears of what happens."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from agent_core.journal.operations import Act
from agent_core.journal.record import Row, Tape


class Observer(Protocol):
    """What follows one run while it is driven. It raises nothing."""

    def resume_from(self, tape: Tape) -> None:
        """Know the records of a tape, which were told before, and forget all else."""
        ...

    def __call__(self, row: Row) -> None:
        """Follow a row that was appended."""
        ...

    def acting(self, act: Act) -> AbstractContextManager[None]:
        """Surround an act whose `asked` was appended."""
        ...

    def ids_of(self, path: str) -> Mapping[str, str]:
        """`trace_id` and `span_id` of the run that a strand belongs to; empty where it is not traced."""
        ...


Observe = Callable[[str], Observer | None]
"""Gives the observer of a run by its id, each time that the run is driven; None where nothing observes it."""
