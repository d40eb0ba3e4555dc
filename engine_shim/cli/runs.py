"""The command runs: the runs of the store in a list."""

from dataclasses import replace
from pathlib import Path

import typer

from engine_shim.cli import output
from engine_shim.runs.store import RunEntry, RunFilter, SqliteRunStore, default_store

UNDER_WAY = ("pending", "running")
STATUSES = ("completed", "failed", "cancelled", "waiting", "paused", *UNDER_WAY)


def list_runs(wanted: RunFilter, path: Path | None, *, as_json: bool) -> int:
    """Write these runs of the store, newest first."""
    store = SqliteRunStore(path or default_store())
    entries = store.entries(wanted)
    drivers = {entry.run: store.leases.holder(entry.run) for entry in entries if entry.status in UNDER_WAY}
    if as_json:
        output.document([{**entry_as_data(entry), "driver": drivers.get(entry.run)} for entry in entries])
        return output.OK
    if not entries:
        output.line("no runs")
    for entry in entries:
        if drivers.get(entry.run, "") is None:
            output.line(entry_as_line(replace(entry, status="interrupted")) + "  `agent-core resume` goes on")
        else:
            output.line(entry_as_line(entry))
    return output.OK


def read_statuses(text: str) -> list[str]:
    """The statuses that --status names. BadParameter for one that no run has."""
    named = [name.strip() for name in text.split(",")]
    if set(named) <= set(STATUSES):
        return named
    raise typer.BadParameter(f"--status {text!r}: name any of {', '.join(STATUSES)}, separated by commas")


def entry_as_data(entry: RunEntry) -> dict[str, str]:
    """A run of the store in a JSON document."""
    return {name: getattr(entry, name) for name in ("run", "workflow", "version", "status", "started_at")}


def entry_as_line(entry: RunEntry) -> str:
    """A run of the store in a list."""
    at = entry.started_at[:19].replace("T", " ")
    return output.in_line(f"{entry.run}  {entry.status:<11}  {at}  {entry.workflow} {entry.version}")
