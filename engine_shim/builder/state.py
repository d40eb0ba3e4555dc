"""What goes into an execution and what comes out of it: its state, its status, its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from agent_core.outputs import WaitingCall

Message = dict[str, Any]
"""{role, content, …} as `messages_json` has them: system, user, assistant (with tool_calls) and tool messages."""


class ExecutionStatus(StrEnum):
    """PENDING → RUNNING → COMPLETED, CANCELLED or ERROR; on the way PAUSED, or WAITING for a person."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(slots=True)
class AgentState:
    """A conversation: `history` are its finished turns, `context` what was said since, of all kinds of messages.

    `send_chunk` is called with each piece of an answer as it is written, in the event loop. Pieces are provisional: a
    reply that turns out to be unreadable is asked for again.
    """

    history: list[Message] = field(default_factory=list)
    context: list[Message] = field(default_factory=list)
    send_chunk: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One visit of a node. `end` is None while it has not ended."""

    key: str
    start: datetime
    end: datetime | None
    status: ExecutionStatus


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A call that a node's agent has made. `success` is None while it has not been answered."""

    node: str
    id: str
    tool: str
    args: dict[str, Any]
    success: bool | None = None
    output: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The result of an execution. `final_message` is the last answer, `iterations` counts the visits of nodes.

    `waiting` are the calls that wait for a person, `error` is {kind, message, where} when it failed.
    """

    status: ExecutionStatus
    final_state: AgentState
    execution_path: list[NodeRecord]
    final_message: str | None
    iterations: int
    waiting: list[WaitingCall]
    error: dict[str, Any] | None

    @property
    def success(self) -> bool:
        return self.status is ExecutionStatus.COMPLETED
