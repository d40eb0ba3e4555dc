"""PostgresDatabase: a PostgreSQL database with tables of ours: connected to at its first use, laid out, explained.

Queries have `?` for each value, as those of SQLite have.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final, Literal, LiteralString, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import Identifier
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from utools.databases.postgres_connection import (
    KEEPALIVE,
    KEPT,
    Connection,
    Silent,
    check_settings,
    close_with,
    closed_if_read_only,
    explain,
    is_away,
)
from utools.databases.postgres_layout import PostgresLayout, make_tables, read_versions
from utools.databases.postgres_transaction import (
    BEGIN,
    BEGIN_SNAPSHOT,
    PostgresTransaction,
    Select,
    select,
    transaction,
)
from utools.databases.transaction import Cursor, Transaction
from utools.errors import DatabaseAway, DatabaseError
from utools.forks import renew_in_forks
from utools.threads import DaemonThreads

CONNECTIONS: Final = 8
"""How many connections a process has to it at most; further threads wait for one."""
_LIFE: Final = "extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())"
"""Of the server: a crash, or a switch to another server, begins a new one. A server that crashed gives the ids of
transactions out again that it had not yet written, so that an id says which transaction it was in one life alone."""
_LOCK: Final = f"""SELECT pg_advisory_xact_lock(hashtextextended(?, 0)),
    concat(pg_current_xact_id(), ' ', {_LIFE})"""
_FATE: Final = f"""SELECT CASE WHEN split_part(id, ' ', 2) = concat({_LIFE})
    THEN pg_xact_status(split_part(id, ' ', 1)::xid8) END FROM (SELECT ?::text AS id) AS asked"""
_POLL_S: Final = 0.05
FRESH_S: Final = 1.0
"""For how long after an answer a connection is taken for alive."""
SILENCE: Final = 6
"""A statement without a sign of life is given up after so many times the patience with others; after half of it, and
half of it more, if the server takes no new connection either."""
_REFUSALS: Final = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.ReadOnlySqlTransaction,
)
Durability = Literal["process", "power"]
Query = tuple[str, Sequence[Any]]
T = TypeVar("T")


class PostgresDatabase:
    """One database by its URL, shared by threads; a process that is forked has connections of its own.

    With a `schema` its tables are in that, which is made if it is missing: databases of two schemas share nothing, no
    lock either. It waits up to `patience` seconds for others and for a connection, and raises DatabaseAway then: also
    for a server that was lost in mid-statement. With durability "process" a crash of the server may lose
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
        self._settings = f"{KEPT} -c lock_timeout={round(patience * 1000)} -c client_encoding=UTF8"
        # what a client that was lost had locked is free again after this
        self._settings += f" -c idle_in_transaction_session_timeout={round(patience * 3000)}"
        if durability == "process":
            self._settings += " -c synchronous_commit=off"
        if schema is not None:
            self._settings += f" -c search_path={_escape(Identifier(schema).as_string())}"
        self.threads = DaemonThreads(CONNECTIONS)
        """For event loops, which must not wait for a network. More would wait for each other."""
        self._lock, self._lost_at = Lock(), -inf
        self._pool: ConnectionPool[Connection] | None = None
        renew_in_forks(self)

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        try:
            parts = conninfo_to_dict(self._url)
        except psycopg.Error:
            return "a PostgreSQL URL that cannot be read"
        return f"postgresql://{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"

    def select(self, query: str, *values: Any) -> list[Any]:
        """Return what a query finds; nothing for a text that no text of PostgreSQL is, with a NUL or a half
        surrogate."""
        with self._explained("read"):
            return self._begin_anew_if_lost(partial(self._select, query, values))

    def _select(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self._connection() as db:
            return select(db, query, values)

    @contextmanager
    def snapshot(self) -> Iterator[Select]:
        """Finds what `select` does, all of it as it is at one moment, whatever others write meanwhile."""
        with self._explained("read"), ExitStack() as stack:
            made, _ = self._begin_anew_if_lost(partial(self._begin, stack, None, None, BEGIN_SNAPSHOT))
            yield made.select

    @contextmanager
    def writing(self, subject: str | None = None, ask: Query | None = None) -> Iterator[PostgresTransaction]:
        """A transaction; with a subject one that no other writer of it shares, on whichever machine. What it asks goes
        with the statement that it begins with; the answer is in its `found`.

        Where the connection is lost as it commits one with a subject, another one asks whether it did. DatabaseAway has
        its id `in_doubt` where nobody can be asked.
        """
        number, is_complete = None, False
        try:
            with self._explained("write to"), ExitStack() as stack:
                made, number = self._begin_anew_if_lost(partial(self._begin, stack, subject, ask, BEGIN))
                yield made
                is_complete = True
        except DatabaseAway:
            if number is None or not is_complete or not self._was_committed_now(number):
                raise

    def _begin(
        self, stack: ExitStack, subject: str | None, ask: Query | None, begin: LiteralString
    ) -> tuple[PostgresTransaction, str | None]:
        """Return a transaction that has begun and ends with the stack, and its id where it has a subject."""
        with ExitStack() as begun:
            db = begun.enter_context(self._connection())
            made = begun.enter_context(transaction(db, begin))
            db.silence_s = 2 * self._patience  # others keep a subject for so long at most as we wait for them
            locked = None if subject is None else made.send(_LOCK, (self._key_of(subject),))
            found = None if ask is None else made.send(*ask)  # sees what is there once the lock is held
            made.sync()
            number = None if locked is None else _read_id(locked)
            made.found = [] if found is None else found.fetchall()
            db.silence_s = SILENCE * self._patience
            stack.enter_context(begun.pop_all())
        return made, number

    def _begin_anew_if_lost(self, first: Callable[[], T]) -> T:
        """Return what the first statement on a connection gives; on another one where that was lost since it answered
        last."""
        try:
            return first()
        except psycopg.OperationalError as error:
            if self._pool is None or isinstance(error, PoolTimeout | PoolClosed | Silent) or not is_away(error):
                raise
            self._lost_at = monotonic()
            return first()

    def was_committed(self, transaction: str) -> bool:
        """Return whether a transaction is known to be committed, by its id; one before a crash of the server is not.
        DatabaseAway while the server still waits for its client."""
        end = monotonic() + self._patience
        while (found := self.select(_FATE, transaction)[0][0]) == "in progress":
            if monotonic() > end:
                raise DatabaseAway(f"{self.name} still waits for the client of a transaction whose connection was lost")
            sleep(_POLL_S)
        return bool(found == "committed")

    def _was_committed_now(self, transaction: str) -> bool:
        try:
            return self.was_committed(transaction)
        except DatabaseAway as away:
            away.in_doubt = transaction
            raise

    def lock(self, transaction: Transaction, subject: str) -> str:
        """Wait until no other transaction has this subject; keep it until the transaction ends, whose id this gives."""
        return _read_id(transaction.execute(_LOCK, (self._key_of(subject),)))

    def _key_of(self, subject: str) -> str:
        return subject if self.schema is None else f"{self.schema}: {subject}"

    def find_versions(self) -> dict[str, int]:
        """Return the version of each layout that is there; nothing is made."""
        with self._explained("read"):
            return self._versions()

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def begin_anew(self) -> object:
        """Forget the parent's connections."""
        pool, self._pool, self._lock = self._pool, None, Lock()
        return pool

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._lock:
            self._pool = self._pool or self._open()
            pool = self._pool
        with pool.connection() as db, closed_if_read_only(db):
            db.silence_s, db.doubt_s, db.is_gone = SILENCE * self._patience, self._patience / 2, self._is_gone
            yield db

    def _versions(self) -> dict[str, int]:
        with self._connect(self._settings_of_all()) as db:
            check_settings(db)
            return read_versions(db)

    def _open(self) -> "ConnectionPool[Connection]":
        self._check_url()
        versions = self._versions()
        if any(versions.get(layout.name) != len(layout.steps) for layout in self._layouts):
            self._make_tables()  # else a user who may only read need not be allowed to
        pool = ConnectionPool(
            self._url,
            connection_class=Connection,
            kwargs={**self._options(), "options": self._settings_of_all(), "autocommit": True},
            min_size=0,
            max_size=CONNECTIONS,
            timeout=self._patience,
            reconnect_timeout=self._patience,
            check=self._check,
            open=True,
        )
        return close_with(self, pool)

    def _make_tables(self) -> None:
        """Make the tables, or bring them up to date. DatabaseError for a user who may not."""
        try:
            with self._connect() as db:
                make_tables(db, self.schema, self._layouts)
        except _REFUSALS as error:
            why = error.diag.message_primary or type(error).__name__
            advice = "open it once as a user who may make tables in its schema"
            raise DatabaseError(f"cannot make the tables in {self.name}: {why}; {advice}") from error

    def _check_url(self) -> None:
        """DatabaseError for a URL that cannot be read; its text, which may have a password, is not in the error."""
        try:
            conninfo_to_dict(self._url)
        except psycopg.Error:
            form = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for what is neither letter nor digit"
            raise DatabaseError(f"a PostgreSQL URL cannot be read; write {form}") from None

    def _options(self) -> dict[str, Any]:
        """Return what notices that the server is lost, where the URL does not say it."""
        theirs = conninfo_to_dict(self._url)
        ours = {**KEEPALIVE, "connect_timeout": max(2, round(self._patience))}
        return {name: value for name, value in ours.items() if name not in theirs}

    def _settings_of_all(self) -> str:
        """Return the settings of a session: those of the URL, else of PGOPTIONS, and ours."""
        theirs = conninfo_to_dict(self._url).get("options") or os.environ.get("PGOPTIONS", "")
        return f"{theirs} {self._settings}"

    def _connect(self, settings: str | None = None, **more: Any) -> Connection:
        options = self._options() if settings is None else {**self._options(), "options": settings}
        return Connection.connect(self._url, **{**options, **more})

    def _check(self, db: Connection) -> None:
        """Raise where a connection from the pool is none any more; one that says nothing is not waited for so long. One
        that has answered just now is not asked, unless another was lost since."""
        if db.answered_at > max(self._lost_at, monotonic() - FRESH_S):
            return
        db.silence_s = self._patience
        ConnectionPool.check_connection(db)

    def _is_gone(self) -> bool:
        """Return whether the server takes no connection any more; one that refuses it with a reason is there."""
        try:
            self._connect(connect_timeout=max(2, round(self._patience / 2))).close()
        except psycopg.OperationalError as error:
            return error.sqlstate is None and "FATAL:" not in str(error)
        return False

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Turn what PostgreSQL says into a DatabaseError that says what to do; it never has the password."""
        try:
            yield
        except (psycopg.Error, PoolTimeout, UnicodeError) as error:
            cause = self._why_no_connection() if isinstance(error, PoolTimeout) else error
            if cause is None or isinstance(cause, psycopg.errors.LockNotAvailable):
                why = f"others have kept it busy for {self._patience:g} s; try again when that is done"
                raise DatabaseAway(f"cannot {doing} {self.name}: {why}") from error
            self._lost_at = monotonic()
            kind = DatabaseAway if is_away(cause) else DatabaseError
            raise kind(f"cannot {doing} {self.name}: {explain(cause)}") from error

    def _why_no_connection(self) -> Exception | None:
        """Return why the pool had no connection in time; None where one more can be made, so that others have them
        all."""
        try:
            self._connect().close()
        except psycopg.Error as refusal:
            return refusal
        return None


def _read_id(locked: Cursor) -> str:
    """Return the id of a transaction that has a lock."""
    found = locked.fetchone()
    assert found is not None
    return str(found[1])


def _escape(value: str) -> str:
    """Return a value for the option `-c name=value`, where a backslash stands before each blank."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
