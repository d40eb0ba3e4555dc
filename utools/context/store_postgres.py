"""PostgresContextStore: conversations in PostgreSQL, for hosts that are several processes or machines."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from utools.calls.database_threads import DatabaseThreads, decode, encode
from utools.context.store import Summary
from utools.context.turns import Turn
from utools.databases.postgres_database import PostgresDatabase
from utools.databases.postgres_layout import PostgresLayout
from utools.databases.transaction import Transaction

# Names are found by their digests, since an index takes no text of more than 2,700 bytes. A conversation without turns
# has no row.
_TABLES: Final = """
    CREATE TABLE conversations (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session BYTEA NOT NULL, expires DOUBLE PRECISION,
        summarised INTEGER NOT NULL DEFAULT 0, summary TEXT);
    CREATE UNIQUE INDEX conversations_name ON conversations (sha256(session));
    CREATE INDEX conversations_expiry ON conversations (expires);
    CREATE TABLE conversation_turns (
        place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        conversation BIGINT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        turn BYTEA NOT NULL, messages TEXT NOT NULL);
    CREATE UNIQUE INDEX conversation_turns_name ON conversation_turns (conversation, sha256(turn));
    CREATE INDEX conversation_turns_order ON conversation_turns (conversation, place)"""
LAYOUT: Final = PostgresLayout("conversations", (_TABLES,))

_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_NAMED: Final = "sha256(session) = sha256(?)"
_LIVE: Final = f"(expires IS NULL OR expires > {_NOW})"
_SESSIONS: Final = f"SELECT session FROM conversations WHERE {_LIVE}"
COUNT: Final = f"SELECT count(*) FROM conversations WHERE {_LIVE}"
_TURNS: Final = f"""SELECT messages FROM conversation_turns JOIN conversations ON id = conversation
    WHERE {_NAMED} AND {_LIVE} ORDER BY place"""
_SECONDS_LEFT: Final = f"SELECT expires - {_NOW} FROM conversations WHERE {_NAMED} AND expires > {_NOW}"
_SUMMARY: Final = f"SELECT summarised, summary FROM conversations WHERE {_NAMED} AND {_LIVE} AND summary IS NOT NULL"
_LOCK: Final = f"SELECT id, {_LIVE} FROM conversations WHERE {_NAMED} FOR UPDATE"
_ADD: Final = "INSERT INTO conversations (session) VALUES (?) RETURNING id"
_ADD_TURN: Final = """INSERT INTO conversation_turns (conversation, turn, messages) VALUES (?, ?, ?)
    ON CONFLICT DO NOTHING"""
_SAME_TURN: Final = """SELECT 1 FROM conversation_turns
    WHERE conversation = ? AND sha256(turn) = sha256(?) AND messages = ?"""
_EXPIRE: Final = f"UPDATE conversations SET expires = {_NOW} + ? WHERE id = ?"
_SWEEP: Final = f"""DELETE FROM conversations WHERE id = ANY(ARRAY(
    SELECT id FROM conversations WHERE expires <= {_NOW} LIMIT 100 FOR UPDATE SKIP LOCKED))"""
_LAST: Final = "SELECT count(*), max(place) FROM conversation_turns WHERE conversation = ?"
_KEEP: Final = """UPDATE conversations SET summarised = ?, summary = ? WHERE id = ? AND summarised < ?
    AND (SELECT count(*) FROM conversation_turns WHERE conversation = id) >= ?"""
_FORGET: Final = "UPDATE conversations SET summarised = 0, summary = NULL WHERE id = ? AND summarised = ?"
_DELETE: Final = "DELETE FROM conversations WHERE id = ?"


class PostgresContextStore:
    """A ContextStore in a PostgreSQL database, which stays its owner's. Its clock is that of the server."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database, self._threads = database, DatabaseThreads()

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        return await self._threads.run(self._append, encode(session), encode(turn_id), json.dumps(turn), ttl)

    async def turns(self, session: str) -> list[Turn]:
        found = await self._threads.run(self._database.select, _TURNS, encode(session))
        return [json.loads(messages) for (messages,) in found]

    async def seconds_left(self, session: str) -> float | None:
        found = await self._threads.run(self._database.select, _SECONDS_LEFT, encode(session))
        return found[0][0] if found else None

    async def sessions(self) -> list[str]:
        found = await self._threads.run(self._database.select, _SESSIONS)
        return sorted(decode(session) for (session,) in found)

    async def drop_last(self, session: str, count: int) -> bool:
        return await self._threads.run(self._drop_last, encode(session), count)

    async def clear(self, session: str) -> bool:
        return await self._threads.run(self._clear, encode(session))

    async def summary(self, session: str) -> Summary | None:
        found = await self._threads.run(self._database.select, _SUMMARY, encode(session))
        return Summary(found[0][0], json.loads(found[0][1])) if found else None

    async def keep_summary(self, session: str, summary: Summary) -> None:
        await self._threads.run(self._keep_summary, encode(session), summary.turns, json.dumps(summary.text))

    def _append(self, session: bytes, turn_id: bytes, text: str, ttl: float | None) -> bool:
        with self._changing(session) as (db, known):
            number = db.execute(_ADD, (session,)).fetchone()[0] if known is None else known
            if db.execute(_ADD_TURN, (number, turn_id, text)).rowcount == 0:
                return db.execute(_SAME_TURN, (number, turn_id, text)).fetchone() is not None
            if ttl is not None:
                db.execute(_EXPIRE, (float(ttl), number))
                db.execute(_SWEEP)
        return True

    def _drop_last(self, session: bytes, count: int) -> bool:
        with self._changing(session) as (db, known):
            if known is None:
                return False
            number, last = db.execute(_LAST, (known,)).fetchone()
            if number != count:
                return False
            if count == 1:
                db.execute(_DELETE, (known,))
            else:
                db.execute("DELETE FROM conversation_turns WHERE place = ?", (last,))
                db.execute(_FORGET, (known, count))
        return True

    def _clear(self, session: bytes) -> bool:
        with self._changing(session) as (db, known):
            if known is not None:
                db.execute(_DELETE, (known,))
        return known is not None

    def _keep_summary(self, session: bytes, turns: int, text: str) -> None:
        with self._changing(session) as (db, known):
            if known is not None:
                db.execute(_KEEP, (turns, text, known, turns, turns))

    @contextmanager
    def _changing(self, session: bytes) -> Iterator[tuple[Transaction, int | None]]:
        """A transaction that no other writer of this conversation shares, and its number; None where none lives."""
        with self._database.writing(f"conversation {sha256(session).hexdigest()}") as db:
            number, is_live = db.execute(_LOCK, (session,)).fetchone() or (None, False)
            if number is not None and not is_live:
                db.execute(_DELETE, (number,))
            yield db, number if is_live else None
