"""The journal in memory: it ends with the process."""

from collections.abc import Sequence
from threading import Lock

from agent_core.journal.identity import StoreIdentity
from agent_core.journal.record import Row, Tape
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from utools.threads import Threads


class MemoryJournal:
    """A `Journal` of any number of runs in this process.

    Example:
        ```python
        from agent_core import MemoryJournal, replay, run_agent_sync, verify
        from agent_core.models import ScriptedModel

        journal = MemoryJournal()
        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
        run_agent_sync(config, registry=[], model=model, journal=journal, run_id="r1")
        assert journal.runs() == ["r1"]
        assert verify(journal).ok and replay(journal).identical
        ```
    """

    threads: Threads | None = None
    """Its verbs are called in the event loop itself: they wait for no network."""
    identity: StoreIdentity | None = None
    """It is no store that others could take for another."""

    def __init__(self) -> None:
        self._runs: dict[str, Tape] = {}
        self._appended: dict[str, list[Row]] = {}
        self._lock = Lock()

    def load(self, run: str) -> Tape:
        """Return the rows of a run by strand; empty for an unknown run.

        Args:
            run: The run's id.
        """
        with self._lock:
            return {path: list(rows) for path, rows in self._runs.get(run, {}).items()}

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        """Append all rows or none, as `Journal.append` says.

        Args:
            run: The run's id.
            rows: Rows, each for the end of its strand.

        Returns:
            Whether the last row is new.

        Raises:
            Lost: Another row is in the place of one.
            JournalError: The rows cannot be written.
        """
        with self._lock:
            tape = self._runs.get(run, {})
            new = rows_to_append(run, rows, lambda path: _last(tape, path), lambda row: _holds(tape, row))
            if new:
                self._runs[run] = tape
                self._appended.setdefault(run, []).extend(new)
            for row in new:
                if row.path not in tape:
                    tape[row.path] = []
                tape[row.path].append(row)
        return is_last_new(rows, new)

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """Return the rows of a run that were appended after a position, in the order of appending.

        Args:
            run: The run's id.
            after: The position of the last row that is known; 0 for all rows.

        Returns:
            Each row with its position.
        """
        with self._lock:
            return list(enumerate(self._appended.get(run, [])[after:], after + 1))

    def runs(self) -> list[str]:
        """Return the ids of the runs, oldest first."""
        with self._lock:
            return list(self._runs)

    def delete(self, run: str) -> bool:
        """Delete all rows of a run, and leave every other run alone.

        Args:
            run: The run's id. It should have ended: a driver at work would begin it anew.

        Returns:
            Whether there was such a run.
        """
        with self._lock:
            self._appended.pop(run, None)
            return self._runs.pop(run, None) is not None

    def close(self) -> None:
        """Do nothing: nothing is open, and the rows stay as long as the object."""


def _last(tape: Tape, path: str) -> End | None:
    rows = tape.get(path)
    return (len(rows), rows[-1].hash) if rows else None


def _holds(tape: Tape, row: Row) -> bool:
    return tape.get(row.path, [])[row.n : row.n + 1] == [row]
