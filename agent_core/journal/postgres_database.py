"""PostgresDatabase: a database with tables of ours: connected to at its first use, laid out, its errors explained."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, Literal, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from agent_core.errors import JournalError
from agent_core.journal.storage_errors import PATIENCE_S

CONNECTIONS: Final = 8
"""How many connections a process has to it at most; further threads wait for one."""
_MIGRATING: Final = 0x61676A6F
"""The number of the lock under which tables are made and changed."""
_LAYOUTS: Final = "CREATE TABLE IF NOT EXISTS agent_core_layouts (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_SET_VERSION: Final = """INSERT INTO agent_core_layouts VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version"""
Durability = Literal["process", "power"]
Connection = psycopg.Connection[Any]


class PostgresLayout(NamedTuple):
    """Tables that belong together: `steps` bring them from each version to the next."""

    name: str
    steps: Sequence[str]


class PostgresDatabase:
    """One database by its URL, shared by threads. It must not be carried across a fork.

    It waits up to `patience` seconds for others. With durability "process" a crash of the server may lose the last
    moments, all that belongs together at once; with "power" nothing that was written is lost. Raises JournalError.
    """

    def __init__(
        self,
        url: str,
        layouts: Sequence[PostgresLayout],
        *,
        durability: Durability = "power",
        patience: float = PATIENCE_S,
    ) -> None:
        self._url, self._layouts, self._patience = url, layouts, patience
        self._settings = f"-c lock_timeout={round(patience * 1000)} -c client_encoding=UTF8"
        if durability == "process":
            self._settings += " -c synchronous_commit=off"
        self._lock = Lock()
        self._pool: ConnectionPool[Connection] | None = None

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        try:
            parts = conninfo_to_dict(self._url)
        except psycopg.Error:
            return "at an address that is none"
        return f"postgresql://{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"

    def select(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        with self._explained("read"), self._connection() as db:
            return db.execute(query, values, binary=True).fetchall()

    @contextmanager
    def writing(self, subject: str) -> Iterator[Connection]:
        """A transaction that no other writer of the same subject shares, on whichever machine."""
        with self._explained("write to"), self._connection() as db, db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (subject,))
            yield db

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
        timeout = max(2, round(self._patience))
        with psycopg.connect(self._url, connect_timeout=timeout) as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            db.execute(_LAYOUTS)
            for layout in self._layouts:
                _lay_out(db, layout)
        return ConnectionPool(
            self._url,
            kwargs={"options": self._settings, "autocommit": True, "connect_timeout": timeout},
            min_size=0,
            max_size=CONNECTIONS,
            timeout=self._patience,
            check=ConnectionPool.check_connection,
            open=True,
        )

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn what PostgreSQL says into a JournalError that says what to do; it never has the password."""
        try:
            yield
        except (psycopg.errors.LockNotAvailable, PoolTimeout) as error:
            why = f"others have kept it busy for {self._patience:g} s; resume the run when that is done"
            raise JournalError(f"cannot {doing} {self.name}: {why}") from error
        except (psycopg.Error, UnicodeError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise JournalError(f"cannot {doing} {self.name}: {why}") from error


def _lay_out(db: Connection, layout: PostgresLayout) -> None:
    """Bring tables to this version. JournalError for those of a newer one."""
    found = db.execute("SELECT version FROM agent_core_layouts WHERE name = %s", (layout.name,)).fetchone()
    version = 0 if found is None else found[0]
    if version > len(layout.steps):
        raise JournalError(
            f"the {layout.name} in this database has version {version}, and this program knows {len(layout.steps)}; "
            "upgrade agent-core"
        )
    for step in layout.steps[version:]:
        db.execute(step)
    if version < len(layout.steps):
        db.execute(_SET_VERSION, (layout.name, len(layout.steps)))
