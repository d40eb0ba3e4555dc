"""RunStore: the journal of workflow runs, an index to list them by, and the leases on them."""

import json
import os
import time
from collections.abc import Callable, Collection
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent_core.journal.storage_errors import PATIENCE_S
from engine_shim.runs.database import LAYOUT, Database
from engine_shim.runs.leases import Leases, MemoryLeases, SqliteLeases
from utools.sqlite_file import data_file

if TYPE_CHECKING:
    import sqlite3

    from agent_core.journal.record import Row
    from agent_core.journal.sqlite import SqliteJournal
    from agent_core.journal.store import Journal

StrPath = str | os.PathLike[str]
_COLUMNS = "run, workflow, version, status, started_at, base"
TOLD = ("waiting", "completed", "failed", "cancelled")
"""The statuses that webhooks tell of."""
LAST = "\U0010ffff"
"""Sorts after every character of an id."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run as a list shows it. `base` is the directory that its definition's relative paths start from.

    `records` is how many records the run had when its status was set: its journal never has fewer. `host` is the
    configuration file of the host that began it, empty where there was none.
    """

    run: str
    workflow: str
    version: str
    status: str
    started_at: str
    base: str
    records: int = 0
    host: str = ""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs of a list are wanted: of these statuses, of this workflow, begun at `since` or later, the newest ones.

    A run whose beginning nobody can read passes `since`. `before` is the place of a run in the list, {started_at, run}:
    those after it are wanted. With `host` those of other hosts are left out; of a run that
    was begun without a host's file nobody knows whose it is.
    """

    statuses: Collection[str] = ()
    workflow: str | None = None
    since: datetime | None = None
    limit: int | None = None
    host: str | None = None
    before: tuple[str, str] | None = None

    def admits(self, entry: RunEntry) -> bool:
        """Whether the entry is wanted, whatever the limit."""
        if self.host is not None and entry.host not in ("", self.host):
            return False
        if self.workflow not in (None, entry.workflow) or (self.statuses and entry.status not in self.statuses):
            return False
        if self.before is not None and (entry.started_at, entry.run) >= self.before:
            return False
        began = parse_time(entry.started_at)
        return self.since is None or began is None or began >= self.since

    def as_sql(self) -> tuple[str, list[Any]]:
        """The same as the end of a query, and its values."""
        terms, values = ["1"], list[Any](self.statuses)
        if self.statuses:
            terms.append(f"status IN ({', '.join('?' for _ in self.statuses)})")
        if self.workflow is not None:
            terms, values = [*terms, "workflow = ?"], [*values, self.workflow]
        if self.since is not None:
            began = "coalesce(julianday(started_at) >= julianday(?), 1)"
            terms, values = [*terms, began], [*values, self.since.isoformat()]
        if self.host is not None:
            others = "SELECT run FROM run_hosts WHERE host NOT IN ('', ?)"
            terms, values = [*terms, f"run NOT IN ({others})"], [*values, self.host]
        if self.before is not None:
            terms, values = [*terms, "(started_at, run) < (?, ?)"], [*values, *self.before]
        limit = -1 if self.limit is None else self.limit
        return f"WHERE {' AND '.join(terms)} ORDER BY started_at DESC, run DESC LIMIT ?", [*values, limit]


ALL = RunFilter()


class RunStore(Protocol):
    """Runs by id. The journal is the truth; the entries can be lost without losing a run."""

    @property
    def journal(self) -> "Journal": ...

    @property
    def leases(self) -> Leases: ...

    def save(self, entry: RunEntry) -> None:
        """Add the entry, or replace the run's older one."""
        ...

    def entry(self, run: str) -> RunEntry | None:
        """The run's entry; None when there is none."""
        ...

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        """The entries, newest first."""
        ...

    def find(self, beginning: str, *, limit: int) -> list[str]:
        """The ids that begin so, in their order, of runs that have an entry or a journal; `limit` of them at most."""
        ...

    def tail(self, run: str, after: int = 0) -> "list[tuple[int, Row]]":
        """The rows of a run that were appended after a position, in the order of appending, each with its position."""
        ...

    def save_submission(self, run: str, submitter: str) -> None:
        """Note who handed the run to a server, which drives it on after a restart."""
        ...

    def submitter(self, run: str) -> str | None:
        """Who handed the run to a server; None for a run that somebody drives himself."""
        ...

    def save_trace(self, run: str, traceparent: str) -> None:
        """Note which span of its caller a run's spans lie under; the first one stays."""
        ...

    def trace(self, run: str) -> str | None:
        """The span that a run's spans lie under, as in the header `traceparent`; None where nobody gave one."""
        ...

    def forget(self, run: str) -> bool:
        """Delete the run for good, its journal first. False when the store holds neither a journal nor an entry."""
        ...

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
        ...


