"""RunHost: what a worker has for one run: the executor, and the listener that follows the run here."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from agent_core.journal.record import Row, Tape
from agent_core.run.executor import Executor
from agent_core.run.log import listen_for_log
from agent_core.run.row_listener import RowListener

MAX_HOSTS: Final = 1000


class RunHost:
    """A run's executor, and the log and telemetry of its rows, of which other workers may have told some."""

    def __init__(self, run: str, executor: Executor) -> None:
        self.executor = executor
        observer = executor.observer
        self._listeners: list[RowListener] = [
            *([observer] if observer else []),
            *listen_for_log(run, executor.redactor, observer),
        ]
        self._told: dict[str, int] = {}

    def tell(self, rows: Sequence[Row], load: Callable[[], Tape]) -> None:
        """Tell of rows that were appended here. What others appended is told by them."""
        if not self._listeners:
            return
        new = [row for row in rows if row.n >= self._told.get(row.path, 0)]
        if any(row.n != self._told.get(row.path, 0) for row in new[:1]) or not self._told:
            self._resume_from(_before(load(), new))
        for row in new:
            self._told[row.path] = row.n + 1
            for listen in self._listeners:
                listen(row)

    def _resume_from(self, tape: Tape) -> None:
        self._told = {path: len(rows) for path, rows in tape.items()}
        for listener in self._listeners:
            listener.resume_from(tape)


def _before(tape: Tape, rows: Sequence[Row]) -> Tape:
    """Return the tape as it was before these rows."""
    first = {row.path: row.n for row in reversed(rows)}
    cut = {path: held[: first.get(path, len(held))] for path, held in tape.items()}
    return {path: held for path, held in cut.items() if held}


class RunHosts:
    """The runs that a worker knows, the ones that it has served last."""

    def __init__(self, executor: Callable[[str], Executor], most: int = MAX_HOSTS) -> None:
        self._executor, self._most = executor, most
        self._hosts: OrderedDict[str, RunHost] = OrderedDict()

    def find(self, run: str) -> RunHost:
        if run not in self._hosts:
            self._hosts[run] = RunHost(run, self._executor(run))
            if len(self._hosts) > self._most:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(run)
        return self._hosts[run]

    def drop(self, run: str) -> None:
        self._hosts.pop(run, None)
