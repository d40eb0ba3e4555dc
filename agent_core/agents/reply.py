"""ChatReply: what a turn of a stored conversation gives its caller."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import orjson

from agent_core.agents.result import ConversationResult
from agent_core.effects import FinishReason, Json

ReplyReason = Literal[FinishReason, "conversation_budget"]
"""Why a turn ended; a conversation that has spent its tokens asks no model."""
SPENT: Final = "conversation_budget"
"""The finish reason of a turn that its conversation could not pay for: nothing ran."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came of one turn. `success` says that there is an answer, `response`, which is empty else.

    `trace_id` is the run's id, None where none began. `tool_calls` are {tool, arguments, result}, each result as the
    model saw it, as JSON where it is any; `meta` is {total_tokens, tool_calls_count, latency_ms}. `waiting` are the
    calls that a person decides on, {strand, n, tool, args, reason}; `error` is None or {kind, message}.
    """

    success: bool
    response: str
    conversation_id: str
    trace_id: str | None
    finish_reason: ReplyReason
    tool_calls: list[Json] = field(default_factory=list)
    meta: Json = field(default_factory=dict)
    waiting: list[Json] = field(default_factory=list)
    error: Json | None = None

    def as_json(self) -> Json:
        """The reply as a JSON object."""
        return asdict(self)


def read_reply(conversation: str, result: ConversationResult) -> ChatReply:
    """The reply in a turn's result."""
    output = result.output
    calls = [_call(step) for step in output.trace if step["action"] is not None]
    return ChatReply(
        success=output.finish_reason == "final",
        response=result.content,
        conversation_id=conversation,
        trace_id=output.run_id,
        finish_reason=output.finish_reason,
        tool_calls=calls,
        meta=_meta(output.usage["total_tokens"], output.usage["tool_calls"], output.total_ms),
        waiting=output.waiting,
        error=output.error,
    )


def refuse_spent(conversation: str, spent: int, budget: int) -> ChatReply:
    """The reply to a message in a conversation that has spent its tokens."""
    message = (
        f"the conversation {conversation!r} has spent {spent} of its {budget} tokens; "
        "begin another one, or raise max_conversation_tokens"
    )
    error = {"kind": SPENT, "message": message}
    return ChatReply(False, "", conversation, None, SPENT, meta=_meta(0, 0, 0.0), error=error)


def _meta(tokens: int, calls: int, ms: float) -> Json:
    return {"total_tokens": tokens, "tool_calls_count": calls, "latency_ms": round(ms)}


def _call(step: Json) -> Json:
    action, failed = step["action"], step["error"]
    result = _value(step["observation"]) if failed is None else {"error": failed}
    return {"tool": action["tool"], "arguments": action["args"], "result": result}


def _value(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
