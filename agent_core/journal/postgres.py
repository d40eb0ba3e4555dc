"""The journal in PostgreSQL: many runs, many writers on many machines, one short transaction an append."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from agent_core.errors import JournalError
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from agent_core.journal.storage_errors import PATIENCE_S

VERSION: Final = 1
CONNECTIONS: Final = 4
"""How many connections a journal has at most; further threads wait for one."""
_MIGRATING: Final = 0x61676A6F
"""The number of the lock under which the tables are made."""
_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS journal_rows (
        seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run TEXT COLLATE "C" NOT NULL,
        strand TEXT COLLATE "C" NOT NULL,
        n BIGINT NOT NULL,
        hash BYTEA NOT NULL,
        data BYTEA NOT NULL,
        UNIQUE (run, strand, n)
    )"""
_LAYOUTS: Final = "CREATE TABLE IF NOT EXISTS agent_core_layouts (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_ENDS: Final = """SELECT DISTINCT ON (strand) strand, n + 1, hash FROM journal_rows
    WHERE run = %s AND strand = ANY(%s) ORDER BY strand, n DESC"""
Connection = psycopg.Connection[Any]


class PostgresJournal:
    """A `Journal` of any number of runs in a database, by its URL; connected to at its first use.

    Appends to one run wait for each other, up to `patience` seconds, on whichever machine they are. With durability
    "process" a crash of the database server may lose the last moments, as all at once; with "power", which is
    PostgreSQL's own default, nothing that was appended is lost. An object must not be carried across a fork.
    """

    def __init__(
        self, url: str, *, durability: Literal["process", "power"] = "power", patience: float = PATIENCE_S
    ) -> None:
        self._url, self._patience = url, patience
        self._settings = f"-c lock_timeout={round(patience * 1000)} -c client_encoding=UTF8"
        if durability == "process":
            self._settings += " -c synchronous_commit=off"
        self._lock = Lock()
        self._pool: ConnectionPool[Connection] | None = None

    def load(self, run: str) -> Tape:
        query = "SELECT strand, n, hash, data FROM journal_rows WHERE run = %s ORDER BY strand, n"
        return by_path(Row(*row) for row in self._select(query, run))

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if not rows:
            return False
        with self._explained("write to"), self._writing(run) as db:
            ends = _read_ends(db, run, {row.path for row in rows})

            def last(path: str) -> End | None:
                return ends[path] if path in ends else _read_ends(db, run, {path})[path]

            new = rows_to_append(run, rows, last, lambda row: _holds(db, run, row))
            with db.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO journal_rows (run, strand, n, hash, data) VALUES (%s, %s, %s, %s, %s)",
                    [(run, row.path, row.n, row.hash, row.data) for row in new],
                )
        return is_last_new(rows, new)

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """The rows of a run that were appended after a position, in the order of appending, each with its position."""
        query = "SELECT seq, strand, n, hash, data FROM journal_rows WHERE run = %s AND seq > %s ORDER BY seq"
        return [(seq, Row(*row)) for seq, *row in self._select(query, run, after)]

    def runs(self) -> list[str]:
        return [run for (run,) in self._select("SELECT run FROM journal_rows GROUP BY run ORDER BY min(seq)")]

    def delete(self, run: str) -> bool:
        with self._explained("write to"), self._writing(run) as db:
            return db.execute("DELETE FROM journal_rows WHERE run = %s", (run,)).rowcount > 0

    def close(self) -> None:
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _select(self, query: str, *values: str | int) -> list[Any]:
        with self._explained("read"), self._connection() as db:
            return db.execute(query, values, binary=True).fetchall()

    @contextmanager
    def _writing(self, run: str) -> Iterator[Connection]:
        """A transaction that no other writer of the run shares."""
        with self._connection() as db, db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (run,))
            yield db

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._lock:
            self._pool = self._pool or self._open()
        with self._pool.connection() as db:
            yield db

    def _open(self) -> "ConnectionPool[Connection]":
        """Connect, and make the tables. JournalError for those of a newer version."""
        pool: ConnectionPool[Connection] = ConnectionPool(
            self._url,
            kwargs={"options": self._settings, "autocommit": True, "connect_timeout": max(2, round(self._patience))},
            min_size=0,
            max_size=CONNECTIONS,
            timeout=self._patience,
            check=ConnectionPool.check_connection,
            open=True,
        )
        try:
            with psycopg.connect(self._url, connect_timeout=max(2, round(self._patience))) as db:  # tells why not
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
                _lay_out(db)
        except BaseException:
            pool.close()
            raise
        return pool

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn what PostgreSQL says into a JournalError that says what to do; it never has the password."""
        try:
            yield
        except (psycopg.errors.LockNotAvailable, PoolTimeout) as error:
            why = f"others have kept it busy for {self._patience:g} s; resume the run when that is done"
            raise JournalError(f"cannot {doing} journal {self._name()}: {why}") from error
        except (psycopg.Error, UnicodeError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise JournalError(f"cannot {doing} journal {self._name()}: {why}") from error

    def _name(self) -> str:
        """The database without user and password."""
        try:
            parts = conninfo_to_dict(self._url)
        except psycopg.Error:
            return "at an address that is none"
        return f"postgresql://{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def _lay_out(db: Connection) -> None:
    db.execute(_LAYOUTS)
    found = db.execute("SELECT version FROM agent_core_layouts WHERE name = 'journal'").fetchone()
    if found is not None and found[0] > VERSION:
        raise JournalError(
            f"the journal in this database has version {found[0]}, and this program knows {VERSION}; upgrade agent-core"
        )
    if found is None:
        db.execute(_TABLES)
        db.execute("INSERT INTO agent_core_layouts VALUES ('journal', %s)", (VERSION,))


def _read_ends(db: Connection, run: str, paths: set[str]) -> dict[str, End | None]:
    """The end of each strand; None for one without rows."""
    found = db.execute(_ENDS, (run, sorted(paths)), binary=True).fetchall()
    return {**dict.fromkeys(paths), **{path: (count, head) for path, count, head in found}}


def _holds(db: Connection, run: str, row: Row) -> bool:
    query = "SELECT hash, data FROM journal_rows WHERE run = %s AND strand = %s AND n = %s"
    return bool(db.execute(query, (run, row.path, row.n), binary=True).fetchone() == (row.hash, row.data))
