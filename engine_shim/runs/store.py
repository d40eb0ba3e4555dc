"""Where workflow runs are kept: their journal, and an index of them for listing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agent_core.errors import JournalError
from agent_core.journal.memory import MemoryJournal
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.store import Journal

_TABLE = """CREATE TABLE IF NOT EXISTS workflow_runs (
    run TEXT PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL, status TEXT NOT NULL,
    started_at TEXT NOT NULL, base TEXT NOT NULL)"""
_COLUMNS = "run, workflow, version, status, started_at, base"


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run as a list shows it. `base` is the directory that its definition's relative paths start from."""

    run: str
    workflow: str
    version: str
    status: str
    started_at: str
    base: str


class RunStore(Protocol):
    """Runs by id. The journal is what counts; the entries can be lost without losing a run."""

    @property
    def journal(self) -> Journal: ...

    def save(self, entry: RunEntry) -> None:
        """Add the entry, or put it in place of the run's older one."""
        ...

    def entry(self, run: str) -> RunEntry | None:
        """The run's entry; None when there is none."""
        ...

    def entries(self) -> list[RunEntry]:
        """All entries, newest first."""
        ...

    def close(self) -> None: ...


class MemoryRunStore:
    """Runs of this process, gone with it."""

    def __init__(self) -> None:
        self.journal: Journal = MemoryJournal()
        self._entries: dict[str, RunEntry] = {}

    def save(self, entry: RunEntry) -> None:
        self._entries[entry.run] = entry

    def entry(self, run: str) -> RunEntry | None:
        return self._entries.get(run)

    def entries(self) -> list[RunEntry]:
        return sorted(self._entries.values(), key=lambda entry: (entry.started_at, entry.run), reverse=True)

    def close(self) -> None:
        self.journal.close()


class SqliteRunStore:
    """Runs in one SQLite file, which any number of processes may share; it is made with the first run.

    Raises JournalError when the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal = SqliteJournal(path)

    def save(self, entry: RunEntry) -> None:
        values = (entry.run, entry.workflow, entry.version, entry.status, entry.started_at, entry.base)
        with self._opened() as db, db:
            db.execute(f"INSERT OR REPLACE INTO workflow_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def entry(self, run: str) -> RunEntry | None:
        rows = self._select("WHERE run = ?", (run,))
        return rows[0] if rows else None

    def entries(self) -> list[RunEntry]:
        return self._select("ORDER BY started_at DESC, run DESC", ())

    def close(self) -> None:
        self.journal.close()

    def _select(self, clause: str, values: tuple[Any, ...]) -> list[RunEntry]:
        if not self.path.exists():
            return []
        with self._opened() as db:
            return [RunEntry(*row) for row in db.execute(f"SELECT {_COLUMNS} FROM workflow_runs {clause}", values)]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                self.path.touch(0o600)
            with closing(sqlite3.connect(self.path, timeout=5)) as db:
                db.execute(_TABLE)
                yield db
        except (sqlite3.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            told = f"{self.path} cannot be used as a run store: {reason}; choose another by --store or AGENT_CORE_STORE"
            raise JournalError(told) from error
