"""The SQLite file of a run store: one connection to it, opened at its first use and shared by threads."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from agent_core.errors import JournalError
from agent_core.journal.sqlite import address

_PATIENCE_S = 5.0


class Database:
    """A file that any number of threads and processes may share. It must not be carried across a fork.

    The file, and each table, is made by the first write. Raises JournalError when the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        self._lock = Lock()

    def rows(self, table: str, query: str, *values: Any) -> list[Any]:
        """What `query` finds in `table`; nothing where nobody has made the file or the table."""
        if self._db is None and not self.path.exists():
            return []
        with self._opened() as db:
            made = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
            return db.execute(query, values).fetchall() if made else []

    @contextmanager
    def writing(self, create: str) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer shares, begun by the statement that creates the table if need be."""
        with self._opened() as db, db:
            db.execute("BEGIN IMMEDIATE")
            db.execute(create)
            yield db

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._db is None:
                    self._db = _connect(self.path)
                yield self._db
        except (sqlite3.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            hint = "choose another by --store or AGENT_CORE_STORE"
            raise JournalError(f"{self.path} cannot be used as a run store: {reason}; {hint}") from error


def _connect(path: Path) -> sqlite3.Connection:
    new = not path.exists()
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
    where = address(path, new)
    db = sqlite3.connect(where, uri=True, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        if new:
            path.chmod(0o600)
            with suppress(sqlite3.OperationalError):  # busy: another process has just made the file, and switches it
                db.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        db.close()
        raise
    return db
