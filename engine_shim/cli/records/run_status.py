"""find_status(): why a recorded run has no end: it waits, is paused, is being driven, or was interrupted."""

from collections.abc import Mapping
from typing import Final, Literal

from agent_core.journal.control import waiting_calls
from agent_core.statuses import ENDED
from engine_shim.cli.records.recorded import Recorded

OpenStatus = Literal["waiting", "paused", "running", "interrupted", "unfinished"]
"""Why a run has no end. `interrupted`: its driver is gone; `unfinished`: only its journal is at hand."""
OPEN: Final[Mapping[OpenStatus, str]] = {
    "waiting": "it waits for a person, a time or a signal",
    "paused": "it is paused",
    "running": "it is running",
    "interrupted": "no process drives it; `agent-core resume` continues it",
    "unfinished": "it has not ended",
}
"""By the status of a run without an end, what a person reads."""


def find_status(recorded: Recorded, records: int | None = None) -> OpenStatus | None:
    """Return the status of a run without an end; None where the store knows that it had one.

    None as well where the store knows more than these `records`.
    """
    found, tape = recorded.load()
    is_waiting = bool(waiting_calls(tape))
    entry = None if recorded.store is None else recorded.store.entry(found)
    if recorded.store is None or entry is None:
        return "waiting" if is_waiting else "unfinished"
    if entry.status in ENDED or (records is not None and records < entry.records):
        return None
    if recorded.store.leases.holder(found) is not None:
        return "running"
    if entry.status == "paused":
        return "paused"
    return "waiting" if is_waiting else "interrupted"
