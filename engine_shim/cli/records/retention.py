"""The command retention: deletes old runs for good."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_core.journal.record import Row, Tape
from agent_core.journal.store import Journal
from agent_core.statuses import ListedStatus
from engine_shim.cli import output
from engine_shim.cli.records.runs import entry_as_data, entry_as_line, read_statuses
from engine_shim.cli.store import open_named_store
from engine_shim.cli.timespec import read_age
from engine_shim.store.entries import RunEntry, parse_time
from engine_shim.store.journal_runs import list_runs
from utools.databases.store_address import StoreAddress


@dataclass(frozen=True, slots=True)
class Expired:
    """A run that is old enough, and the bytes of its records."""

    entry: RunEntry
    size: int


def delete_runs(older_than: str, statuses: str, path: StoreAddress | None, *, dry_run: bool, as_json: bool) -> int:
    """Delete the runs of these statuses that ended longer ago than that, and list them with their sizes."""
    age, wanted = read_age(older_than), read_statuses(statuses)
    store = open_named_store(path)
    old = find_expired(list_runs(store), store.journal, age, wanted, datetime.now(UTC))
    driven = [each for each in old if store.leases.holder(each.entry.run)]
    gone = [each for each in old if each not in driven and (dry_run or store.forget(each.entry.run))]
    store.close()
    _write_lists(gone, driven, dry_run, as_json)
    return output.OK


def find_expired(
    entries: Iterable[RunEntry],
    journal: Journal,
    older_than: timedelta,
    statuses: Collection[ListedStatus],
    now: datetime,
) -> list[Expired]:
    """Return the runs of these statuses that ended, or last continued, longer ago than that.

    A run whose journal says no time counts from its beginning, and stays if that is unknown.
    """
    expired = []
    for entry in entries:
        began = parse_time(entry.started_at)
        if entry.status not in statuses or (began is not None and now - began <= older_than):
            continue
        tape = journal.load(entry.run)
        last = max(filter(None, map(_last_time, tape.values())), default=began)
        if last is not None and now - last > older_than:
            expired.append(Expired(entry, _size(tape)))
    return expired


def _last_time(rows: list[Row]) -> datetime | None:
    """Return the time of a strand's last record that has one."""
    for row in reversed(rows):
        try:
            at = row.record().get("at")
        except ValueError:  # damaged
            continue
        if isinstance(at, str):
            return parse_time(at)
    return None


def _size(tape: Tape) -> int:
    return sum(len(row.data) for rows in tape.values() for row in rows)


def _write_lists(gone: list[Expired], driven: list[Expired], dry_run: bool, as_json: bool) -> None:
    total = sum(each.size for each in gone)
    if as_json:
        listed, spared = ([_as_data(each) for each in some] for some in (gone, driven))
        key = "would_delete" if dry_run else "deleted"
        output.document({key: listed, "kept": spared, "bytes": total, "dry_run": dry_run})
        return
    for each in gone:
        output.line(f"{entry_as_line(each.entry)}  {output.size(each.size)}")
    for each in driven:
        output.line(f"{entry_as_line(each.entry)}  (kept: a driver is at work on it)")
    sizes = f", {output.size(total)}" if gone else ""
    output.line(f"{'would delete' if dry_run else 'deleted'} {output.count(len(gone), 'run')}{sizes}")


def _as_data(expired: Expired) -> dict[str, Any]:
    return {**entry_as_data(expired.entry), "bytes": expired.size}
