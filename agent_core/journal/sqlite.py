"""The journal in one SQLite file: many runs, many writers, one short transaction an append."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final, Literal

from agent_core.errors import JournalError
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from agent_core.journal.storage_errors import PATIENCE_S, explain, sqlite_code
from utools.files.protected_paths import protect_store

LAYOUT: Final = 1
_CREATE: Final = """
    CREATE TABLE IF NOT EXISTS rows (
        seq INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        strand TEXT NOT NULL,
        n INTEGER NOT NULL,
        hash BLOB NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (run, strand, n)
    )"""


class SqliteJournal:
    """A `Journal` of any number of runs in one file, opened at its first use.

    With durability "process" what is appended survives the death of the process, with "power" that of the
    machine as well, at the price of a sync to disk for each append. An object must not be carried across a fork.
    """

    def __init__(self, path: str | os.PathLike[str], *, durability: Literal["process", "power"] = "process") -> None:
        self.path = Path(path)
        protect_store(self.path)
        self._synchronous = {"process": "NORMAL", "power": "FULL"}[durability]
        self._db: sqlite3.Connection | None = None
        self._laid_out = False
        self._lock = Lock()

    def load(self, run: str) -> Tape:
        rows = self._select("SELECT strand, n, hash, data FROM rows WHERE run = ? ORDER BY strand, n", run)
        if any(tuple(map(type, row)) != (str, int, bytes, bytes) for row in rows):
            raise JournalError(f"{self.path} holds values in run {run!r} that no journal wrote")
        return by_path(Row(*row) for row in rows)

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if not rows:
            return False
        with self._opened("write to") as db:
            if not self._laid_out:
                _lay_out(db, self.path)
                self._laid_out = True
            with _transaction(db):
                new = rows_to_append(run, rows, lambda path: _last(db, run, path), lambda row: _holds(db, run, row))
                db.executemany(
                    "INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)",
                    [(run, row.path, row.n, row.hash, row.data) for row in new],
                )
        return is_last_new(rows, new)

    def runs(self) -> list[str]:
        return [run for (run,) in self._select("SELECT run FROM rows GROUP BY run ORDER BY min(seq)")]

    def delete(self, run: str) -> bool:
        """Drop a run; its pages are overwritten with zeros and used again, but the file does not shrink."""
        if self._db is None and not os.path.exists(self.path):
            return False
        with self._opened("write to") as db:
            if not _layout(db, self.path):
                return False
            db.execute("PRAGMA secure_delete = ON")
            with _transaction(db):
                return db.execute("DELETE FROM rows WHERE run = ?", (run,)).rowcount > 0

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db, self._laid_out = None, False

    def _select(self, query: str, *values: str) -> list[Any]:
        if self._db is None and not os.path.exists(self.path):
            return []
        with self._opened("read") as db:
            return db.execute(query, values).fetchall() if _layout(db, self.path) else []

    @contextmanager
    def _opened(self, doing: str) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._db is None:
                    self._db = _connect(self.path, self._synchronous)
                yield self._db
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise JournalError(f"cannot {doing} journal {self.path}: {explain(self.path, error)}") from error


def is_database(path: Path) -> bool:
    """Whether this existing file is SQLite's.

    SQLite itself is asked: if we opened and closed the file, the locks that this process holds on it would go.
    """
    if path.stat().st_size <= 1:  # SQLite takes a file of a single byte for a new database
        return False
    try:
        with closing(sqlite3.connect(address(path, False), uri=True)) as db:
            db.execute("PRAGMA schema_version")
    except UnicodeDecodeError:
        return True
    except sqlite3.Error as error:
        return sqlite_code(error) != sqlite3.SQLITE_NOTADB
    return True


def _connect(path: Path, synchronous: str) -> sqlite3.Connection:
    new = not os.path.exists(path)
    db = sqlite3.connect(
        address(path, new), uri=True, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute(f"PRAGMA synchronous = {synchronous}")
        if new:
            path.chmod(0o600)
    except BaseException:
        db.close()
        raise
    return db


def address(path: Path, new: bool) -> str:
    """Where SQLite finds the file; one that nobody can write, such as an archived one, needs no locks."""
    writable = new or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    sealed = not writable and not path.with_name(path.name + "-wal").exists()
    return path.absolute().as_uri() + ("?immutable=1" if sealed else "")


def _layout(db: sqlite3.Connection, path: Path) -> int:
    """The layout of the file, 0 when it has none yet."""
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    if layout > LAYOUT:
        raise JournalError(f"{path} has layout {layout}, this agent_core knows {LAYOUT}: use a newer version")
    return int(layout)


def _lay_out(db: sqlite3.Connection, path: Path) -> None:
    if _layout(db, path) == LAYOUT:
        return
    _switch_to_wal(db, monotonic() + PATIENCE_S)
    with _transaction(db):
        db.execute(_CREATE)
        db.execute(f"PRAGMA user_version = {LAYOUT}")


def _switch_to_wal(db: sqlite3.Connection, until: float) -> None:
    """SQLite does not wait here by itself when several processes make the same new file."""
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if sqlite_code(error) != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            sleep(0.005)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _last(db: sqlite3.Connection, run: str, path: str) -> End | None:
    query = "SELECT n + 1, hash FROM rows WHERE run = ? AND strand = ? ORDER BY n DESC LIMIT 1"
    end: End | None = db.execute(query, (run, path)).fetchone()
    return end


def _holds(db: sqlite3.Connection, run: str, row: Row) -> bool:
    query = "SELECT hash, data FROM rows WHERE run = ? AND strand = ? AND n = ?"
    return bool(db.execute(query, (run, row.path, row.n)).fetchone() == (row.hash, row.data))
