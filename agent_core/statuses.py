"""RunStatus: the statuses of a run, the moves between them, and the groups of them that have a name."""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

EndedStatus = Literal["completed", "failed", "cancelled"]
RunStatus = Literal["pending", "running", "waiting", "paused", "completed", "failed", "cancelled"]
"""The status of a workflow's run. `pending`: a driver is due; `waiting`: a person's decision is due."""
ListedStatus = Literal[RunStatus, "unfinished", "unreadable"]
"""The status of any run in a store. `unfinished`: a run without an entry has no end; `unreadable`: its first or its
last record cannot be read."""
NotifiedStatus = Literal["waiting", "completed", "failed", "cancelled"]
"""The statuses that webhooks are notified of."""

ENDED: Final[tuple[RunStatus, ...]] = get_args(EndedStatus)
OPEN: Final[tuple[RunStatus, ...]] = ("pending", "running")
"""A driver has the run, or is due."""
STOPPED: Final[tuple[RunStatus, ...]] = ("waiting", "paused")
"""A person has to let the run continue."""
SETTLED: Final = (*ENDED, *STOPPED)
"""Nothing happens in the run by itself."""
SEALED: Final[tuple[RunStatus, ...]] = (*ENDED, "waiting")
"""The journal of the run ends with a seal, where runs are signed."""
NOTIFIED: Final[tuple[NotifiedStatus, ...]] = get_args(NotifiedStatus)
STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)
LISTED: Final[tuple[ListedStatus, ...]] = get_args(ListedStatus)

MOVES: Final[Mapping[RunStatus, tuple[RunStatus, ...]]] = {
    "pending": ("running", "waiting", "paused", *ENDED),
    "running": ("pending", "waiting", "paused", *ENDED),
    "waiting": ("pending", "running", "paused", *ENDED),
    "paused": ("pending", "running", "waiting", *ENDED),
    "completed": (),
    "failed": (),
    "cancelled": (),
}
"""The statuses that may follow each one in the index of a store. A driver that lets a run go, for another to drive it,
moves it from running to pending; one that died leaves it running. What was decided or resumed is pending before it is
running."""


def read_status(value: object) -> ListedStatus:
    """Return a status as a store holds it; `unreadable` for any other value."""
    return value if value in LISTED else "unreadable"


def status_of_reason(reason: str) -> EndedStatus:
    """Return the status of a run by its own status, or by the finish reason of an agent that is a run by itself."""
    match reason:
        case "completed" | "failed" | "cancelled":
            return reason
        case "final":
            return "completed"
        case _:
            return "failed"


def status_of_stop(reason: str) -> RunStatus:
    """Return the status of an agent's run by the reason for which it is driven no further; it may go on later."""
    match reason:
        case "awaiting_approval" | "awaiting_event" | "in_doubt":
            return "waiting"
        case "paused":
            return "paused"
        case _:
            return status_of_reason(reason)


def read_ended_status(last: Mapping[str, Any]) -> EndedStatus:
    """Return the status of a run by the record that ended it."""
    return status_of_reason(str(last.get("status", last.get("finish_reason"))))
