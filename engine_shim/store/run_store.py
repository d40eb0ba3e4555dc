"""RunStore: the journal of workflow runs, an index to list them by, and the leases on them."""

import os
from collections import Counter
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_core.errors import JournalError
from agent_core.journal.storage_errors import PATIENCE_S
from agent_core.statuses import NOTIFIED, OPEN, STOPPED, ListedStatus, RunStatus
from engine_shim.store.callbacks import TABLE as CALLBACKS
from engine_shim.store.callbacks import add_event
from engine_shim.store.clock import StoreClock
from engine_shim.store.database import LAST, Database
from engine_shim.store.database_sqlite import LAYOUT, SqliteDatabase
from engine_shim.store.entries import ALL, RunEntry, RunFilter, count_statuses, read_entries, save_entry, select_entries
from engine_shim.store.leases import Leases, StoreLeases
from engine_shim.store.row_news import list_news, poll_status
from engine_shim.store.takeovers import TABLE as TAKEOVERS
from engine_shim.store.takeovers import add_takeover, forget_takeovers, read_takeovers
from engine_shim.store.timers import TABLE as TIMERS
from engine_shim.store.timers import read_due, save_due

if TYPE_CHECKING:
    from agent_core.journal.record import Row
    from agent_core.journal.sqlite import SqliteJournal
    from agent_core.journal.store import Journal, TailedJournal
    from engine_shim.store.content_keys import ContentKeys

StrPath = str | os.PathLike[str]
_HAS_ROWS = "SELECT 1 FROM rows WHERE run = ? LIMIT 1"
_LEFT = """SELECT workflow_runs.run FROM workflow_runs
    JOIN run_submissions ON run_submissions.run = workflow_runs.run
    LEFT JOIN run_claims ON run_claims.run = workflow_runs.run
    WHERE status IN (?, ?)
    AND NOT EXISTS (SELECT 1 FROM run_hosts WHERE run = workflow_runs.run AND host NOT IN ('', ?))"""
_DUE = f"""SELECT workflow_runs.run FROM {TIMERS}
    JOIN workflow_runs ON workflow_runs.run = {TIMERS}.run
    JOIN run_submissions ON run_submissions.run = {TIMERS}.run
    WHERE due <= ? AND status = 'waiting'
    AND NOT EXISTS (SELECT 1 FROM run_hosts WHERE run = workflow_runs.run AND host NOT IN ('', ?))
    ORDER BY due, workflow_runs.run"""
_BESIDE = ("run_hosts", "run_submissions", "run_traces", "run_turns", "run_events", "run_followers", "passing_events")
_TABLES = ("workflow_runs", *_BESIDE, CALLBACKS, TAKEOVERS, TIMERS)
KEY = "AGENT_CORE_ENCRYPTION_KEY"
"""The variable that names the operator's key of an encrypted store."""


