"""Conversations in SQLite: the default. One file, which threads and processes may share."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from utools.context.store import Summary
from utools.context.turns import Turn
from utools.databases.sqlite_file import Layout, SqliteFile, data_file
from utools.errors import DefinitionError, ToolError
from utools.files.protected_paths import protect_store
from utools.threads import DaemonThreads

PATH_VARIABLE = "AGENT_CORE_CONTEXT_DB"
BUSY_SECONDS = 30.0
THREADS = 8

SESSIONS = "CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, expires REAL)"
TURNS = """CREATE TABLE IF NOT EXISTS turns (
    place INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn TEXT NOT NULL, messages TEXT NOT NULL,
    UNIQUE (session, turn))"""
SUMMARIES = "CREATE TABLE summaries (session TEXT PRIMARY KEY, turns INTEGER NOT NULL, text TEXT NOT NULL)"
LAYOUT = Layout("conversations", ((SESSIONS, TURNS), (SUMMARIES,)), frozenset({"sessions", "turns"}))

NOT_EXPIRED = "NOT EXISTS (SELECT 1 FROM sessions WHERE session = ? AND expires <= ?)"
SESSIONS_WITH_TURNS = """SELECT DISTINCT session FROM turns
    WHERE session NOT IN (SELECT session FROM sessions WHERE expires <= ?)"""
LAST = "SELECT count(*), max(place) FROM turns WHERE session = ? GROUP BY session"
KEEP = """INSERT INTO summaries (session, turns, text)
    SELECT ?, ?, ? WHERE (SELECT count(*) FROM turns WHERE session = ?) >= ?
    ON CONFLICT (session) DO UPDATE SET turns = excluded.turns, text = excluded.text WHERE turns < excluded.turns"""


class SqliteContextStore:
    """A ContextStore in one SQLite file (WAL), opened anew for each call, so that it survives a fork.

    Without a path it is `AGENT_CORE_CONTEXT_DB`, or `context.db` in the user's data directory, found at first use.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = None if path is None else Path(path)
        self._clock = clock
        self._threads = DaemonThreads(THREADS)
        with suppress(DefinitionError):  # without a home directory the first use fails
            protect_store(self._path or default_path())

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        return await self._threads.run(self._append, session, turn_id, json.dumps(turn), ttl)

    async def turns(self, session: str) -> list[Turn]:
        return await self._threads.run(self._turns, session)

    async def seconds_left(self, session: str) -> float | None:
        return await self._threads.run(self._seconds_left, session)

    async def sessions(self) -> list[str]:
        return await self._threads.run(self._sessions)

    async def drop_last(self, session: str, count: int) -> bool:
        return await self._threads.run(self._drop_last, session, count)

    async def clear(self, session: str) -> bool:
        return await self._threads.run(self._clear, session)

    async def summary(self, session: str) -> Summary | None:
        return await self._threads.run(self._summary, session)

    async def keep_summary(self, session: str, summary: Summary) -> None:
        await self._threads.run(self._keep_summary, session, summary)

    def _append(self, session: str, turn_id: str, text: str, ttl: float | None) -> bool:
        with self._file() as file, file.writing() as database:
            self._expire(database, session)
            added = database.execute(
                "INSERT INTO turns (session, turn, messages) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (session, turn_id, text),
            ).rowcount
            if added and ttl is not None:
                expires = self._clock() + ttl
                database.execute("REPLACE INTO sessions (session, expires) VALUES (?, ?)", (session, expires))
            return added == 1 or self._has(database, session, turn_id, text)

    @staticmethod
    def _has(database: sqlite3.Connection, session: str, turn_id: str, text: str) -> bool:
        same = "SELECT 1 FROM turns WHERE session = ? AND turn = ? AND messages = ?"
        return database.execute(same, (session, turn_id, text)).fetchone() is not None

    def _turns(self, session: str) -> list[Turn]:
        rows = f"SELECT messages FROM turns WHERE session = ? AND {NOT_EXPIRED} ORDER BY place"
        with self._file() as file:
            found = file.select("turns", rows, session, session, self._clock())
        return [json.loads(text) for (text,) in found]

    def _seconds_left(self, session: str) -> float | None:
        now = self._clock()
        with self._file() as file:
            found = file.select(
                "sessions", "SELECT expires FROM sessions WHERE session = ? AND expires > ?", session, now
            )
        return found[0][0] - now if found else None

    def _sessions(self) -> list[str]:
        with self._file() as file:
            found = file.select("turns", SESSIONS_WITH_TURNS, self._clock())
        return sorted(session for (session,) in found)

    def _summary(self, session: str) -> Summary | None:
        rows = f"SELECT turns, text FROM summaries WHERE session = ? AND {NOT_EXPIRED}"
        with self._file() as file:
            found = file.select("summaries", rows, session, session, self._clock())
        return Summary(found[0][0], json.loads(found[0][1])) if found else None

    def _keep_summary(self, session: str, summary: Summary) -> None:
        with self._file() as file, file.writing() as database:
            self._expire(database, session)
            database.execute(KEEP, (session, summary.turns, json.dumps(summary.text), session, summary.turns))

    def _drop_last(self, session: str, count: int) -> bool:
        with self._file() as file, file.writing() as database:
            self._expire(database, session)
            found = database.execute(LAST, (session,)).fetchone()
            if found is None or found[0] != count:
                return False
            if count == 1:
                return _forget(database, session) > 0
            database.execute("DELETE FROM turns WHERE place = ?", (found[1],))
            database.execute("DELETE FROM summaries WHERE session = ? AND turns = ?", (session, count))
            return True

    def _clear(self, session: str) -> bool:
        with self._file() as file, file.writing() as database:
            self._expire(database, session)
            return _forget(database, session) > 0

    def _expire(self, database: sqlite3.Connection, session: str) -> None:
        due = "SELECT 1 FROM sessions WHERE session = ? AND expires <= ?"
        if database.execute(due, (session, self._clock())).fetchone():
            _forget(database, session)

    @contextmanager
    def _file(self) -> Iterator[SqliteFile]:
        """Open the file for a block. ToolError where it cannot be used, as for any other store that is away."""
        path = self._path or default_path()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(SqliteFile(path, LAYOUT, busy_seconds=BUSY_SECONDS)) as file:
                yield file
        except (sqlite3.Error, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ToolError(
                "the file of conversations, {file}, cannot be used: {why}", file=path.name, why=why
            ) from error


def default_path() -> Path:
    """Return the default file of conversations."""
    return data_file("context.db", PATH_VARIABLE)


def _forget(database: sqlite3.Connection, session: str) -> int:
    for table in ("sessions", "summaries"):
        database.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    return database.execute("DELETE FROM turns WHERE session = ?", (session,)).rowcount
