"""RunEntry: a run as a list shows it, which of them are wanted, and how both are read from a database."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent_core.statuses import ENDED, ListedStatus, RunStatus, read_status

if TYPE_CHECKING:
    from engine_shim.store.database import Database
    from utools.databases.transaction import Transaction

_COLUMNS = "run, workflow, version, status, started_at, base"
_ALL = f"""SELECT {_COLUMNS}, coalesce(records, 0), coalesce(host, ''), coalesce(agent, ''), conversation, submitter
    FROM workflow_runs LEFT JOIN run_hosts USING (run) LEFT JOIN run_turns USING (run)
    LEFT JOIN run_submissions USING (run)"""
_SAVE = f"""INSERT INTO workflow_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET
    workflow = excluded.workflow, version = excluded.version, status = excluded.status,
    started_at = excluded.started_at, base = excluded.base
    WHERE workflow_runs.status NOT IN {ENDED} OR workflow_runs.status = excluded.status"""
_SAVE_TURN = "INSERT INTO run_turns (run, agent, conversation) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_SAVE_SUBMISSION = "INSERT INTO run_submissions (run, submitter) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SAVE_HOST = """INSERT INTO run_hosts (run, records, host) VALUES (?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET records = excluded.records, host = excluded.host"""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run as a list shows it. `base` is the directory that its definition's relative paths start from.

    `records` is how many records the run had when its status was set: its journal never has fewer. `host` is the
    configuration file of the host that began it, empty where there was none. A turn has the name of its
    `agent` and, if it is stored, its `conversation`; of any other run `agent` is empty.
    `submitter` is who handed the run to a server, which drives it on after a restart; the first one stays.
    """

    run: str
    workflow: str
    version: str
    status: ListedStatus
    started_at: str
    base: str
    records: int = 0
    host: str = ""
    agent: str = ""
    conversation: str | None = None
    submitter: str | None = None


def place_of(entry: RunEntry) -> tuple[str, str]:
    """Return the place of a run in a list, in which a newer one has a greater place."""
    return entry.started_at, entry.run


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs of a list are wanted: of these statuses, of this workflow, begun at `since` or later, the newest ones.

    A run whose beginning is unreadable passes `since`. `before` is the place of a run in the list, {started_at, run}:
    those after it are wanted. With `host` those of other hosts are left out; of a run that
    was begun without a host's file the host is unknown.
    """

    statuses: Collection[str] = ()
    workflow: str | None = None
    since: datetime | None = None
    limit: int | None = None
    host: str | None = None
    before: tuple[str, str] | None = None

    def admits(self, entry: RunEntry) -> bool:
        """Return whether the entry is wanted, whatever the limit."""
        if self.host is not None and entry.host not in ("", self.host):
            return False
        if self.workflow not in (None, entry.workflow) or (self.statuses and entry.status not in self.statuses):
            return False
        if self.before is not None and place_of(entry) >= self.before:
            return False
        began = parse_time(entry.started_at)
        return self.since is None or began is None or began >= self.since

    def as_sql(self) -> tuple[str, list[Any]]:
        """Return the same as the end of a query, and its values; it lets through some that began a little before
        `since`."""
        terms, values = self.as_terms()
        limit, values = ("", values) if self.limit is None else (" LIMIT ?", [*values, self.limit])
        return f"WHERE {terms} ORDER BY started_at DESC, run DESC{limit}", values

    def as_terms(self) -> tuple[str, list[Any]]:
        """Return the condition of such a query, and its values."""
        terms, values = ["true"], list[Any](self.statuses)
        if self.statuses:
            terms.append(f"status IN ({', '.join('?' for _ in self.statuses)})")
        if self.workflow is not None:
            terms, values = [*terms, "workflow = ?"], [*values, self.workflow]
        if self.since is not None:  # in some zone it was that day then; `admits` looks closer
            first_day = _day_before(self.since)
            terms, values = [*terms, "(started_at >= ? OR started_at NOT LIKE '____-%')"], [*values, first_day]
        if self.host is not None:
            other = "SELECT 1 FROM run_hosts WHERE run = workflow_runs.run AND host NOT IN ('', ?)"
            terms, values = [*terms, f"NOT EXISTS ({other})"], [*values, self.host]
        if self.before is not None:
            terms, values = [*terms, "(started_at, run) < (?, ?)"], [*values, *self.before]
        return " AND ".join(terms), values


def _day_before(at: datetime) -> str:
    try:
        return (at.astimezone(UTC) - timedelta(days=1)).date().isoformat()
    except OverflowError:  # at one end of the calendar
        return "0001-01-01" if at.year == 1 else "9999-12-31"


ALL = RunFilter()


def save_entry(db: "Transaction", entry: RunEntry) -> bool:
    """Add the entry, or replace the run's older one; whether it was done. The status of a run that has ended stays:
    another one was meant for before that."""
    columns = (entry.run, entry.workflow, entry.version, entry.status, entry.started_at, entry.base)
    if not db.execute(_SAVE, columns).rowcount:
        return False
    db.execute(_SAVE_HOST, (entry.run, entry.records, entry.host))
    if entry.agent:
        db.execute(_SAVE_TURN, (entry.run, entry.agent, entry.conversation))
    if entry.submitter is not None:
        db.execute(_SAVE_SUBMISSION, (entry.run, entry.submitter))
    return True


def select_entries(database: "Database", wanted: RunFilter) -> list[RunEntry]:
    """Return the entries of a store that are wanted, newest first."""
    found: list[RunEntry] = []
    while True:
        clause, values = wanted.as_sql()
        entries = read_entries(database, clause, *values)
        found += filter(wanted.admits, entries)
        if wanted.limit is None or len(entries) < wanted.limit or len(found) >= wanted.limit:
            return found[: wanted.limit]
        wanted = replace(wanted, before=place_of(entries[-1]))


def count_statuses(database: "Database", host: str, statuses: Collection[RunStatus]) -> Counter[str]:
    """Return how many runs of this host (or of no host) have each of the statuses."""
    clause, values = RunFilter(statuses=statuses, host=host).as_terms()
    query = f"SELECT status, count(*) FROM workflow_runs WHERE {clause} GROUP BY status"
    return Counter(dict(database.rows("workflow_runs", query, *values)))


def read_entries(database: "Database", clause: str, *values: Any) -> list[RunEntry]:
    """Return the entries that the end of a query, such as `RunFilter.as_sql` gives, says."""
    found = database.rows("run_turns", f"{_ALL} {clause}", *values)
    if not found:  # none are wanted, or the store was written before it had the table
        return _read_older_entries(database, clause, *values)
    return [
        RunEntry(run, workflow, version, read_status(status), *rest) for run, workflow, version, status, *rest in found
    ]


def _read_older_entries(database: "Database", clause: str, *values: Any) -> list[RunEntry]:
    found = database.rows("workflow_runs", f"SELECT {_COLUMNS} FROM workflow_runs {clause}", *values)
    if not found:
        return []
    query = f"SELECT run, records, host FROM run_hosts WHERE run IN {database.dialect.values}"
    runs = database.dialect.pack([row[0] for row in found])
    by_run = {run: (records, host) for run, records, host in database.rows("run_hosts", query, runs)}
    return [
        RunEntry(run, workflow, version, read_status(status), at, base, *by_run.get(run, (0, "")))
        for run, workflow, version, status, at, base in found
    ]


def parse_time(at: str) -> datetime | None:
    """Return a time as records and the list of runs hold it, in UTC unless it says otherwise; None for any other
    text."""
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
