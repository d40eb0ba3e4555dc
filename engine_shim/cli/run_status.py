"""find_status(): why a recorded run has no end: it waits, is paused, is being driven, or was interrupted."""

from contextlib import closing
from pathlib import Path
from typing import Final

from agent_core.journal.control import waiting_calls
from agent_core.journal.source import load_run
from engine_shim.runs.run_index import ENDED
from engine_shim.runs.store import SqliteRunStore

OPEN: Final = {
    "waiting": "it waits for a person",
    "paused": "it is paused",
    "running": "it is running",
    "interrupted": "nobody drives it; `agent-core resume` goes on",
    "unfinished": "it has not ended",
}
"""By the status of a run without an end, what a person reads."""
RESTING: Final = ("waiting", "paused")


def find_status(source: Path, run_id: str | None, records: int | None = None) -> str | None:
    """The status of a run without an end, one of OPEN; None where the store knows that it had one.

    None as well where the store knows more than these `records`.
    """
    found, tape = load_run(source, run_id)
    is_waiting = bool(waiting_calls(tape))
    if run_id is None:
        return "waiting" if is_waiting else "unfinished"
    with closing(SqliteRunStore(source)) as store:
        entry, driver = store.entry(found), store.leases.holder(found)
    if entry is None:
        return "waiting" if is_waiting else "unfinished"
    if entry.status in ENDED or (records is not None and records < entry.records):
        return None
    if driver is not None:
        return "running"
    if entry.status == "paused":
        return "paused"
    return "waiting" if is_waiting else "interrupted"
