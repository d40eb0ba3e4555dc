"""PostgresRunStore: runs in a PostgreSQL database, which any number of machines may share."""

from collections.abc import Callable, Collection
from dataclasses import astuple
from typing import Any, Final

from agent_core.journal.postgres import LAYOUT as JOURNAL
from agent_core.journal.postgres import PostgresJournal, explained
from agent_core.journal.record import Row
from agent_core.journal.storage_errors import PATIENCE_S
from engine_shim.runs.leases import RENEW_AFTER, TTL, Lease, Leases, Notice, Signal, living_holder, notices, stronger
from engine_shim.runs.store import ALL, LAST, RunEntry, RunFilter
from utools.postgres_database import PostgresDatabase, PostgresLayout, Transaction

_TABLES: Final = """
    CREATE TABLE workflow_runs (
        run TEXT COLLATE "C" PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL, status TEXT NOT NULL,
        started_at TEXT COLLATE "C" NOT NULL, base TEXT NOT NULL, records BIGINT NOT NULL, host TEXT NOT NULL);
    CREATE INDEX workflow_runs_newest ON workflow_runs (started_at DESC, run DESC);
    CREATE TABLE run_claims (
        run TEXT COLLATE "C" PRIMARY KEY, driver TEXT NOT NULL, until DOUBLE PRECISION NOT NULL, wish TEXT);
    CREATE TABLE run_submissions (run TEXT COLLATE "C" PRIMARY KEY, submitter TEXT NOT NULL);
    CREATE TABLE run_traces (run TEXT COLLATE "C" PRIMARY KEY, traceparent TEXT NOT NULL)"""
LAYOUT: Final = PostgresLayout("runs", (_TABLES,))
_COLUMNS: Final = "run, workflow, version, status, started_at, base, records, host"
_SAVE: Final = f"""INSERT INTO workflow_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET ({_COLUMNS}) = ROW (excluded.*)"""
_TAKE: Final = """INSERT INTO run_claims AS held (run, driver, until) VALUES (?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET until = excluded.until, driver = excluded.driver,
    wish = CASE WHEN held.driver = excluded.driver THEN held.wish END"""
Clock = Callable[[], float] | None


class PostgresRunStore:
    """A `RunStore` by the URL of its database. Times of leases are those of the database, unless there is a `clock`.

    Raises JournalError when the database cannot be used.
    """

    def __init__(self, url: str, *, clock: Clock = None, patience: float = PATIENCE_S) -> None:
        self.database = PostgresDatabase(url, (JOURNAL, LAYOUT), patience=patience)
        self.journal = PostgresJournal(self.database)
        self.leases: Leases = PostgresLeases(self.database, clock)

    def save(self, entry: RunEntry) -> None:
        with explained(), self.database.writing(entry.run) as db:
            db.execute(_SAVE, astuple(entry))

    def entry(self, run: str) -> RunEntry | None:
        found = self._select(f"SELECT {_COLUMNS} FROM workflow_runs WHERE run = ?", run)
        return RunEntry(*found[0]) if found else None

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        terms, values = ["true"], list[Any]()
        if wanted.statuses:
            terms, values = [*terms, "status = ANY(?)"], [*values, list(wanted.statuses)]
        if wanted.workflow is not None:
            terms, values = [*terms, "workflow = ?"], [*values, wanted.workflow]
        if wanted.host is not None:
            terms, values = [*terms, "host IN ('', ?)"], [*values, wanted.host]
        query = f"SELECT {_COLUMNS} FROM workflow_runs WHERE {' AND '.join(terms)} ORDER BY started_at DESC, run DESC"
        if wanted.limit is not None and wanted.since is None:
            query, values = f"{query} LIMIT ?", [*values, wanted.limit]
        found = (RunEntry(*row) for row in self._select(query, *values))
        return [entry for entry in found if wanted.admits(entry)][: wanted.limit]

    def find(self, beginning: str, *, limit: int) -> list[str]:
        query = """SELECT run FROM workflow_runs WHERE run >= ? AND run < ?
            UNION SELECT run FROM journal_rows WHERE run >= ? AND run < ? ORDER BY run LIMIT ?"""
        span = (beginning, f"{beginning}{LAST}")
        return [run for (run,) in self._select(query, *span, *span, limit)]

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        return self.journal.tail(run, after)

    def save_submission(self, run: str, submitter: str) -> None:
        with explained(), self.database.writing(run) as db:
            db.execute("INSERT INTO run_submissions VALUES (?, ?) ON CONFLICT DO NOTHING", (run, submitter))

    def submitter(self, run: str) -> str | None:
        found = self._select("SELECT submitter FROM run_submissions WHERE run = ?", run)
        return found[0][0] if found else None

    def save_trace(self, run: str, traceparent: str) -> None:
        with explained(), self.database.writing(run) as db:
            db.execute("INSERT INTO run_traces VALUES (?, ?) ON CONFLICT DO NOTHING", (run, traceparent))

    def trace(self, run: str) -> str | None:
        found = self._select("SELECT traceparent FROM run_traces WHERE run = ?", run)
        return found[0][0] if found else None

    def forget(self, run: str) -> bool:
        with explained(), self.database.writing(run) as db:
            journaled = db.execute("DELETE FROM journal_rows WHERE run = ?", (run,)).rowcount > 0
            listed = db.execute("DELETE FROM workflow_runs WHERE run = ?", (run,)).rowcount > 0
            db.execute("DELETE FROM run_submissions WHERE run = ?", (run,))
            db.execute("DELETE FROM run_traces WHERE run = ?", (run,))
        return listed or journaled

    def close(self) -> None:
        self.database.close()

    def _select(self, query: str, *values: Any) -> list[Any]:
        with explained():
            return self.database.select(query, *values)


