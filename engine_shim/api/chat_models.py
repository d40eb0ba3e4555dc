"""What goes in and out of the routes about conversations and agents."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent_core.agents.chat import TURN_TOKENS
from agent_core.agents.reply import ReplyReason
from agent_core.outputs import Json, RunError, WaitingCall
from engine_shim.api.models import Name, RequestBody, Said, Whole


class ChatRequest(RequestBody):
    """A message to an agent; without a conversation's id a new one begins. Both limits only narrow the agent's own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"message": "Where is order 17?"}]})

    message: Said
    conversation_id: Name | None = None
    agent: Name | None = None
    max_tool_calls: Whole = Field(default=5, ge=1, le=1000)
    max_tokens: Whole = Field(
        default=TURN_TOKENS,
        ge=1,
        le=10_000_000,
        description="Read and written in all steps of the turn, prompts included.",
    )


class ChatToolCall(BaseModel):
    """A call that the agent made."""

    tool: str
    arguments: Any
    result: Any


class ChatMeta(BaseModel):
    """What the turn cost."""

    total_tokens: int
    tool_calls_count: int
    latency_ms: int


class ChatAnswer(BaseModel):
    """What came of a turn. `trace_id` is the id of its run."""

    success: bool
    response: str
    conversation_id: str
    trace_id: str | None
    finish_reason: ReplyReason
    tool_calls: list[ChatToolCall]
    meta: ChatMeta
    waiting: list[WaitingCall]
    error: RunError | None


class ChatBegun(BaseModel):
    """A turn that continues. `trace_id` is the id of its run, which waits for earlier turns of its conversation."""

    conversation_id: str
    trace_id: str
    status: Literal["running"]


class Conversation(BaseModel):
    """The stored messages, oldest first."""

    conversation_id: str
    messages: list[Json]


class ConversationSummary(BaseModel):
    """A conversation in a list: who answered last, when that turn began, and the beginning of the last message."""

    conversation_id: str
    agent: str
    updated_at: str
    messages: int
    last: str


class ConversationList(BaseModel):
    """The newest first."""

    conversations: list[ConversationSummary]


class Agent(BaseModel):
    """An agent of the catalogue, and the tools that it has here."""

    name: str
    description: str
    model: str
    tools: list[str]


class AgentList(BaseModel):
    agents: list[Agent]
