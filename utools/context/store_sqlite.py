"""Conversations in SQLite: the default. One file, which threads and processes may share."""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from utools.context.turns import Turn
from utools.files.protected_paths import protect_store
from utools.threads import DaemonThreads

PATH_VARIABLE = "AGENT_CORE_CONTEXT_DB"
BUSY_SECONDS = 30.0
THREADS = 8

TABLES = """
CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, expires REAL);
CREATE TABLE IF NOT EXISTS turns (
    place INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn TEXT NOT NULL, messages TEXT NOT NULL,
    UNIQUE (session, turn));
"""


class SqliteContextStore:
    """A ContextStore in one SQLite file (WAL), opened anew for each call, so that it survives a fork.

    Without a path it is `AGENT_CORE_CONTEXT_DB`, or `context.db` in the user's data directory, found at first use.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = None if path is None else Path(path)
        self._clock = clock
        self._threads = DaemonThreads(THREADS)
        with suppress(RuntimeError):  # without a home directory it has to be told at its first use
            protect_store(self._path or default_path())

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        return await self._threads.run(self._append, session, turn_id, json.dumps(turn), ttl)

    async def turns(self, session: str) -> list[Turn]:
        return await self._threads.run(self._turns, session)

    async def clear(self, session: str) -> bool:
        return await self._threads.run(self._clear, session)

    def _append(self, session: str, turn_id: str, text: str, ttl: float | None) -> bool:
        with self._transaction() as database:
            self._expire(database, session)
            added = database.execute(
                "INSERT INTO turns (session, turn, messages) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (session, turn_id, text),
            ).rowcount
            if added and ttl is not None:
                expires = self._clock() + ttl
                database.execute("REPLACE INTO sessions (session, expires) VALUES (?, ?)", (session, expires))
            return added == 1

    def _turns(self, session: str) -> list[Turn]:
        rows = "SELECT messages FROM turns WHERE session = ? AND NOT EXISTS (%s) ORDER BY place"
        expired = "SELECT 1 FROM sessions WHERE session = ? AND expires <= ?"
        with closing(self._connected()) as database:
            found = database.execute(rows % expired, (session, session, self._clock())).fetchall()
        return [json.loads(text) for (text,) in found]

    def _clear(self, session: str) -> bool:
        with self._transaction() as database:
            self._expire(database, session)
            return _forget(database, session) > 0

    def _expire(self, database: sqlite3.Connection, session: str) -> None:
        due = "SELECT 1 FROM sessions WHERE session = ? AND expires <= ?"
        if database.execute(due, (session, self._clock())).fetchone():
            _forget(database, session)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection that holds the write lock; commits at the end, or undoes everything."""
        with closing(self._connected()) as database:
            database.execute("BEGIN IMMEDIATE")
            with database:
                yield database

    def _connected(self) -> sqlite3.Connection:
        path = self._path or default_path()
        protect_store(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            with suppress(sqlite3.OperationalError):  # busy: another one switches the new file just now, and none waits
                database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.executescript(TABLES)
        except BaseException:
            database.close()
            raise
        return database


def default_path() -> Path:
    """Where conversations are kept when nobody says where."""
    if chosen := os.environ.get(PATH_VARIABLE):
        return Path(chosen)
    home = Path.home()
    match sys.platform:
        case "darwin":
            data = home / "Library" / "Application Support"
        case "win32":
            data = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        case _:
            data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return data / "agent-core" / "context.db"


def _forget(database: sqlite3.Connection, session: str) -> int:
    database.execute("DELETE FROM sessions WHERE session = ?", (session,))
    return database.execute("DELETE FROM turns WHERE session = ?", (session,)).rowcount