class MemoryRunStore:
    """Runs of this process, gone with it."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        from agent_core.journal.memory import MemoryJournal

        self.journal: MemoryJournal = MemoryJournal()
        self.leases: Leases = MemoryLeases(clock=clock)
        self._entries: dict[str, RunEntry] = {}
        self._submitters: dict[str, str] = {}
        self._traces: dict[str, str] = {}

    def save(self, entry: RunEntry) -> None:
        self._entries[entry.run] = entry

    def entry(self, run: str) -> RunEntry | None:
        return self._entries.get(run)

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        chosen = filter(wanted.admits, self._entries.values())
        return sorted(chosen, key=lambda entry: (entry.started_at, entry.run), reverse=True)[: wanted.limit]

    def find(self, beginning: str, *, limit: int) -> list[str]:
        runs = {*self._entries, *self.journal.runs()}
        return sorted(run for run in runs if run.startswith(beginning))[:limit]

    def tail(self, run: str, after: int = 0) -> "list[tuple[int, Row]]":
        return self.journal.tail(run, after)

    def save_submission(self, run: str, submitter: str) -> None:
        self._submitters.setdefault(run, submitter)

    def submitter(self, run: str) -> str | None:
        return self._submitters.get(run)

    def save_trace(self, run: str, traceparent: str) -> None:
        self._traces.setdefault(run, traceparent)

    def trace(self, run: str) -> str | None:
        return self._traces.get(run)

    def forget(self, run: str) -> bool:
        journaled = self.journal.delete(run)
        self._submitters.pop(run, None)
        self._traces.pop(run, None)
        return self._entries.pop(run, None) is not None or journaled

    def close(self) -> None:
        self.journal.close()


class SqliteRunStore:
    """Runs in one SQLite file, which any number of processes may share; it is made with the first run.

    Raises JournalError when the file cannot be used.
    """

    def __init__(self, path: StrPath, *, clock: Callable[[], float] = time.time, patience: float = PATIENCE_S) -> None:
        self.path = Path(path)
        self._patience = patience
        self.database = Database(self.path, patience=patience)
        self.leases: Leases = SqliteLeases(self.database, clock=clock)

    @cached_property
    def journal(self) -> "SqliteJournal":
        """The journal in the same file; a list of runs starts without it."""
        from agent_core.journal.sqlite import SqliteJournal
        from engine_shim.runs.ledger import LedgerKeeper

        return SqliteJournal(self.path, patience=self._patience, layout=LAYOUT, keeper=LedgerKeeper())

    def save(self, entry: RunEntry) -> None:
        with self.database.writing() as db:
            *columns, records, host = astuple(entry)
            db.execute(f"REPLACE INTO workflow_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", columns)
            db.execute("REPLACE INTO run_hosts (run, records, host) VALUES (?, ?, ?)", (entry.run, records, host))
            if entry.status in TOLD:
                _add_event(db, entry.run, entry.status, records)

    def note_rest(self, run: str, status: str, records: int) -> None:
        """Note for webhooks that a run which has no entry, such as an agent's own, waits or has ended."""
        with self.database.writing() as db:
            _add_event(db, run, status, records)

    def entry(self, run: str) -> RunEntry | None:
        entries = self._select("WHERE run = ?", run)
        return entries[0] if entries else None

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        clause, values = wanted.as_sql()
        return self._select(clause, *values)

    def find(self, beginning: str, *, limit: int) -> list[str]:
        found: set[str] = set()
        for table in ("workflow_runs", "rows"):
            query = f"SELECT DISTINCT run FROM {table} WHERE run >= ? AND run < ? ORDER BY run LIMIT ?"
            found.update(run for (run,) in self.database.rows(table, query, beginning, f"{beginning}{LAST}", limit))
        return sorted(found)[:limit]

    def tail(self, run: str, after: int = 0) -> "list[tuple[int, Row]]":
        return self.journal.tail(run, after)

    def save_submission(self, run: str, submitter: str) -> None:
        with self.database.writing() as db:
            db.execute("INSERT OR IGNORE INTO run_submissions (run, submitter) VALUES (?, ?)", (run, submitter))

    def submitter(self, run: str) -> str | None:
        found = self.database.rows("run_submissions", "SELECT submitter FROM run_submissions WHERE run = ?", run)
        return found[0][0] if found else None

    def save_trace(self, run: str, traceparent: str) -> None:
        with self.database.writing() as db:
            db.execute("INSERT OR IGNORE INTO run_traces (run, traceparent) VALUES (?, ?)", (run, traceparent))

    def trace(self, run: str) -> str | None:
        found = self.database.rows("run_traces", "SELECT traceparent FROM run_traces WHERE run = ?", run)
        return found[0][0] if found else None

    def forget(self, run: str) -> bool:
        journaled, is_known = self.journal.delete(run), self.entry(run) is not None
        if not (journaled or is_known or self.submitter(run)):
            return False
        with self.database.writing() as db:
            for table in ("workflow_runs", "run_hosts", "run_submissions", "run_traces", "run_events"):
                db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        return is_known or journaled

    def close(self) -> None:
        if "journal" in vars(self):
            self.journal.close()
        self.database.close()

    def _select(self, clause: str, *values: Any) -> list[RunEntry]:
        return select_entries(self.database, clause, *values)


def select_entries(database: Database, clause: str, *values: Any) -> list[RunEntry]:
    """The entries of a store's file that the end of a query, such as `RunFilter.as_sql` gives, says."""
    found = database.rows("workflow_runs", f"SELECT {_COLUMNS} FROM workflow_runs {clause}", *values)
    query = "SELECT run, records, host FROM run_hosts WHERE run IN (SELECT value FROM json_each(?))"
    runs = json.dumps([row[0] for row in found])
    by_run = {run: (records, host) for run, records, host in database.rows("run_hosts", query, runs)}
    return [RunEntry(*(*row, *by_run.get(row[0], (0, "")))) for row in found]


def _add_event(db: "sqlite3.Connection", run: str, status: str, records: int) -> None:
    event = (run, status, records, datetime.now(UTC).isoformat())
    db.execute("INSERT OR IGNORE INTO run_events (run, status, records, at) VALUES (?, ?, ?, ?)", event)


def parse_time(at: str) -> datetime | None:
    """A time as records and the list of runs hold it, in UTC unless it says otherwise; None for any other text."""
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def default_store() -> Path:
    """The run store's file: AGENT_CORE_STORE, or one in the user's data directory."""
    return data_file("runs.db", "AGENT_CORE_STORE")
