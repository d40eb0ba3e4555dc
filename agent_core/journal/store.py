"""The seam between a run and where its records are kept."""

from collections.abc import Sequence
from typing import Protocol

from agent_core.journal.record import Row, Tape


class Journal(Protocol):
    """An append-only store of rows. Any number of threads and processes may share one.

    A row is never changed and never parsed: what comes back is byte for byte what went in.
    """

    def load(self, run: str) -> Tape:
        """All rows of a run by strand; empty when the run is unknown. A torn tail is left out."""
        ...

    def append(self, run: str, rows: Sequence[Row]) -> None:
        """Append all rows or none, in order, each only where its strand ends just before it.

        A row that is there already with the same bytes counts as appended; raises `Lost` when another
        stands in its place, or when a row would leave a gap, and `JournalError` when it cannot be written.
        """
        ...

    def runs(self) -> list[str]:
        """The ids of the runs held here, oldest first."""
        ...

    def close(self) -> None:
        """Let go of files and connections; closing twice is fine."""
        ...
