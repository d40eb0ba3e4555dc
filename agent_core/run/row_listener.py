"""RowListener: hears of each row of a run while it is driven; some also of answers that are written, and of acts."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from agent_core.journal.operations import Act
from agent_core.journal.record import Row, Tape


class RowListener(Protocol):
    """Hears of the rows of one run. It raises nothing."""

    def resume_from(self, tape: Tape) -> None:
        """Know the rows of a tape, which were told before, and forget all else."""
        ...

    def __call__(self, row: Row) -> None:
        """Hear of a row that was appended."""
        ...


class AnswerListener(RowListener, Protocol):
    """Hears as well of what no record holds: pieces of thoughts and answers, and the progress of tools."""

    @property
    def wants_answers(self) -> bool:
        """Whether the next answer is to be shown while it is being written."""
        ...

    def show_progress(self, strand: str, n: int, text: str, fraction: float | None) -> None: ...

    def show_thought(self, strand: str, n: int, text: str) -> None: ...

    def show_delta(self, strand: str, n: int, text: str | None) -> None: ...


class ActListener(RowListener, Protocol):
    """Surrounds the acts of a run as well: how telemetry hears of what happens."""

    def acting(self, act: Act) -> AbstractContextManager[None]:
        """Surround an act whose `asked` was appended."""
        ...

    def ids_of(self, path: str) -> Mapping[str, str]:
        """`trace_id` and `span_id` of the run that a strand belongs to; empty where it is not traced."""
        ...


Observe = Callable[[str], ActListener | None]
"""Gives the listener to the acts of a run by its id, each time that the run is driven; None where none listens."""
