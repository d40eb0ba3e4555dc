"""PostgresDatabase: a PostgreSQL database with tables of ours: connected to at its first use, laid out, explained.

Queries have `?` for each value, as those of SQLite have.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Literal, LiteralString, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from psycopg_pool import ConnectionPool, PoolTimeout

from utools.errors import DatabaseError
from utools.transaction import Transaction

CONNECTIONS: Final = 8
"""How many connections a process has to it at most; further threads wait for one."""
_MIGRATING: Final = 0x61676A6F
"""The number of the lock under which schemas and tables are made and changed."""
_LAYOUTS: Final = "CREATE TABLE IF NOT EXISTS agent_core_layouts (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_SET_VERSION: Final = """INSERT INTO agent_core_layouts VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version"""
Durability = Literal["process", "power"]
Connection = psycopg.Connection[Any]


class PostgresLayout(NamedTuple):
    """Tables that belong together: `steps` bring them from each version to the next."""

    name: str
    steps: Sequence[LiteralString]


class PostgresTransaction:
    """A `Transaction` that is under way."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def execute(self, query: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        return self._db.execute(_translate(query), values, binary=True)

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self._db.cursor() as cursor:
            cursor.executemany(_translate(query), rows)


class PostgresDatabase:
    """One database by its URL, shared by threads. It must not be carried across a fork.

    With a `schema` its tables are in that, which is made if it is missing: databases of two schemas share nothing, no
    lock either. It waits up to `patience` seconds for others. With durability "process" a crash of the server may lose
    the last moments, all that belongs together at once; with "power" nothing that was written is lost. Raises
    DatabaseError.
    """

    def __init__(
        self,
        url: str,
        layouts: Sequence[PostgresLayout],
        *,
        patience: float,
        durability: Durability = "power",
        schema: str | None = None,
    ) -> None:
        self._url, self._layouts, self._patience, self.schema = url, layouts, patience, schema
        self._settings = f"-c lock_timeout={round(patience * 1000)} -c client_encoding=UTF8"
        if durability == "process":
            self._settings += " -c synchronous_commit=off"
        if schema is not None:
            self._settings += f" -c search_path={_escape(Identifier(schema).as_string())}"
        self._lock = Lock()
        self._pool: ConnectionPool[Connection] | None = None

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        try:
            parts = conninfo_to_dict(self._url)
        except psycopg.Error:
            return "a PostgreSQL URL that cannot be read"
        return f"postgresql://{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"

    def select(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        with self._explained("read"), self._connection() as db:
            return db.execute(_translate(query), values, binary=True).fetchall()

    @contextmanager
    def writing(self, subject: str | None = None) -> Iterator[PostgresTransaction]:
        """A transaction; with a subject one that no other writer of it shares, on whichever machine."""
        with self._explained("write to"), self._connection() as db, db.transaction():
            made = PostgresTransaction(db)
            if subject is not None:
                self.lock(made, subject)
            yield made

    def lock(self, transaction: Transaction, subject: str) -> None:
        """Wait until no other transaction has this subject; keep it until the transaction ends."""
        key = subject if self.schema is None else f"{self.schema}: {subject}"
        transaction.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (key,))

    def find_versions(self) -> dict[str, int]:
        """The version of each layout that is there; nothing is made."""
        with self._explained("read"), psycopg.connect(self._url, options=self._options()) as db:
            if db.execute("SELECT to_regclass('agent_core_layouts')").fetchone() == (None,):
                return {}
            return dict(db.execute("SELECT name, version FROM agent_core_layouts").fetchall())

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._lock:
            self._pool = self._pool or self._open()
            pool = self._pool
        with pool.connection() as db:
            yield db

    def _open(self) -> "ConnectionPool[Connection]":
        self._check_url()
        timeout = max(2, round(self._patience))
        with psycopg.connect(self._url, connect_timeout=timeout) as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            if self.schema is not None:
                name = Identifier(self.schema)
                db.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
                db.execute(SQL("SET LOCAL search_path TO {}").format(name))
            db.execute(_LAYOUTS)
            for layout in self._layouts:
                _lay_out(db, layout)
        return ConnectionPool(
            self._url,
            kwargs={"options": self._options(), "autocommit": True, "connect_timeout": timeout},
            min_size=0,
            max_size=CONNECTIONS,
            timeout=self._patience,
            check=ConnectionPool.check_connection,
            open=True,
        )

    def _check_url(self) -> None:
        """DatabaseError for a URL that cannot be read; its text, which may have a password, is not in the error."""
        try:
            conninfo_to_dict(self._url)
        except psycopg.Error:
            form = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for what is neither letter nor digit"
            raise DatabaseError(f"a PostgreSQL URL cannot be read; write {form}") from None

    def _options(self) -> str:
        """The settings of each connection: those of the URL, and ours."""
        return f"{conninfo_to_dict(self._url).get('options') or ''} {self._settings}"

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn what PostgreSQL says into a DatabaseError that says what to do; it never has the password."""
        try:
            yield
        except PoolTimeout as error:
            why = self._find_fault() or f"all {CONNECTIONS} connections were taken for {self._patience:g} s"
            raise DatabaseError(f"cannot {doing} {self.name}: {why}") from error
        except psycopg.errors.LockNotAvailable as error:
            why = f"others have kept it busy for {self._patience:g} s; try again when that is done"
            raise DatabaseError(f"cannot {doing} {self.name}: {why}") from error
        except (psycopg.Error, UnicodeError) as error:
            raise DatabaseError(f"cannot {doing} {self.name}: {_describe(error)}") from error

    def _find_fault(self) -> str | None:
        """Why no connection can be made; None where it can."""
        try:
            psycopg.connect(self._url, connect_timeout=2).close()
        except psycopg.Error as error:
            return f"{_describe(error)}; waited {self._patience:g} s for it"
        return None


def _describe(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _lay_out(db: Connection, layout: PostgresLayout) -> None:
    """Bring tables to this version. DatabaseError for those of a newer one."""
    found = db.execute("SELECT version FROM agent_core_layouts WHERE name = %s", (layout.name,)).fetchone()
    version = 0 if found is None else found[0]
    if version > len(layout.steps):
        raise DatabaseError(
            f"the {layout.name} in this database has version {version}, and this program knows {len(layout.steps)}; "
            "upgrade agent-core"
        )
    for step in layout.steps[version:]:
        db.execute(step)
    if version < len(layout.steps):
        db.execute(_SET_VERSION, (layout.name, len(layout.steps)))


@lru_cache(maxsize=512)
def _translate(query: str) -> LiteralString:
    """A query as psycopg takes it, with %s for each value."""
    return query.replace("%", "%%").replace("?", "%s")


def _escape(value: str) -> str:
    """A value for the option `-c name=value`, where a backslash stands before each blank."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
