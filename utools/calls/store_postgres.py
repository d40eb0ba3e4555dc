"""PostgresCallStore: answers and rate limits of hosts on several machines, by the clock of their database."""

from typing import Final
from uuid import uuid4

from utools.calls.database_threads import DatabaseThreads, decode, encode
from utools.calls.store import Reservation
from utools.databases.postgres_database import PostgresDatabase
from utools.databases.postgres_layout import PostgresLayout
from utools.databases.transaction import Transaction

_TABLES: Final = """
    CREATE TABLE kept_answers (key BYTEA PRIMARY KEY, text BYTEA NOT NULL, expires DOUBLE PRECISION NOT NULL);
    CREATE INDEX kept_answers_expiry ON kept_answers (expires);
    CREATE TABLE rate_slots (
        key BYTEA NOT NULL, ticket BYTEA NOT NULL, at DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (key, ticket));
    CREATE INDEX rate_slots_order ON rate_slots (key, at);
    CREATE INDEX rate_slots_expiry ON rate_slots (expires)"""
LAYOUT: Final = PostgresLayout("calls", (_TABLES,))
_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_GET: Final = f"SELECT text FROM kept_answers WHERE key = ? AND expires > {_NOW}"
_PUT: Final = f"""INSERT INTO kept_answers VALUES (?, ?, {_NOW} + ?)
    ON CONFLICT (key) DO UPDATE SET text = excluded.text, expires = excluded.expires"""
_READ_CLOCK: Final = f"SELECT {_NOW}"
_FIND_SLOT: Final = "SELECT at FROM rate_slots WHERE key = ? AND at > ? ORDER BY at DESC OFFSET ? LIMIT 1"
"""The slot from which the next one has to keep its distance: the last but so many."""
_SWEEP: Final = """DELETE FROM {table} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {table} WHERE expires <= {now} LIMIT 100 FOR UPDATE SKIP LOCKED))"""


class PostgresCallStore:
    """A CallStore in a PostgreSQL database, which stays its owner's."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database, self._threads = database, DatabaseThreads()

    async def get(self, key: str) -> str | None:
        found = await self._threads.run(self._database.select, _GET, encode(key))
        return decode(found[0][0]) if found else None

    async def put(self, key: str, text: str, ttl: float) -> None:
        await self._threads.run(self._put, encode(key), encode(text), ttl)

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        return await self._threads.run(self._reserve, encode(key), count, seconds, longest)

    async def cancel(self, key: str, ticket: str) -> None:
        await self._threads.run(self._cancel, encode(key), encode(ticket))

    def _put(self, key: bytes, text: bytes, ttl: float) -> None:
        with self._database.writing() as db:
            db.execute(_PUT, (key, text, ttl))
            _sweep(db, "kept_answers")

    def _reserve(self, key: bytes, count: int, seconds: float, longest: float | None) -> Reservation:
        ticket = uuid4().hex
        with self._database.writing(f"rate {key.hex()}") as db:
            now = float(db.execute(_READ_CLOCK).fetchall()[0][0])
            found = db.execute(_FIND_SLOT, (key, now - seconds, count - 1)).fetchone()
            start = now if found is None else max(now, found[0] + seconds)
            if longest is not None and start - now > longest:
                return Reservation(start - now, None)
            db.execute("INSERT INTO rate_slots VALUES (?, ?, ?, ?)", (key, encode(ticket), start, start + seconds))
            _sweep(db, "rate_slots")
        return Reservation(start - now, ticket)

    def _cancel(self, key: bytes, ticket: bytes) -> None:
        with self._database.writing() as db:
            db.execute("DELETE FROM rate_slots WHERE key = ? AND ticket = ?", (key, ticket))


def _sweep(db: Transaction, table: str) -> None:
    """Delete some of what has expired; what another one deletes now is left to it."""
    db.execute(_SWEEP.format(table=table, now=_NOW))
