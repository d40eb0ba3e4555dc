"""Endings: whether an operation failed, by the record that ends it. Pure."""

from typing import Final, NamedTuple

from agent_core.effects import Json

SUCCESS: Final = ("final", "completed")
"""How a run ends that did not fail: the finish reason of an agent, the status of a workflow."""


class Ending(NamedTuple):
    """The kind of a failure, None for a success; and what was said of it."""

    error: str | None = None
    message: str | None = None


def ending_of_run(record: Json) -> Ending:
    """How a workflow or an agent ended. A workflow that failed has the kind of its error, an agent its reason."""
    reason, error = record.get("finish_reason") or record.get("status", ""), record.get("error") or {}
    if reason in SUCCESS:
        return Ending()
    return Ending(error.get("kind", reason) if reason == "failed" else reason, error.get("message"))


def ending_of_act(record: Json) -> Ending:
    """How a question or a call ended: with an answer, or without one, cancelled or in doubt."""
    match record:
        case {"kind": "answered", "reply": "failed"}:
            return Ending(record["reason"], record["message"])
        case {"kind": "answered", "reply": "did", "success": False}:
            return Ending("tool_error", record["error"])
        case {"kind": "answered"}:
            return Ending()
    return Ending(record.get("reason", "cancelled"), record.get("message"))
