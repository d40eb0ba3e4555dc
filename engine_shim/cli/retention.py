"""The command retention: deletes old runs for good."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import typer

from engine_shim.cli import output
from engine_shim.cli.runs import entry_as_data, entry_as_line
from engine_shim.cli.timespec import parse_recorded_time, read_age
from engine_shim.runs.store import RunEntry, SqliteRunStore, default_store

STATUSES: Final = ("completed", "failed", "cancelled", "waiting", "paused", "running")


def delete_runs(older_than: str, status: str, path: Path | None, *, dry_run: bool, as_json: bool) -> int:
    """Delete the runs of these statuses that began longer ago than that, and list them."""
    age, statuses = read_age("--older-than", older_than), _read_statuses(status)
    store = SqliteRunStore(path or default_store())
    old = find_expired(store.entries(), age, statuses, datetime.now(UTC))
    driven = [entry for entry in old if store.leases.holder(entry.run)]
    gone = [entry for entry in old if entry not in driven and (dry_run or store.forget(entry.run))]
    store.close()
    _write_lists(gone, driven, dry_run, as_json)
    return output.OK


def find_expired(
    entries: Sequence[RunEntry], older_than: timedelta, statuses: Collection[str], now: datetime
) -> list[RunEntry]:
    """The entries of these statuses that began longer ago than that; one without a known beginning stays."""
    found = [(entry, parse_recorded_time(entry.started_at)) for entry in entries if entry.status in statuses]
    return [entry for entry, began in found if began is not None and now - began > older_than]


def _read_statuses(text: str) -> list[str]:
    named = [name.strip() for name in text.split(",")]
    if set(named) <= set(STATUSES):
        return named
    raise typer.BadParameter(f"--status {text!r}: name any of {', '.join(STATUSES)}, separated by commas")


def _write_lists(gone: list[RunEntry], driven: list[RunEntry], dry_run: bool, as_json: bool) -> None:
    if as_json:
        deleted, spared = ([entry_as_data(entry) for entry in some] for some in (gone, driven))
        output.document({"deleted": deleted, "kept": spared, "dry_run": dry_run})
        return
    for entry in gone:
        output.line(entry_as_line(entry))
    for entry in driven:
        output.line(f"{entry_as_line(entry)}  (kept: a driver is at work on it)")
    output.line(f"{'would delete' if dry_run else 'deleted'} {output.count(len(gone), 'run')}")