class PostgresLeases:
    """Leases among all processes, on whichever machines, that share the database."""

    def __init__(self, database: PostgresDatabase, clock: Clock = None) -> None:
        self._database, self._clock = database, clock

    def acquire(self, run: str, driver: str) -> str | None:
        with explained(), self._database.writing(f"lease {run}") as db:
            row = db.execute("SELECT driver, until FROM run_claims WHERE run = ?", (run,)).fetchone()
            now = self._now(db)
            if holder := living_holder(Lease(*row) if row else None, now, other_than=driver):
                return holder
            db.execute(_TAKE, (run, driver, now + TTL))
        return None

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        asked = list(runs)
        query = "SELECT run, wish, until FROM run_claims WHERE driver = ? AND run = ANY(?)"
        rows, now = self._select(query, driver, asked), self._read_clock()
        own: dict[str, Signal | None] = {run: signal for run, signal, _ in rows}
        if not all(now + TTL - RENEW_AFTER < until <= now + TTL for _, _, until in rows):
            with explained(), self._database.writing(f"driver {driver}") as db:
                update = "UPDATE run_claims SET until = ? WHERE driver = ? AND run = ANY(?)"
                db.execute(update, (now + TTL, driver, list(own)))
        return notices(runs, own)

    def signal(self, run: str, signal: Signal) -> bool:
        with explained(), self._database.writing(f"lease {run}") as db:
            row = db.execute("SELECT driver, until, wish FROM run_claims WHERE run = ?", (run,)).fetchone()
            if row is None or living_holder(Lease(row[0], row[1]), self._now(db)) is None:
                return False
            db.execute("UPDATE run_claims SET wish = ? WHERE run = ?", (stronger(row[2], signal), run))
        return True

    def release(self, run: str, driver: str) -> None:
        with explained(), self._database.writing(f"lease {run}") as db:
            db.execute("DELETE FROM run_claims WHERE run = ? AND driver = ?", (run, driver))

    def holder(self, run: str) -> str | None:
        rows = self._select("SELECT driver, until FROM run_claims WHERE run = ?", run)
        return living_holder(Lease(*rows[0]), self._read_clock()) if rows else None

    def _now(self, db: Transaction) -> float:
        if self._clock is not None:
            return self._clock()
        found = db.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        assert found is not None
        return float(found[0])

    def _read_clock(self) -> float:
        if self._clock is not None:
            return self._clock()
        return float(self._select("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])

    def _select(self, query: str, *values: Any) -> list[Any]:
        with explained():
            return self._database.select(query, *values)