class RunStore(Protocol):
    """Runs by id. The journal is the truth; the entries can be lost without losing a run."""

    @property
    def journal(self) -> "Journal":
        """The records of its runs."""
        ...

    @property
    def leases(self) -> Leases:
        """Which process drives which run."""
        ...

    @property
    def clock(self) -> StoreClock:
        """The time that waits, triggers and deliveries go by."""
        ...

    def save(self, entry: RunEntry) -> None:
        """Add the entry, or replace the run's older one, unless that has ended and this one has not."""
        ...

    def entry(self, run: str) -> RunEntry | None:
        """Return the run's entry; None when there is none."""
        ...

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        """Return the entries, newest first."""
        ...

    def count_statuses(self, host: str, statuses: Collection[RunStatus]) -> Counter[str]:
        """Return how many runs of this host (or of no host) have each of the statuses."""
        ...

    def find(self, beginning: str, *, limit: int) -> list[str]:
        """Return the ids that begin so, in order, of runs that have an entry or a journal; `limit` at most."""
        ...

    def tail(self, run: str, after: int = 0) -> "list[tuple[int, Row]]":
        """Return the rows of a run after a position, in the order of appending, each with its position."""
        ...

    def poll_status(self, runs: Collection[str]) -> dict[str, tuple[ListedStatus, int]]:
        """Return the statuses of runs, and the position of each one's last row, or 0 where it is none of the newest."""
        ...

    def list_news(self, after: int) -> dict[str, int]:
        """Return the runs with newer rows, each with the position of its last; none if this process alone writes."""
        ...

    def list_orphaned(self, host: str) -> list[str]:
        """Return submitted runs of this host (or of none) that nobody drives and that have not ended, oldest first."""
        ...

    def save_due(self, run: str, due: str | None) -> None:
        """Note when the earliest wait of a run ends, in ISO 8601, UTC; None without one."""
        ...

    def due(self, run: str) -> str | None:
        """Return when the earliest wait of a run ends, as it was noted last."""
        ...

    def list_due(self, host: str, now: str) -> list[str]:
        """Return submitted runs of this host (or of no host) that wait, and whose time has come; the earliest first."""
        ...

    def save_submission(self, run: str, submitter: str) -> None:
        """Note who handed the run to a server, which drives it on after a restart."""
        ...

    def submitter(self, run: str) -> str | None:
        """Return who handed the run to a server; None for a run that its caller drives."""
        ...

    def save_trace(self, run: str, traceparent: str) -> None:
        """Note which span of its caller a run's spans lie under; the first one stays."""
        ...

    def trace(self, run: str) -> str | None:
        """Return the span that a run's spans lie under, as in the header `traceparent`; None if none was given."""
        ...

    def takeovers(self, run: str) -> int:
        """Return how often servers that ended in its midst have taken the run up since its last record."""
        ...

    def add_takeover(self, run: str) -> None:
        """Note that a server is about to take the run up."""
        ...

    def forget_takeovers(self, run: str) -> None:
        """Note that the run may be taken up anew."""
        ...

    def forget(self, run: str) -> bool:
        """Delete the run for good, its journal first. False when the store holds neither a journal nor an entry."""
        ...

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
        ...


