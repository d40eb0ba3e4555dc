"""The command retention: deletes old runs for good."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from engine_shim.cli import output
from engine_shim.cli.audit import as_data, as_line
from engine_shim.cli.run import AsJson, Store
from engine_shim.cli.timespec import age, recorded
from engine_shim.runs.store import RunEntry, SqliteRunStore, default_store

FINISHED: Final = ("completed", "failed", "cancelled")
STATUSES: Final = (*FINISHED, "waiting", "paused", "running")


def retention(
    older_than: Annotated[str, typer.Option(help="How long ago a run began, at the least: 30d, 12h, 30m.")],
    status: Annotated[str, typer.Option(help="Which runs, separated by commas.")] = ",".join(FINISHED),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and delete nothing.")] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> int:
    """Delete old runs from the store, journal and all. Runs that are not finished only when --status names theirs."""
    now = datetime.now(UTC)
    span, statuses = age("--older-than", older_than), _statuses(status)
    runs = SqliteRunStore(store or default_store())
    old = expired(runs.entries(), span, statuses, now)
    driven = [entry for entry in old if runs.leases.holder(entry.run)]
    gone = [entry for entry in old if entry not in driven and (dry_run or runs.forget(entry.run))]
    runs.close()
    _tell(gone, driven, dry_run, as_json)
    return output.OK


def expired(
    entries: Sequence[RunEntry], older_than: timedelta, statuses: Collection[str], now: datetime
) -> list[RunEntry]:
    """The entries of these statuses that began longer ago than that; one whose beginning is unknown stays."""
    found = [(entry, recorded(entry.started_at)) for entry in entries if entry.status in statuses]
    return [entry for entry, began in found if began is not None and now - began > older_than]


def _statuses(text: str) -> list[str]:
    named = [name.strip() for name in text.split(",")]
    if set(named) <= set(STATUSES):
        return named
    raise typer.BadParameter(f"--status {text!r}: name any of {', '.join(STATUSES)}, separated by commas")


def _tell(gone: list[RunEntry], driven: list[RunEntry], dry_run: bool, as_json: bool) -> None:
    if as_json:
        deleted, kept = ([as_data(entry) for entry in some] for some in (gone, driven))
        output.document({"deleted": deleted, "kept": kept, "dry_run": dry_run})
        return
    for entry in gone:
        output.line(as_line(entry))
    for entry in driven:
        output.line(f"{as_line(entry)}  (kept: a driver is at work on it)")
    output.line(f"{'would delete' if dry_run else 'deleted'} {output.counted(len(gone), 'run')}")
