"""The journal in memory: gone with the process, and what the tests and quick runs use."""

from collections.abc import Sequence
from threading import Lock

from agent_core.journal.record import Row, Tape
from agent_core.journal.slots import fresh


class MemoryJournal:
    """A `Journal` of any number of runs in this process."""

    def __init__(self) -> None:
        self._runs: dict[str, Tape] = {}
        self._lock = Lock()

    def load(self, run: str) -> Tape:
        with self._lock:
            return {path: list(rows) for path, rows in self._runs.get(run, {}).items()}

    def append(self, run: str, rows: Sequence[Row]) -> None:
        with self._lock:
            tape = self._runs.get(run, {})
            for row in fresh(rows, lambda path: len(tape.get(path, ())), lambda row: _holds(tape, row)):
                self._runs.setdefault(run, tape).setdefault(row.path, []).append(row)

    def runs(self) -> list[str]:
        with self._lock:
            return list(self._runs)

    def close(self) -> None:
        """Nothing is held open; the rows stay for as long as the object."""


def _holds(tape: Tape, row: Row) -> bool:
    return tape.get(row.path, [])[row.n : row.n + 1] == [row]
