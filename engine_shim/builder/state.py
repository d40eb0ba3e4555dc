"""What goes into an execution and what comes out of it: its state, its status, its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from agent_core.outputs import RunError, WaitingCall

Message = dict[str, Any]
"""{role, content, …} as `messages_json` has them: system, user, assistant (with tool_calls) and tool messages."""


Answer = TypeVar("Answer", default=Any)


class Chunk(str):
    """A piece of an answer, with the `node` that writes it and the `strand` of that visit of the node: parallel
    branches write at the same time, and a loop comes to a node again."""

    node: str
    strand: str

    def __new__(cls, text: str, *, node: str, strand: str) -> Self:
        chunk = super().__new__(cls, text)
        chunk.node, chunk.strand = node, strand
        return chunk


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

    `send_chunk` is called with each piece of an answer as it is written, in the event loop; the piece says which node
    it is of. Pieces are provisional: a reply that turns out to be unreadable is asked for again.
    """

    history: list[Message] = field(default_factory=list)
    context: list[Message] = field(default_factory=list)
    send_chunk: Callable[[Chunk], None] | None = None


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


@dataclass(frozen=True)
class ExecutionResult(Generic[Answer]):
    """The result of an execution. `final_message` is the last answer, `iterations` counts the visits of nodes.

    `final_answer` is that of the end point, of the type that the graph was built with; None unless it has completed.
    `waiting` are the calls that wait for a person, `error` is {kind, message, where} when it failed.
    """

    status: ExecutionStatus
    final_state: AgentState
    execution_path: list[NodeRecord]
    final_message: str | None
    iterations: int
    waiting: list[WaitingCall]
    error: RunError | None
    final_answer: Answer | None = None

    @property
    def success(self) -> bool:
        """Whether it has completed."""
        return self.status is ExecutionStatus.COMPLETED
