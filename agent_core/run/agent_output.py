"""AgentOutput: what the node gives, as a class and as a schema."""

from typing import Any, Generic, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer
from typing_extensions import TypeVar

from agent_core.errors import AnswerError
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

Answer = TypeVar("Answer", default=Any)


class AgentOutput(BaseModel, Generic[Answer]):
    """What a run of an agent gives; `model_dump()` is the node's output as JSON.

    Attributes:
        final_answer: The answer: a text, or what `answer_schema` asks for; None unless the `finish_reason` is `final`.
        answer: The same, without the None; AnswerError if there is none.
        trace: The steps: what the model said, called and read.
        used_tools: How often each tool was called, and how it went, by its code.
        finish_reason: Why the run ended; only `final` is a success.
        usage: Tokens, requests, calls and cost (USD).
        messages_json: The messages of the run, to go on from.
        run_id: The run's id.
        journal: The strand, the head (hex) and the count of its records, for `verify`.
        waiting: What waits for a person, each call with its (strand, n), for `decisions` of the next call.
        total_ms: How long the run was active, in milliseconds.
        started_at: When it began, ISO 8601.
        ended_at: When it ended, ISO 8601.
        error: {kind, message} of a run that failed, else None.
        plan: With `mode: plan`, its steps with their status.

    Example:
        ```python
        from agent_core import AgentOutput, run_agent_sync
        from agent_core.models import ScriptedModel

        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
        output: AgentOutput = run_agent_sync(config, registry=[], model=model)
        assert (output.status, output.final_answer) == ("completed", "A spring in the desert.")
        ```
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    final_answer: Answer | None
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
    _answer_json: Any = PrivateAttr(default=None)

    @property
    def answer(self) -> Answer:
        """The final answer. AnswerError, with the output, for a run that did not end by one."""
        if self.finish_reason != "final":
            message = self.error["message"] if self.error else self.finish_reason
            raise AnswerError(f"run {self.run_id!r} has no answer ({self.finish_reason}): {message}", self)
        return cast(Answer, self.final_answer)

    @property
    def status(self) -> RunStatus:
        """How the run is, by its finish reason: completed, failed, cancelled, waiting or paused. Not in the JSON."""
        return status_of_stop(self.finish_reason)

    def _with_answer(self, answer: Any) -> "AgentOutput[Any]":
        """Return the output with an object that was made of the answer. Its JSON is the same as before."""
        made = self.model_copy(update={"final_answer": answer})
        made._answer_json = self.final_answer
        return made

    @field_serializer("final_answer")
    def _dump_answer(self, answer: Any) -> Any:
        return answer if self._answer_json is None else self._answer_json


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
