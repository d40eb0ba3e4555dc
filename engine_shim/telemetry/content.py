"""What was said: messages, arguments and results, in the form that the semantic conventions give them. Pure.

It is told by opt-in alone. The records are redacted already, and the messages of a question are too.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from agent_core.effects import ModelReply, ToolReply
from agent_core.journal.facts import Answered, RunFinished
from agent_core.outputs import Json
from engine_shim.telemetry import names
from engine_shim.telemetry.operations import Ended, Operation

VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
WANTED: Final = ("true", "1", "span_only", "span_and_event")


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the operator opts in to content on spans."""
    return environment.get(VARIABLE, "").strip().lower() in WANTED


def content_at_start(operation: Operation) -> dict[str, str]:
    """Return what an agent or a tool was given."""
    if operation.kind == "invoke_agent" and operation.run is not None:
        return content_of_question(operation.run.messages)
    if operation.call is not None:
        return {names.TOOL_ARGUMENTS: _write(operation.call.args)}
    return {}


def content_of_question(messages: Iterable[Json]) -> dict[str, str]:
    """Return what a model was asked: the instructions by themselves, then the messages."""
    asked = list(messages)
    instructions = [part for each in asked if each["role"] == "system" for part in _parts(each)]
    others = [{"role": each["role"], "parts": _parts(each)} for each in asked if each["role"] != "system"]
    found = {names.INPUT_MESSAGES: _write(others)}
    return {names.INSTRUCTIONS: _write(instructions), **found} if instructions else found


def content_at_end(ended: Ended) -> dict[str, str]:
    """Return what a model, an agent or a tool gave."""
    match ended.operation.kind, ended.fact:
        case "chat", Answered(answer=ModelReply() as reply):
            parts = [*_text(reply.content), *(_call(each) for each in reply.calls)]
            return {names.OUTPUT_MESSAGES: _write([_reply(parts, reply.finish_reason)])}
        case "invoke_agent", RunFinished(answer=answer) if answer is not None:
            parts = _text(answer if isinstance(answer, str) else _write(answer))
            return {names.OUTPUT_MESSAGES: _write([_reply(parts, "stop")])}
        case "execute_tool", Answered(answer=ToolReply(success=True, output=output)):
            return {names.TOOL_RESULT: _write(output)}
        case _:
            return {}


def _reply(parts: list[Json], reason: str) -> Json:
    return {"role": "assistant", "parts": parts, "finish_reason": reason}


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    text = content if isinstance(content, str) else "" if content is None else _write(content)
    if message["role"] == "tool":
        return [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": text}]
    return [*_text(text), *(_call(each) for each in message.get("tool_calls") or ())]


def _text(text: str) -> list[Json]:
    return [{"type": "text", "content": text}] if text else []


def _call(call: Json) -> Json:
    function = call.get("function", call)
    return {
        "type": "tool_call",
        "id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments"),
    }


def _write(value: Any) -> str:
    return orjson.dumps(value).decode()
