"""The command runs: the runs of the store in a list."""

from contextlib import closing
from typing import Any

import typer

from agent_core.statuses import LISTED, OPEN, ListedStatus, read_status
from engine_shim.cli import output
from engine_shim.cli.store import open_named_store
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.run_list import RunOutline, origin_as_text, outline
from utools.databases.store_address import StoreAddress

WIDTH = 100
"""How long a line of the list may be."""


def write_runs(wanted: RunFilter, path: StoreAddress | None, *, as_json: bool) -> int:
    """Write these runs of the store, newest first."""
    with closing(open_named_store(path)) as store:
        listed = [(entry, outline(store, entry.run)) for entry in list_runs(store, wanted)]
        drivers = {entry.run: store.leases.holder(entry.run) for entry, _ in listed if entry.status in OPEN}
    if as_json:
        output.document([_as_data(entry, about, drivers.get(entry.run)) for entry, about in listed])
        return output.OK
    for entry, about in listed:
        output.line(_as_line(entry, about, is_interrupted=_is_interrupted(entry, drivers.get(entry.run))))
    if not listed:
        output.line("no runs")
    return output.OK


def read_statuses(text: str) -> list[ListedStatus]:
    """Return the statuses that --status names. BadParameter for one that no run has."""
    names = [name.strip() for name in text.split(",")]
    if set(names) <= set(LISTED):
        return [read_status(name) for name in names]
    raise typer.BadParameter(f"--status {text!r}: name any of {', '.join(LISTED)}, separated by commas")


def entry_as_data(entry: RunEntry) -> dict[str, Any]:
    """Return a run of the store in a JSON document."""
    fields = {name: getattr(entry, name) for name in ("workflow", "version", "status", "started_at")}
    return {"run_id": entry.run, **fields}


def entry_as_line(entry: RunEntry, more: str = "") -> str:
    """Return a run of the store in a list; `more` stands before its workflow."""
    at, workflow = entry.started_at[:16].replace("T", " "), f"{entry.workflow} {entry.version}".rstrip()
    return output.in_line(f"{entry.run}  {entry.status:<11}  {at:<16}  {more}{workflow}")


def _is_interrupted(entry: RunEntry, driver: str | None) -> bool:
    """Return whether a run has not ended and has no driver."""
    return entry.status in OPEN and driver is None


def _as_data(entry: RunEntry, about: RunOutline, driver: str | None) -> dict[str, Any]:
    forked = about.forked and {("run_id" if key == "run" else key): value for key, value in about.forked.items()}
    more = {"seconds": about.seconds, "external": about.external, "forked": forked, "driver": driver}
    return {**entry_as_data(entry), "agent": about.agent, "interrupted": _is_interrupted(entry, driver), **more}


def _as_line(entry: RunEntry, about: RunOutline, *, is_interrupted: bool) -> str:
    """Return the entry, whose agent it is, where it comes from, and its inputs, as far as there is room."""
    line = entry_as_line(entry, f"{_duration(about.seconds):>6}  ")
    if about.agent not in (None, entry.workflow):  # a turn is listed under its agent's name
        line = f"{line} {output.in_line(str(about.agent))}"
    if is_interrupted:
        return f"{line}  interrupted: `agent-core resume` continues it"
    origin = f"  {origin_as_text(about.forked)}" if about.forked else ""
    inputs = ", ".join(map(output.as_text, about.external.values()))
    return output.flatten_end(f"{line}{origin}  ", inputs, WIDTH)


def _duration(seconds: float | None) -> str:
    """Seconds in a unit that a person reads."""
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.1f}s"
    return f"{seconds / 60:.0f}m" if seconds < 6000 else f"{seconds / 3600:.0f}h"
