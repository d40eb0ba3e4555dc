"""SqliteDatabase: the SQLite file of a run store, which is the file of its journal as well."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agent_core.errors import JournalError
from agent_core.journal.sqlite_layout import LAYOUT as JOURNAL
from agent_core.journal.storage_errors import PATIENCE_S, advise
from engine_shim.store.database import Dialect
from utools.databases.sqlite_file import LayoutError, SqliteFile
from utools.databases.transaction import Transaction
from utools.threads import Threads

_RUNS = """CREATE TABLE IF NOT EXISTS workflow_runs (
    run TEXT PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL, status TEXT NOT NULL,
    started_at TEXT NOT NULL, base TEXT NOT NULL)"""
_NEWEST = "CREATE INDEX IF NOT EXISTS workflow_runs_newest ON workflow_runs (started_at DESC, run DESC)"
_BY_STATUS = "CREATE INDEX IF NOT EXISTS workflow_runs_status ON workflow_runs (status, started_at DESC, run DESC)"
_HOSTS = """CREATE TABLE IF NOT EXISTS run_hosts (
    run TEXT PRIMARY KEY, records INTEGER NOT NULL, host TEXT NOT NULL) WITHOUT ROWID"""
_LEASES = """CREATE TABLE IF NOT EXISTS run_claims (
    run TEXT PRIMARY KEY, driver TEXT NOT NULL, until REAL NOT NULL, wish TEXT) WITHOUT ROWID"""
_SUBMISSIONS = """CREATE TABLE IF NOT EXISTS run_submissions (
    run TEXT PRIMARY KEY, submitter TEXT NOT NULL) WITHOUT ROWID"""
_TRACES = """CREATE TABLE IF NOT EXISTS run_traces (
    run TEXT PRIMARY KEY, traceparent TEXT NOT NULL) WITHOUT ROWID"""
_TOKENS = """CREATE TABLE IF NOT EXISTS api_tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant TEXT, scopes TEXT NOT NULL, hash BLOB NOT NULL,
    made_at TEXT NOT NULL, expires_at TEXT) WITHOUT ROWID"""
_EVENTS = """CREATE TABLE IF NOT EXISTS run_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, status TEXT NOT NULL, records INTEGER NOT NULL,
    at TEXT NOT NULL, UNIQUE (run, status, records))"""
_DELIVERIES = """CREATE TABLE IF NOT EXISTS webhook_deliveries (
    hook TEXT NOT NULL, event INTEGER NOT NULL, run TEXT NOT NULL, attempts INTEGER NOT NULL, due REAL NOT NULL,
    PRIMARY KEY (hook, event)) WITHOUT ROWID"""
_CURSORS = "CREATE TABLE IF NOT EXISTS webhook_cursors (hook TEXT PRIMARY KEY, event INTEGER NOT NULL) WITHOUT ROWID"
_CALLBACKS = """CREATE TABLE IF NOT EXISTS run_callbacks (
    run TEXT PRIMARY KEY, url TEXT NOT NULL, decides INTEGER NOT NULL) WITHOUT ROWID"""
_TRIGGERS = """CREATE TABLE IF NOT EXISTS trigger_times (
    name TEXT PRIMARY KEY, at TEXT NOT NULL, run TEXT) WITHOUT ROWID"""
_TRIGGER_CRONS = """CREATE TABLE IF NOT EXISTS trigger_crons (
    name TEXT PRIMARY KEY, cron TEXT NOT NULL) WITHOUT ROWID"""
_LEDGER = """CREATE TABLE IF NOT EXISTS ledger (
    seq INTEGER PRIMARY KEY, run TEXT NOT NULL, hash BLOB NOT NULL, data BLOB NOT NULL)"""
_LEDGER_RUNS = "CREATE INDEX IF NOT EXISTS ledger_runs ON ledger (run)"
_KEPT_LEDGERS = """CREATE TABLE IF NOT EXISTS kept_ledgers (
    store TEXT NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (store, seq)) WITHOUT ROWID"""
_LEDGER_START = "CREATE TABLE IF NOT EXISTS ledger_start (rows INTEGER NOT NULL)"
_LEDGER_STARTS = """INSERT INTO ledger_start
    SELECT CASE WHEN EXISTS (SELECT 1 FROM ledger) THEN 0 ELSE (SELECT coalesce(max(seq), 0) FROM rows) END
    WHERE NOT EXISTS (SELECT 1 FROM ledger_start)"""
_TAKEOVERS = """CREATE TABLE IF NOT EXISTS run_takeovers (
    run TEXT PRIMARY KEY, records INTEGER NOT NULL, taken INTEGER NOT NULL) WITHOUT ROWID"""
_TIMERS = "CREATE TABLE IF NOT EXISTS run_timers (run TEXT PRIMARY KEY, due TEXT) WITHOUT ROWID"
_TURNS = """CREATE TABLE IF NOT EXISTS run_turns (
    run TEXT PRIMARY KEY, agent TEXT NOT NULL, conversation TEXT) WITHOUT ROWID"""
_CONVERSATIONS = "CREATE INDEX IF NOT EXISTS run_turns_conversation ON run_turns (conversation)"
_FOLLOWERS = "CREATE TABLE IF NOT EXISTS run_followers (run TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID"
_PASSING = """CREATE TABLE IF NOT EXISTS passing_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, strand TEXT NOT NULL, n INTEGER NOT NULL,
    at REAL NOT NULL, pieces TEXT NOT NULL)"""
_PASSING_ACTS = "CREATE INDEX IF NOT EXISTS passing_events_act ON passing_events (run, strand, n)"
_SERVED = (
    _SUBMISSIONS,
    _TRACES,
    _TOKENS,
    _EVENTS,
    _DELIVERIES,
    _CURSORS,
    _CALLBACKS,
    _TRIGGERS,
    _TRIGGER_CRONS,
    _LEDGER,
    _LEDGER_RUNS,
)
_DRIVEN = (_LEDGER_START, _LEDGER_STARTS, _KEPT_LEDGERS, _TAKEOVERS, _TIMERS)
_MARK = "CREATE TABLE IF NOT EXISTS journal_mark (seq INTEGER NOT NULL, hash BLOB NOT NULL, at REAL NOT NULL)"
_JOURNAL_RUNS = "CREATE TABLE IF NOT EXISTS journal_runs (run TEXT PRIMARY KEY) WITHOUT ROWID"
_BY_WORKFLOW = """CREATE INDEX IF NOT EXISTS workflow_runs_workflow
    ON workflow_runs (workflow, started_at DESC, run DESC)"""
_LEDGER_NODES = """CREATE TABLE IF NOT EXISTS ledger_nodes (
    level INTEGER NOT NULL, n INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (level, n)) WITHOUT ROWID"""
_STORE_KEYS = "CREATE TABLE IF NOT EXISTS store_keys (n INTEGER PRIMARY KEY, wrapped BLOB NOT NULL)"
_CONTENT_KEYS = """CREATE TABLE IF NOT EXISTS content_keys (
    subject TEXT PRIMARY KEY, store_key INTEGER NOT NULL, wrapped BLOB) WITHOUT ROWID"""
_FOLLOWED = (_FOLLOWERS, _PASSING, _PASSING_ACTS, _LEDGER_NODES, _STORE_KEYS, _CONTENT_KEYS)
_LISTED = (_RUNS, _NEWEST, _BY_STATUS, _BY_WORKFLOW, _HOSTS, _LEASES, _TURNS, _CONVERSATIONS, _MARK, _JOURNAL_RUNS)
LAYOUT = replace(JOURNAL, extra=(*JOURNAL.extra, *_LISTED, *_SERVED, *_DRIVEN, *_FOLLOWED))
_DIALECT: Final = Dialect(
    values="(SELECT value FROM json_each(?))",
    pack=json.dumps,
    contains="CAST(data AS TEXT) LIKE ? ESCAPE '!'",
    spell=lambda text: text,
)


class SqliteDatabase:
    """A file that any number of threads and processes may share.

    The first write makes the file and the tables. Raises JournalError when the file cannot be used.
    """

    dialect = _DIALECT
    threads: Threads | None = None
    shared = None

    def __init__(self, path: Path, *, patience: float = PATIENCE_S) -> None:
        self.path, self._patience = path, patience
        self._file = SqliteFile(path, LAYOUT, busy_seconds=patience)

    @property
    def name(self) -> str:
        return str(self.path)

    def rows(self, table: str, query: str, *values: Any) -> list[Any]:
        with self._explained():
            return self._file.select(table, query, *values)

    @contextmanager
    def writing(self, subject: str | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer of the file shares."""
        with self._explained():
            if not self._file.is_open:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._file.writing() as db:
                yield db

    def lock(self, db: Transaction, subject: str) -> None:
        """Nothing: a writer has the whole file."""

    def read_clock(self, db: Transaction | None = None) -> float:
        return time.time()

    @contextmanager
    def open_reader(self) -> "Iterator[SqliteDatabase]":
        with closing(SqliteDatabase(self.path, patience=self._patience)) as reader:
            yield reader

    @contextmanager
    def open_snapshot(self) -> "Iterator[SqliteDatabase]":
        with self.open_reader() as reader, self._explained(), reader._file.snapshot():
            yield reader

    def prepare(self) -> None:
        with self.writing():
            pass
        self.close()

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what SQLite says into a JournalError that says what to do."""
        try:
            yield
        except LayoutError as error:
            raise JournalError(str(error)) from error
        except (sqlite3.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            hint = advise(error, "choose another by --store or AGENT_CORE_STORE")
            if os.path.isdir(self.path):
                reason, hint = "it is a directory", f"name a file in it, such as {os.path.join(self.path, 'runs.db')}"
            raise JournalError(f"{self.path} cannot be used as a run store: {reason}; {hint}") from error
