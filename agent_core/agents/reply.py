"""ChatReply: what a turn of a stored conversation gives its caller."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Generic, Literal

import orjson
from typing_extensions import TypedDict, TypeVar

from agent_core.agents.result import ConversationResult
from agent_core.outputs import FinishReason, Json, RunError, WaitingCall
from agent_core.protocol.clip import as_text
from agent_core.statuses import ListedStatus

ReplyReason = Literal[FinishReason, "conversation_budget"]
"""Why a turn ended; a conversation that has spent its tokens asks no model."""
SPENT: Final = "conversation_budget"
"""The finish reason of a turn that its conversation could not pay for: nothing ran."""


Answer = TypeVar("Answer", default=Any)


class ReplyCall(TypedDict):
    """A call of a turn, with its result as the model saw it, as JSON where it is any; {error} of one that failed."""

    tool: str
    arguments: Json
    result: Any


class ReplyMeta(TypedDict):
    """What a turn has taken, in milliseconds."""

    total_tokens: int
    tool_calls_count: int
    latency_ms: int


@dataclass(frozen=True)
class ChatReply(Generic[Answer]):
    """What came of one turn. `success` says that there is an answer, `response`, which is empty else.

    `trace_id` is the run's id, None where none began. `tool_calls` are {tool, arguments, result}, each result as the
    model saw it, as JSON where it is any; `meta` is {total_tokens, tool_calls_count, latency_ms}. `waiting` are the
    calls that a person decides on, {strand, n, tool, args, reason}; `error` is None or {kind, message}. `final_answer`
    is the answer as it is, of the type that was asked for by `answer_schema`; its JSON leaves that to `response`.
    """

    success: bool
    response: str
    conversation_id: str
    trace_id: str | None
    finish_reason: ReplyReason
    tool_calls: list[ReplyCall] = field(default_factory=list)
    meta: ReplyMeta = field(default_factory=lambda: _meta(0, 0, 0.0))
    waiting: list[WaitingCall] = field(default_factory=list)
    error: RunError | None = None
    final_answer: Answer | None = None

    def as_json(self) -> Json:
        """Return the reply as a JSON object."""
        own = asdict(replace(self, final_answer=None))
        del own["final_answer"]
        return own


def read_reply(conversation: str, result: ConversationResult[Answer]) -> ChatReply[Answer]:
    """Return the reply in a turn's result."""
    output = result.output.model_dump()
    reply = _reply_of(conversation, output, output["finish_reason"], output["waiting"], output["error"])
    return replace(reply, final_answer=result.final_answer)


def read_run_reply(
    conversation: str,
    run: str,
    status: ListedStatus,
    output: Json | None,
    waiting: Sequence[WaitingCall],
    error: RunError | None,
) -> ChatReply:
    """Return the reply of a turn that is a workflow's run, by the run's status, what waits in it, and its error.

    `output` is that of its agent, None before the agent began.
    """
    reason: ReplyReason = "cancelled" if status == "cancelled" else "paused" if status == "paused" else "tool_error"
    if output is None:
        return ChatReply(False, "", conversation, run, reason, meta=_meta(0, 0, 0.0), error=error)
    is_unstored = status == "failed" and output["finish_reason"] == "final"
    if reason == "tool_error" and not is_unstored:
        reason = output["finish_reason"]
    return _reply_of(conversation, output, reason, waiting, output["error"] or error)


def _reply_of(
    conversation: str, output: Json, reason: ReplyReason, waiting: Sequence[WaitingCall], error: RunError | None
) -> ChatReply:
    """Return the reply in an agent's output."""
    usage, answer = output["usage"], output["final_answer"]
    return ChatReply(
        success=reason == "final",
        response="" if answer is None else as_text(answer),
        conversation_id=conversation,
        trace_id=output["run_id"],
        finish_reason=reason,
        tool_calls=[_call(step) for step in output["trace"] if step["action"] is not None],
        meta=_meta(usage["total_tokens"], usage["tool_calls"], output["total_ms"]),
        waiting=[*waiting],
        error=error,
        final_answer=answer,
    )


def refuse_spent(conversation: str, spent: int, budget: int) -> ChatReply:
    """Return the reply to a message in a conversation that has spent its tokens."""
    message = (
        f"the conversation {conversation!r} has spent {spent} of its {budget} tokens; "
        "begin another one, or raise max_conversation_tokens"
    )
    error: RunError = {"kind": SPENT, "message": message}
    return ChatReply(False, "", conversation, None, SPENT, meta=_meta(0, 0, 0.0), error=error)


def _meta(tokens: int, calls: int, ms: float) -> ReplyMeta:
    return {"total_tokens": tokens, "tool_calls_count": calls, "latency_ms": round(ms)}


def _call(step: Json) -> ReplyCall:
    action, failed = step["action"], step["error"]
    result = _value(step["observation"]) if failed is None else {"error": failed}
    return {"tool": action["tool"], "arguments": action["args"], "result": result}


def _value(text: str | None) -> Any:
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