class DatabaseRunStore:
    """Runs in a database, which any number of processes may share. Raises JournalError when it cannot be used."""

    def __init__(
        self,
        database: Database,
        open_journal: "Callable[[], TailedJournal]",
        *,
        clock: Callable[[], float] | None,
        key: str,
    ) -> None:
        self.database, self._open_journal, self._key = database, open_journal, key
        self.clock = StoreClock.of_database(database) if clock is None else StoreClock.of_machine(clock)
        self.leases = StoreLeases(database, self.clock)

    if TYPE_CHECKING:  # checkers know a property of a protocol by nothing but a property

        @property
        def journal(self) -> TailedJournal: ...

        @property
        def contents(self) -> ContentKeys: ...

    else:

        @cached_property
        def journal(self) -> "TailedJournal":
            """The journal in the same database; a list of runs starts without it."""
            return self._open_journal()

        @cached_property
        def contents(self):  # untyped, as it is none of the public names
            """The keys of an encrypted store."""
            from engine_shim.store.content_keys import ContentKeys

            return ContentKeys(self.database, self._key)

    def save(self, entry: RunEntry) -> None:
        with self.database.writing(_subject(entry.run)) as db:
            if not save_entry(db, entry):
                return
            if entry.status in NOTIFIED:
                add_event(self.database, db, entry.run, entry.status, entry.records, self.clock)
            if entry.status in STOPPED:
                from engine_shim.store.ledger import note_rested  # which a list of runs does without

                note_rested(self.database, db, entry.run, entry.status)

    def note_tenant(self, tenant: str | None) -> None:
        """Note whose runs the store holds, for its seals and its ledger; None tells nothing.

        JournalError for the store of another tenant.
        """
        if tenant is None:
            return
        with self.database.writing() as db:
            db.execute("UPDATE store_identity SET tenant = ? WHERE tenant IS NULL", (tenant,))
            (noted,) = db.execute("SELECT tenant FROM store_identity").fetchone()
        if noted != tenant:
            hint = "put the store of each tenant back where it was"
            raise JournalError(f"{self.database.name} holds the runs of tenant {noted}, not of {tenant}; {hint}")

    def entry(self, run: str) -> RunEntry | None:
        entries = read_entries(self.database, "WHERE run = ?", run)
        return entries[0] if entries else None

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        return select_entries(self.database, wanted)

    def count_statuses(self, host: str, statuses: Collection[RunStatus]) -> Counter[str]:
        return count_statuses(self.database, host, statuses)

    def find(self, beginning: str, *, limit: int) -> list[str]:
        found: set[str] = set()
        for table in ("workflow_runs", "rows"):
            query = f"SELECT DISTINCT run FROM {table} WHERE run >= ? AND run < ? ORDER BY run LIMIT ?"
            found.update(run for (run,) in self.database.rows(table, query, beginning, f"{beginning}{LAST}", limit))
        return sorted(found)[:limit]

    def tail(self, run: str, after: int = 0) -> "list[tuple[int, Row]]":
        return self.journal.tail(run, after)

    def poll_status(self, runs: Collection[str]) -> dict[str, tuple[ListedStatus, int]]:
        return poll_status(self.database, runs)

    def list_news(self, after: int) -> dict[str, int]:
        return list_news(self.database, after)

    def list_orphaned(self, host: str) -> list[str]:
        free, values = self.leases.free()
        query = f"{_LEFT} AND {free} ORDER BY started_at, workflow_runs.run"
        found = [run for (run,) in self.database.rows("run_submissions", query, *OPEN, host, *values)]
        held = self.leases.held(found)
        return [run for run in found if run not in held]

    def save_due(self, run: str, due: str | None) -> None:
        save_due(self.database, run, due)

    def due(self, run: str) -> str | None:
        return read_due(self.database, run)

    def list_due(self, host: str, now: str) -> list[str]:
        return [run for (run,) in self.database.rows(TIMERS, _DUE, now, host)]

    def save_submission(self, run: str, submitter: str) -> None:
        self._keep_first("run_submissions", run, submitter)

    def submitter(self, run: str) -> str | None:
        return self._kept("run_submissions", "submitter", run)

    def save_trace(self, run: str, traceparent: str) -> None:
        self._keep_first("run_traces", run, traceparent)

    def trace(self, run: str) -> str | None:
        return self._kept("run_traces", "traceparent", run)

    def takeovers(self, run: str) -> int:
        return read_takeovers(self.database, run)

    def add_takeover(self, run: str) -> None:
        add_takeover(self.database, run)

    def forget_takeovers(self, run: str) -> None:
        forget_takeovers(self.database, run)

    def forget(self, run: str) -> bool:
        is_known, is_journaled = self.entry(run) is not None, bool(self.database.rows("rows", _HAS_ROWS, run))
        if not (is_known or is_journaled or self.submitter(run)):
            return False
        journaled = self.journal.delete(run)
        with self.database.writing(_subject(run)) as db:
            for table in _TABLES:
                db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
            db.execute("DELETE FROM content_keys WHERE subject = ?", (run,))
        return is_known or journaled

    def close(self) -> None:
        if "journal" in vars(self):
            self.journal.close()
        self.database.close()

    def _keep_first(self, table: str, run: str, value: str) -> None:
        with self.database.writing(_subject(run)) as db:
            db.execute(f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO NOTHING", (run, value))

    def _kept(self, table: str, column: str, run: str) -> str | None:
        found = self.database.rows(table, f"SELECT {column} FROM {table} WHERE run = ?", run)
        return found[0][0] if found else None


class SqliteRunStore(DatabaseRunStore):
    """Runs in one SQLite file, made with the first run; processes may share it. JournalError if it cannot be used."""

    def __init__(
        self, path: StrPath, *, clock: Callable[[], float] | None = None, patience: float = PATIENCE_S, key: str = KEY
    ) -> None:
        self.path = Path(path)
        database = SqliteDatabase(self.path, patience=patience)

        def open_journal() -> "SqliteJournal":
            from agent_core.journal.sqlite import SqliteJournal
            from engine_shim.store.ledger import LedgerKeeper

            keeper = LedgerKeeper(database)
            return SqliteJournal._beside(
                self.path, patience=patience, layout=LAYOUT, keeper=keeper, ciphers=self.contents
            )

        super().__init__(database, open_journal, clock=clock, key=key)


def _subject(run: str) -> str:
    """Writing an entry waits for other writers of the same entry, and not for appends to the journal."""
    return f"entry {run}"
