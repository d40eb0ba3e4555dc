"""The journal in one SQLite file: many runs, many writers, one short transaction an append."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from agent_core.encryption.record_cipher import MARK
from agent_core.errors import Damaged, JournalError
from agent_core.journal.identity import StoreIdentity, read_identity
from agent_core.journal.keeper import Keeper
from agent_core.journal.record import CLOSED, Row, Tape, by_path
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from agent_core.journal.sqlite_layout import LAYOUT
from agent_core.journal.storage_errors import PATIENCE_S, explain, sqlite_code
from agent_core.journal.store import HAS_KEY, Ciphers, refuse_plain
from utools.databases.sqlite_file import Layout, LayoutError, SqliteFile, address
from utools.threads import Threads


class SqliteJournal:
    """A `Journal` of any number of runs in one file, opened at its first use.

    Args:
        path: The file.
        durability: With "process" what is appended survives the death of the process, with "power" that of the machine
            as well, at the price of a sync to disk for each append.
        patience: Seconds to wait for other writers.

    Attributes:
        path: The file.

    Example:
        ```python
        from agent_core import SqliteJournal, run_agent_sync
        from agent_core.models import ScriptedModel

        journal = SqliteJournal("runs.db")
        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        for run in ("r1", "r2"):
            model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
            run_agent_sync(config, registry=[], model=model, journal=journal, run_id=run)
        assert journal.runs() == ["r1", "r2"]
        journal.close()
        ```
    """

    threads: Threads | None = None
    """Its verbs are called in the event loop itself: they wait for no network."""
    _ciphers: Ciphers | None = None
    """What the store has whose records are encrypted."""
    _is_checked = False
    """Whether it is known that these are no records of an encrypted store, whose keys this journal does not have."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["process", "power"] = "process",
        patience: float = PATIENCE_S,
    ) -> None:
        self.path, self._patience = Path(path), patience
        self._keeper: Keeper | None = None
        synchronous: Literal["NORMAL", "FULL"] = "FULL" if durability == "power" else "NORMAL"
        self._file = SqliteFile(self.path, LAYOUT, busy_seconds=patience, synchronous=synchronous)

    @classmethod
    def _beside(cls, path: Path, *, patience: float, layout: Layout, keeper: Keeper, ciphers: Ciphers) -> Self:
        """Return the journal in the file of a store, whose further tables the `keeper` keeps."""
        journal = cls(path, patience=patience)
        journal._ciphers = ciphers
        journal._file, journal._keeper = SqliteFile(path, layout, busy_seconds=patience), keeper
        return journal

    @property
    def identity(self) -> StoreIdentity:
        """Which store the rows are in, read anew."""
        with self._explained("read"):
            return read_identity(self._file.select)

    def load(self, run: str) -> Tape:
        """Return the rows of a run by strand; empty for an unknown run.

        Args:
            run: The run's id.
        """
        rows = self._select("SELECT strand, n, hash, data FROM rows WHERE run = ? ORDER BY strand, n", run)
        return by_path(self._open(run, map(_read_row, rows)))

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
        if not rows:
            return False
        if self._ciphers is not None and not self._ciphers.is_plain:
            self._ciphers.check_rows(rows)
        if self._ciphers is None and not self._is_checked:
            refuse_plain(str(self.path), self._select(HAS_KEY, table="store_keys"))
            self._is_checked = True
        with self._explained("write to"), self._file.writing() as db:
            new = rows_to_append(run, rows, lambda path: _last(db, run, path), lambda row: _holds(db, run, row))
            db.executemany(
                "INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)",
                [(run, row.path, row.n, row.hash, row.stored or row.data) for row in new],
            )
            if self._keeper is not None:
                self._keeper.note_appended(db, run, new)
        return is_last_new(rows, new)

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """Return the rows of a run that were appended after a position, in the order of appending.

        Args:
            run: The run's id.
            after: The position of the last row that is known; 0 for all rows.

        Returns:
            Each row with its position.
        """
        index = "NOT INDEXED" if after else ""  # few rows of any run are newer than what was read a moment ago
        query = f"SELECT seq, strand, n, hash, data FROM rows {index} WHERE run = ? AND seq > ? ORDER BY seq"
        found = self._select(query, run, after)
        rows = self._open(run, [_read_row(row) for _, *row in found])
        return [(seq, row) for (seq, *_), row in zip(found, rows, strict=True)]

    def runs(self) -> list[str]:
        """Return the ids of the runs, oldest first."""
        found = self._select("SELECT run FROM rows GROUP BY run ORDER BY min(seq)")
        return [str(run) for (run,) in found]  # no text where the file is damaged

    def delete(self, run: str) -> bool:
        """Delete all rows of a run, and leave every other run alone.

        The pages are overwritten with zeros and used again, but the file does not shrink.

        Args:
            run: The run's id. It should have ended: a driver at work would begin it anew.

        Returns:
            Whether there was such a run.
        """
        if not os.path.exists(self.path):
            return False
        with self._explained("write to"), self._file.writing() as db:
            db.execute("PRAGMA secure_delete = ON")
            if self._keeper is not None:
                self._keeper.note_deleted(db, run)
            return db.execute("DELETE FROM rows WHERE run = ?", (run,)).rowcount > 0

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        self._file.close()

    def _open(self, run: str, rows: Iterable[Row]) -> Iterable[Row]:
        rows = list(rows)
        for row in rows:
            if row.stored is not None and self._ciphers is not None:
                return self._ciphers.open_rows(run, rows)
        return rows

    def _select(self, query: str, *values: str | int, table: str = "rows") -> list[Any]:
        with self._explained("read"):
            return self._file.select(table, query, *values)

    @contextmanager
    def _explained(self, doing: str) -> Generator[None, None, None]:
        """Turn what SQLite says into a JournalError that says what to do."""
        try:
            yield
        except LayoutError as error:
            raise JournalError(str(error)) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise JournalError(
                f"cannot {doing} journal {self.path}: {explain(self.path, error, patience=self._patience)}"
            ) from error


def _read_row(values: Sequence[Any]) -> Row:
    """Return the row of a table's values. Damaged for values that no journal writes."""
    path, n, digest, data = values
    match values:
        case (str(), int(), bytes(), bytes()):
            return Row(path, n, digest, CLOSED, data) if data[:1] == MARK else Row(path, n, digest, data)
        case _:
            raise Damaged(str(path), n if isinstance(n, int) else 0, "no journal wrote such values")


def is_database(path: Path) -> bool:
    """Return whether this existing file is SQLite's.

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


def _last(db: sqlite3.Connection, run: str, path: str) -> End | None:
    query = "SELECT n + 1, hash FROM rows WHERE run = ? AND strand = ? ORDER BY n DESC LIMIT 1"
    end: End | None = db.execute(query, (run, path)).fetchone()
    return end


def _holds(db: sqlite3.Connection, run: str, row: Row) -> bool:
    query = "SELECT hash, data FROM rows WHERE run = ? AND strand = ? AND n = ?"
    return bool(db.execute(query, (run, row.path, row.n)).fetchone() == (row.hash, row.stored or row.data))
