"""The journal in memory: it ends with the process."""

from collections.abc import Sequence
from threading import Lock

from agent_core.journal.identity import StoreIdentity
from agent_core.journal.record import Row, Tape
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from utools.threads import Threads


class MemoryJournal:
    """A `Journal` of any number of runs in this process."""

    threads: Threads | None = None
    identity: StoreIdentity | None = None

    def __init__(self) -> None:
        self._runs: dict[str, Tape] = {}
        self._appended: dict[str, list[Row]] = {}
        self._lock = Lock()

    def load(self, run: str) -> Tape:
        with self._lock:
            return {path: list(rows) for path, rows in self._runs.get(run, {}).items()}

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        with self._lock:
            tape = self._runs.get(run, {})
            new = rows_to_append(run, rows, lambda path: _last(tape, path), lambda row: _holds(tape, row))
            for row in new:
                self._runs.setdefault(run, tape).setdefault(row.path, []).append(row)
                self._appended.setdefault(run, []).append(row)
        return is_last_new(rows, new)

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """Return the rows of a run that were appended after a position, in the order of appending, each with its
        position."""
        with self._lock:
            return list(enumerate(self._appended.get(run, [])[after:], after + 1))

    def runs(self) -> list[str]:
        with self._lock:
            return list(self._runs)

    def delete(self, run: str) -> bool:
        with self._lock:
            self._appended.pop(run, None)
            return self._runs.pop(run, None) is not None

    def close(self) -> None:
        """Nothing is open; the rows stay as long as the object."""


def _last(tape: Tape, path: str) -> End | None:
    rows = tape.get(path)
    return (len(rows), rows[-1].hash) if rows else None


def _holds(tape: Tape, row: Row) -> bool:
    return tape.get(row.path, [])[row.n : row.n + 1] == [row]
