"""find_status(): why a recorded run has no end: it waits, is paused, is being driven, or was interrupted."""

from typing import Final

from agent_core.journal.control import waiting_calls
from engine_shim.cli.records.recorded import Recorded
from engine_shim.statuses import ENDED, ListedStatus

OPEN: Final = {
    "waiting": "it waits for a person",
    "paused": "it is paused",
    "running": "it is running",
    "interrupted": "nobody drives it; `agent-core resume` goes on",
    "unfinished": "it has not ended",
}
"""By the status of a run without an end, what a person reads."""


def find_status(recorded: Recorded, records: int | None = None) -> ListedStatus | None:
    """The status of a run without an end, one of OPEN; None where the store knows that it had one.

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
