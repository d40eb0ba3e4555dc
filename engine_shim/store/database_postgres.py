"""PostgresDatabase: the tables of a run store in PostgreSQL, which any number of machines may share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from agent_core.journal.postgres import LAYOUT as JOURNAL
from agent_core.journal.postgres import explained
from agent_core.journal.storage_errors import PATIENCE_S
from engine_shim.store.database import Dialect
from utools.calls.store_postgres import LAYOUT as CALLS
from utools.context.store_postgres import LAYOUT as CONVERSATIONS
from utools.databases.postgres_connection import TAKES_WRITES
from utools.databases.postgres_database import PostgresDatabase as Server
from utools.databases.postgres_layout import PostgresLayout
from utools.databases.postgres_transaction import Select
from utools.databases.transaction import Transaction
from utools.threads import Threads

_RUNS: Final = """
    CREATE TABLE workflow_runs (
        run TEXT COLLATE "C" PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL, status TEXT NOT NULL,
        started_at TEXT COLLATE "C" NOT NULL, base TEXT NOT NULL, records BIGINT NOT NULL, host TEXT NOT NULL);
    CREATE INDEX workflow_runs_newest ON workflow_runs (started_at DESC, run DESC);
    CREATE TABLE run_claims (
        run TEXT COLLATE "C" PRIMARY KEY, driver TEXT NOT NULL, until DOUBLE PRECISION NOT NULL, wish TEXT);
    CREATE TABLE run_submissions (run TEXT COLLATE "C" PRIMARY KEY, submitter TEXT NOT NULL);
    CREATE TABLE run_traces (run TEXT COLLATE "C" PRIMARY KEY, traceparent TEXT NOT NULL)"""
_SERVED: Final = """
    CREATE TABLE run_hosts (run TEXT COLLATE "C" PRIMARY KEY, records BIGINT NOT NULL, host TEXT NOT NULL);
    INSERT INTO run_hosts SELECT run, records, host FROM workflow_runs;
    ALTER TABLE workflow_runs DROP COLUMN records, DROP COLUMN host;
    CREATE TABLE api_tokens (
        id TEXT COLLATE "C" PRIMARY KEY, name TEXT NOT NULL, tenant TEXT, scopes TEXT NOT NULL, hash BYTEA NOT NULL,
        made_at TEXT COLLATE "C" NOT NULL, expires_at TEXT);
    CREATE TABLE run_events (
        seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run TEXT COLLATE "C" NOT NULL, status TEXT NOT NULL,
        records BIGINT NOT NULL, at TEXT NOT NULL, UNIQUE (run, status, records));
    CREATE TABLE webhook_deliveries (
        hook TEXT COLLATE "C" NOT NULL, event BIGINT NOT NULL, run TEXT COLLATE "C" NOT NULL,
        attempts BIGINT NOT NULL, due DOUBLE PRECISION NOT NULL, PRIMARY KEY (hook, event));
    CREATE TABLE webhook_cursors (hook TEXT COLLATE "C" PRIMARY KEY, event BIGINT NOT NULL);
    CREATE TABLE trigger_times (name TEXT COLLATE "C" PRIMARY KEY, at TEXT NOT NULL, run TEXT);
    CREATE TABLE ledger (
        seq BIGINT PRIMARY KEY, run TEXT COLLATE "C" NOT NULL, hash BYTEA NOT NULL, data BYTEA NOT NULL);
    CREATE INDEX ledger_runs ON ledger (run)"""
_FOR_MANY: Final = """
    CREATE INDEX workflow_runs_status ON workflow_runs (status, started_at DESC, run DESC);
    CREATE INDEX run_claims_driver ON run_claims (driver)"""
_TAKEOVERS: Final = """
    CREATE TABLE run_takeovers (
        run TEXT COLLATE "C" PRIMARY KEY, records BIGINT NOT NULL, taken BIGINT NOT NULL)"""
_TURNS: Final = """
    CREATE TABLE run_turns (run TEXT COLLATE "C" PRIMARY KEY, agent TEXT NOT NULL, conversation TEXT COLLATE "C");
    CREATE INDEX run_turns_conversation ON run_turns (conversation)"""
_TIMERS: Final = 'CREATE TABLE run_timers (run TEXT COLLATE "C" PRIMARY KEY, due TEXT COLLATE "C")'
_LEDGER_START: Final = """
    CREATE TABLE ledger_start (rows BIGINT NOT NULL);
    INSERT INTO ledger_start
        SELECT CASE WHEN EXISTS (SELECT 1 FROM ledger) THEN 0 ELSE (SELECT coalesce(max(seq), 0) FROM rows) END"""
_KEPT_LEDGERS: Final = """
    CREATE TABLE kept_ledgers (
        store TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, hash BYTEA NOT NULL, data BYTEA NOT NULL,
        PRIMARY KEY (store, seq))"""
_PASSING: Final = """
    CREATE UNLOGGED TABLE run_followers (run TEXT COLLATE "C" PRIMARY KEY, until DOUBLE PRECISION NOT NULL);
    CREATE SEQUENCE passing_events_seq;
    CREATE UNLOGGED TABLE passing_events (
        seq BIGINT PRIMARY KEY DEFAULT nextval('passing_events_seq'), run TEXT COLLATE "C" NOT NULL,
        strand TEXT COLLATE "C" NOT NULL, n BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, pieces TEXT NOT NULL);
    CREATE INDEX passing_events_act ON passing_events (run, strand, n)"""
"""Without a log: a crash of the server empties the tables, which may lose anything. The sequence is not theirs, so that
positions go on where they were."""
_CALLBACKS: Final = """
    CREATE TABLE run_callbacks (run TEXT COLLATE "C" PRIMARY KEY, url TEXT NOT NULL, decides BIGINT NOT NULL)"""
_FOR_MORE: Final = """
    CREATE INDEX workflow_runs_workflow ON workflow_runs (workflow, started_at DESC, run DESC);
    CREATE TABLE journal_mark (seq BIGINT NOT NULL, hash BYTEA NOT NULL, at DOUBLE PRECISION NOT NULL);
    CREATE TABLE journal_runs (run TEXT COLLATE "C" PRIMARY KEY)"""
_LEDGER_NODES: Final = """
    CREATE TABLE ledger_nodes (
        level BIGINT NOT NULL, n BIGINT NOT NULL, hash BYTEA NOT NULL, PRIMARY KEY (level, n))"""
_CONTENT_KEYS: Final = """
    CREATE TABLE store_keys (n BIGINT PRIMARY KEY, wrapped BYTEA NOT NULL);
    CREATE TABLE content_keys (subject TEXT COLLATE "C" PRIMARY KEY, store_key BIGINT NOT NULL, wrapped BYTEA)"""
_TRIGGER_CRONS: Final = 'CREATE TABLE trigger_crons (name TEXT COLLATE "C" PRIMARY KEY, cron TEXT NOT NULL)'
_FIRST_STEPS: Final = (_RUNS, _SERVED, _FOR_MANY, _TAKEOVERS, _TURNS, _TIMERS)
_LATER_STEPS: Final = (_LEDGER_START, _KEPT_LEDGERS, _PASSING, _CALLBACKS, _FOR_MORE, _LEDGER_NODES, _CONTENT_KEYS)
LAYOUT: Final = PostgresLayout("runs", (*_FIRST_STEPS, *_LATER_STEPS, _TRIGGER_CRONS))
LAYOUTS: Final = (JOURNAL, LAYOUT, CONVERSATIONS, CALLS)
_NOW: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"


def _spell(text: str) -> str:
    """Return a text as encode(…, 'escape') writes its bytes."""
    return "".join(
        "\\\\" if byte == 0x5C else chr(byte) if 0 < byte < 0x80 else f"\\{byte:03o}" for byte in text.encode()
    )


_DIALECT: Final = Dialect(
    values="(SELECT unnest(?::text[]) AS value)",
    pack=list,
    contains="encode(data, 'escape') ILIKE ? ESCAPE '!'",
    spell=_spell,
)


class PostgresDatabase:
    """A database by its URL, or one schema of it. Its clock is that of the server."""

    dialect = _DIALECT

    def __init__(self, url: str, *, schema: str | None = None, patience: float = PATIENCE_S) -> None:
        self.shared = Server(url, LAYOUTS, schema=schema, patience=patience)

    @property
    def threads(self) -> Threads | None:
        return self.shared.threads

    @property
    def name(self) -> str:
        return self.shared.name

    def rows(self, table: str, query: str, *values: Any) -> list[Any]:
        with explained():
            return self.shared.select(query, *values)

    @contextmanager
    def writing(self, subject: str | None = None) -> Iterator[Transaction]:
        with explained(), self.shared.writing(subject) as db:
            yield db

    def lock(self, db: Transaction, subject: str) -> None:
        self.shared.lock(db, subject)

    def read_clock(self, db: Transaction | None = None) -> float:
        return float((self.rows("", _NOW) if db is None else db.execute(_NOW).fetchall())[0][0])

    @contextmanager
    def open_reader(self) -> "Iterator[PostgresDatabase]":
        """The database itself: each query has a connection of its own."""
        yield self

    @contextmanager
    def open_snapshot(self) -> "Iterator[PostgresSnapshot]":
        with explained(), self.shared.snapshot() as select:
            yield PostgresSnapshot(select)

    def prepare(self) -> None:
        self.read_clock()

    def find_state(self) -> Literal["missing", "older", "current"]:
        """Return how the tables are; nothing is made."""
        with explained():
            versions = self.shared.find_versions()
        known = [(layout.name, len(layout.steps)) for layout in LAYOUTS]
        if not any(name in versions for name, _ in known):
            return "missing"
        return "older" if any(versions.get(name, 0) < version for name, version in known) else "current"

    def takes_writes(self) -> bool:
        """Return whether the server takes writes: a replica does not, nor one that was set to read only."""
        with explained():
            return self.shared.select(TAKES_WRITES) == [(True,)]

    def close(self) -> None:
        self.shared.close()


class PostgresSnapshot:
    """A `Reader` of a database as it is at one moment."""

    def __init__(self, select: Select) -> None:
        self._select = select

    def rows(self, table: str, query: str, *values: Any) -> list[Any]:
        return self._select(query, *values)
