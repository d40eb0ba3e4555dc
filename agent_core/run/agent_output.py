"""AgentOutput: what the node gives, as a class and as a schema."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agent_core.outputs import (
    FinishReason,
    JournalEnd,
    Json,
    RunError,
    RunUsage,
    TokenParts,
    TraceStep,
    UsedTool,
    WaitingCall,
)
from agent_core.statuses import RunStatus, status_of_stop


class AgentOutput(BaseModel):
    """The node's outputs (see the README for each); `model_dump()` is the node's output as JSON."""

    model_config = ConfigDict(frozen=True)

    final_answer: Any
    trace: list[TraceStep]
    used_tools: dict[str, UsedTool]
    finish_reason: FinishReason
    usage: RunUsage
    messages_json: list[dict[str, Any]]
    run_id: str
    journal: JournalEnd
    waiting: list[WaitingCall]
    total_ms: float
    started_at: str
    ended_at: str
    error: RunError | None
    plan: list[dict[str, Any]] | None = Field(default=None, exclude_if=lambda plan: plan is None)

    @property
    def status(self) -> RunStatus:
        """How the run is, by its finish reason: completed, failed, cancelled, waiting or paused. Not in the JSON."""
        return status_of_stop(self.finish_reason)


def _closed(**types: Any) -> Json:
    """Return the schema of an object with these properties and no others, each with its type or its schema."""
    properties = {name: each if isinstance(each, dict) else {"type": each} for name, each in types.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


_LIST = {"type": "array", "items": {"type": "object"}}
_USAGE = _closed(
    **dict.fromkeys(
        ("input_tokens", "output_tokens", "total_tokens", *TokenParts.__annotations__, "requests", "tool_calls"),
        "integer",
    ),
    cost=["number", "null"],
    estimated="boolean",
)
OUTPUT: Json = _closed(
    final_answer={},
    trace=_LIST,
    used_tools="object",
    finish_reason="string",
    usage=_USAGE,
    messages_json=_LIST,
    run_id="string",
    journal=_closed(strand="string", head="string", count="integer"),
    waiting=_LIST,
    total_ms="number",
    started_at="string",
    ended_at="string",
    error={**_closed(kind="string", message="string"), "type": ["object", "null"]},
    plan=_LIST,
)
"""The schema of the node's outputs."""
