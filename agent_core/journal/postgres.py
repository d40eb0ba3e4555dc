"""The journal in PostgreSQL: many runs, many writers on many machines, one short transaction an append."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from agent_core.errors import JournalAway, JournalError
from agent_core.journal.identity import StoreIdentity, read_identity
from agent_core.journal.keeper import Keeper
from agent_core.journal.record import Row, Tape, by_path, read_stored
from agent_core.journal.rows_to_append import End, is_last_new, paths_of_ends, rows_to_append
from agent_core.journal.storage_errors import PATIENCE_S
from agent_core.journal.store import HAS_KEY, Ciphers, refuse_plain
from utools.databases.postgres_database import Durability, PostgresDatabase
from utools.databases.postgres_layout import PostgresLayout
from utools.databases.transaction import Transaction
from utools.errors import DatabaseAway, DatabaseError
from utools.threads import Threads

_TABLES: Final = """CREATE TABLE journal_rows (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run TEXT COLLATE "C" NOT NULL,
    strand TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    data BYTEA NOT NULL,
    UNIQUE (run, strand, n))"""
_ONE_NAME: Final = "ALTER TABLE journal_rows RENAME TO rows"
"""The table is called as in a file, so that one query serves both."""
_IDENTITY: Final = """
    CREATE TABLE store_identity (store TEXT NOT NULL, tenant TEXT);
    INSERT INTO store_identity VALUES (replace(gen_random_uuid()::text, '-', ''), NULL);
    CREATE TABLE store_copies (store TEXT COLLATE "C" PRIMARY KEY, at TEXT NOT NULL, kid TEXT, mac TEXT)"""
LAYOUT: Final = PostgresLayout("journal", (_TABLES, _ONE_NAME, _IDENTITY))
_ENDS: Final = """SELECT DISTINCT ON (strand) strand, n + 1, hash FROM rows
    WHERE run = ? AND strand = ANY(?) ORDER BY strand, n DESC"""


class PostgresJournal:
    """A `Journal` of any number of runs in a database: its URL, or the database itself, which stays its owner's.

    Appends to one run wait for each other, up to `patience` seconds, on whichever machine they are. A `keeper` keeps
    what is in further tables of the database; `ciphers` encrypt the records.
    """

    def __init__(
        self,
        source: str | PostgresDatabase,
        *,
        durability: Durability = "power",
        patience: float = PATIENCE_S,
        keeper: Keeper | None = None,
        ciphers: Ciphers | None = None,
    ) -> None:
        self._ciphers = ciphers
        self._is_own, self._keeper = isinstance(source, str), keeper
        self._database = (
            PostgresDatabase(source, (LAYOUT,), durability=durability, patience=patience)
            if isinstance(source, str)
            else source
        )
        self._is_checked = False
        self._in_doubt: dict[tuple[str, Row], str] = {}
        """Appends that may have been committed: their last row, which was new, and the transaction."""

    @property
    def threads(self) -> Threads | None:
        return self._database.threads

    @property
    def identity(self) -> StoreIdentity:
        return read_identity(lambda _, query: self._select(query))

    def load(self, run: str) -> Tape:
        query = "SELECT strand, n, hash, data FROM rows WHERE run = ? ORDER BY strand, n"
        return by_path(self._open(run, [read_stored(*row) for row in self._select(query, run)]))

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if not rows:
            return False
        if self._ciphers is not None and not self._ciphers.is_plain:
            self._ciphers.check_rows(rows)
        if self._ciphers is None and not self._is_checked:
            has_keys = self._select("SELECT to_regclass('store_keys')")[0][0] is not None
            refuse_plain(self._database.name, self._select(HAS_KEY) if has_keys else [])
            self._is_checked = True
        with explained():
            return self._was_appended(run, rows[-1]) or self._append(run, rows)

    def _append(self, run: str, rows: Sequence[Row]) -> bool:
        new: list[Row] = []
        try:
            paths = paths_of_ends(rows)
            with self._database.writing(run, (_ENDS, (run, sorted(paths)))) as db:
                ends: dict[str, End] = {path: (count, head) for path, count, head in db.found}
                new = rows_to_append(run, rows, ends.get, lambda row: _holds(db, run, row))
                db.executemany(
                    "INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)",
                    [(run, row.path, row.n, row.hash, row.stored or row.data) for row in new],
                )
                if self._keeper is not None and new:
                    self._keeper.note_appended(db, run, new)
        except DatabaseAway as away:
            if away.in_doubt is not None and is_last_new(rows, new):
                self._in_doubt[run, rows[-1]] = away.in_doubt
            raise
        return is_last_new(rows, new)

    def _was_appended(self, run: str, row: Row) -> bool:
        """Return whether this very row came into the journal by an append of ours whose answer was lost."""
        transaction = self._in_doubt.get((run, row))
        if transaction is None:
            return False
        was_committed = self._database.was_committed(transaction)
        del self._in_doubt[run, row]
        return was_committed

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """Return the rows of a run that were appended after a position, in the order of appending, each with its
        position."""
        query = "SELECT seq, strand, n, hash, data FROM rows WHERE run = ? AND seq > ? ORDER BY seq"
        found = self._select(query, run, after)
        rows = self._open(run, [read_stored(*row) for _, *row in found])
        return [(seq, row) for (seq, *_), row in zip(found, rows, strict=True)]

    def runs(self) -> list[str]:
        query = "SELECT run FROM rows GROUP BY run ORDER BY min(seq)"
        return [run for (run,) in self._select(query)]

    def delete(self, run: str) -> bool:
        with explained(), self._database.writing(run) as db:
            if self._keeper is not None:
                self._keeper.note_deleted(db, run)
            return db.execute("DELETE FROM rows WHERE run = ?", (run,)).rowcount > 0

    def close(self) -> None:
        if self._is_own:
            self._database.close()

    def _open(self, run: str, rows: list[Row]) -> list[Row]:
        for row in rows:
            if row.stored is not None and self._ciphers is not None:
                return self._ciphers.open_rows(run, rows)
        return rows

    def _select(self, query: str, *values: Any) -> list[Any]:
        with explained():
            return self._database.select(query, *values)


@contextmanager
def explained() -> Generator[None, None, None]:
    """Turn what is wrong with a database into a JournalError."""
    try:
        yield
    except DatabaseError as error:
        kind = JournalAway if isinstance(error, DatabaseAway) else JournalError
        raise kind(str(error)) from error


def _holds(db: Transaction, run: str, row: Row) -> bool:
    query = "SELECT hash, data FROM rows WHERE run = ? AND strand = ? AND n = ?"
    return bool(db.execute(query, (run, row.path, row.n)).fetchone() == (row.hash, row.stored or row.data))
