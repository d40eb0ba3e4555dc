"""The stand-in of Anthropic's Messages API, as the SDK's types and the vendor's documents describe it."""

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NotRequired

import orjson
from anthropic import BaseModel
from anthropic.types import (
    ContentBlock,
    InputJSONDelta,
    Message,
    RawContentBlockDeltaEvent,
    RawContentBlockStartEvent,
    RawContentBlockStopEvent,
    RawMessageDeltaEvent,
    RawMessageStartEvent,
    RawMessageStopEvent,
    SignatureDelta,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    Usage,
)
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming

from support.loopback import Request
from support.wires.sdk_types import check
from support.wires.turn import Asked, Json, Turn

MODEL = "m1"
MAX_MARKS = 4
MIN_BUDGET = 1_024
REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "malformed_call": "malformed_tool_use",
}
"""The vendor has no word of its own for a call that it could not read."""
EXPLANATION = "This is not answered here."
KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error"}
KINDS |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
PIECE = 7
"""Characters of a text that come at once in a stream."""


class Whole(MessageCreateParamsNonStreaming):
    """A request, with the sampling options of the version before, which gateways take."""

    temperature: NotRequired[float]
    top_p: NotRequired[float]


class Streamed(MessageCreateParamsStreaming):
    """The same for a stream."""

    temperature: NotRequired[float]
    top_p: NotRequired[float]


class MessagesStandIn:
    """The API at a base URL with or without `/v1`. A call's id says whether a thought has come with it."""

    provider = "anthropic"
    api = "messages"
    keys = "ANTHROPIC_API_KEY"
    url_env = "ANTHROPIC_BASE_URL"

    def is_its_path(self, request: Request) -> bool:
        return request.method == "POST" and request.target.endswith("/v1/messages")

    def key_of(self, request: Request) -> str | None:
        return request.headers.get("x-api-key")

    def read(self, request: Request) -> Asked:
        body = request.json()
        check(body, Streamed if body.get("stream") else Whole)
        assert request.headers["anthropic-version"]
        _check_thinking(body)
        messages = body["messages"]
        _check_conversation(messages)
        _check_marks(body)
        blocks = [block for message in messages for block in message["content"]]
        spoken = [*body.get("system", ()), *(each for each in blocks if each["type"] in ("text", "tool_result"))]
        return Asked(
            body["model"],
            [each["text"] for each in spoken if each["type"] == "text"],
            [tool["name"] for tool in body.get("tools", ())],
            [(each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"],
            [each.get("content", "") for each in blocks if each["type"] == "tool_result"],
            [_came_back(calls, message["content"]) for message in messages if (calls := _calls(message))],
            body.get("stream", False),
            {name: body[name] for name in body.keys() - {"model", "messages", "system", "tools", "stream"}},
            [0 for tool in body.get("tools", ()) if "cache_control" in tool]
            + [index for index, each in enumerate(spoken, 1) if "cache_control" in each],
        )

    def whole(self, turn: Turn, number: int) -> bytes:
        return _write(_message(turn, number, list(_blocks(turn, number))))

    def events(self, turn: Turn, number: int) -> list[bytes]:
        return [_event(each) for each in _stream(turn, number)]

    def error(self, status: int, message: str, kind: str = "") -> bytes:
        error = {"type": kind or KINDS.get(status, "api_error"), "message": message}
        return orjson.dumps({"type": "error", "error": error, "request_id": "req_1"})


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────


def _calls(message: Json) -> list[Json]:
    return [block for block in message["content"] if block["type"] == "tool_use"]


def _check_thinking(body: Json) -> None:
    """Manual thinking has a budget below the limit; beside thinking there is neither sampling nor a forced call."""
    thinking = body.get("thinking", {})
    kind, choice = thinking.get("type"), body.get("tool_choice", {}).get("type")
    assert choice is None or body.get("tools"), "a tool_choice without tools"
    if kind in ("enabled", "adaptive"):
        assert "temperature" not in body, "temperature beside thinking"
        assert choice not in ("any", "tool"), "a forced call beside thinking"
    if kind == "enabled":
        assert MIN_BUDGET <= thinking["budget_tokens"] < body["max_tokens"], thinking
        *_, reply, last = [{"content": [{"type": "text"}]}, *body["messages"]]
        goes_on = last["content"][0]["type"] == "tool_result"
        assert not goes_on or reply["content"][0]["type"] in ("thinking", "redacted_thinking"), "expected `thinking`"


def _check_conversation(messages: list[Json]) -> None:
    roles = [message["role"] for message in messages]
    assert roles == ["user" if index % 2 == 0 else "assistant" for index in range(len(roles))], roles
    ids = [call["id"] for message in messages for call in _calls(message)]
    assert len(set(ids)) == len(ids), f"`tool_use` ids must be unique: {ids}"
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", each) for each in ids), ids
    calls: list[Json] = []
    for message in messages:
        blocks = message["content"]
        assert blocks, "all messages must have non-empty content"
        assert all(each["text"].strip() for each in blocks if each["type"] == "text"), "texts must have a character"
        answered = [each["tool_use_id"] for each in blocks if each["type"] == "tool_result"]
        assert sorted(answered) == sorted(call["id"] for call in calls), f"{answered} for {calls}"
        assert all(each["type"] == "tool_result" for each in blocks[: len(answered)]), "results come first"
        calls = _calls(message)
        assert message["role"] == "assistant" or not calls, "a call of the user"
    assert not calls, f"without a result: {calls}"


def _check_marks(body: Json) -> None:
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    blocks += [block for message in body["messages"] for block in message["content"]]
    marked = [block for block in blocks if block.get("cache_control")]
    assert len(marked) <= MAX_MARKS, f"{len(marked)} blocks with cache_control"
    assert not [each for each in marked if each.get("type") in ("thinking", "redacted_thinking")], marked


def _came_back(calls: list[Json], blocks: list[Json]) -> bool:
    """Return whether a reply's blocks came back as they were; AssertionError for a thought that is not as it was."""
    thoughts = [block for block in blocks if block["type"] == "thinking"]
    assert all(each["signature"] == _sign(each["thinking"]) for each in thoughts), "Invalid `signature`"
    if not all(call["id"].startswith("toolu_") for call in calls):
        assert not thoughts, "a thought without its calls"
        return False
    assert calls[0]["id"].endswith("t") == bool(thoughts), "`thinking` blocks cannot be modified"
    return True


# ── what is answered ──────────────────────────────────────────────────────────────────────────────────


def _sign(thought: str) -> str:
    return b64encode(sha256(thought.encode()).digest()).decode()


def _blocks(turn: Turn, number: int) -> Iterator[ContentBlock]:
    if turn.thought:
        yield ThinkingBlock(type="thinking", thinking=turn.thought, signature=_sign(turn.thought))
    if turn.text:
        yield TextBlock(type="text", text=turn.text, citations=None)
    for index, (name, args) in enumerate(turn.calls):
        id_ = f"toolu_{number}_{index}{'t' if turn.thought else 'n'}"
        yield ToolUseBlock(type="tool_use", id=id_, name=name, input=dict(args))


def _usage(turn: Turn) -> Usage:
    counts = turn.counts
    thought = {"output_tokens_details": {"thinking_tokens": counts.reasoning}} if counts.reasoning else {}
    return Usage.model_validate(
        {
            "input_tokens": counts.input - counts.cached - counts.written,
            "cache_read_input_tokens": counts.cached,
            "cache_creation_input_tokens": counts.written,
            "cache_creation": {"ephemeral_5m_input_tokens": counts.written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": counts.output,
            "service_tier": "standard",
            **thought,
        }
    )


def _end(turn: Turn) -> Json:
    reason = "tool_use" if turn.calls and turn.finish == "stop" else REASONS[turn.finish]
    refused = {"type": "refusal", "category": "general_harms", "explanation": EXPLANATION}
    return {
        "stop_reason": reason,
        "stop_sequence": None,
        "stop_details": refused if reason == "refusal" else None,
    }


def _message(turn: Turn, number: int, blocks: list[ContentBlock]) -> Message:
    message = Message(
        id=f"msg_{number}", type="message", role="assistant", model=MODEL, content=blocks, usage=_usage(turn)
    )
    for name, value in _end(turn).items():
        setattr(message, name, value)
    return message


def _stream(turn: Turn, number: int) -> Iterator[BaseModel | Json]:
    begun = _message(turn, number, [])
    begun.stop_reason, begun.stop_details, begun.usage.output_tokens_details = None, None, None
    begun.usage.output_tokens = 1
    yield RawMessageStartEvent(type="message_start", message=begun)
    yield {"type": "ping"}
    for index, block in enumerate(_blocks(turn, number)):
        empty = block.model_copy(update={ThinkingBlock: {"thinking": "", "signature": ""}, TextBlock: {"text": ""}}.get(
            type(block), {"input": {}}))  # fmt: skip
        yield RawContentBlockStartEvent(type="content_block_start", index=index, content_block=empty)
        for delta in _deltas(block):
            yield RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)
        yield RawContentBlockStopEvent(type="content_block_stop", index=index)
    usage = {name: value for name, value in _usage(turn).model_dump().items() if name.endswith(("_tokens", "_details"))}
    event = RawMessageDeltaEvent.model_validate({"type": "message_delta", "delta": {}, "usage": usage})
    for name, value in _end(turn).items():
        setattr(event.delta, name, value)
    yield event
    yield RawMessageStopEvent(type="message_stop")


def _deltas(block: ContentBlock) -> Iterator[Any]:
    match block:
        case ThinkingBlock():
            yield from (ThinkingDelta(type="thinking_delta", thinking=each) for each in _cut(block.thinking))
            yield SignatureDelta(type="signature_delta", signature=block.signature)
        case TextBlock():
            yield from (TextDelta(type="text_delta", text=each) for each in _cut(block.text))
        case ToolUseBlock():
            text = orjson.dumps(block.input, option=orjson.OPT_INDENT_2).decode()
            yield from (InputJSONDelta(type="input_json_delta", partial_json=each) for each in ["", *_cut(text)])
        case _:
            raise AssertionError(block)


def _cut(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _write(value: BaseModel) -> bytes:
    return value.model_dump_json(exclude_unset=True, warnings=False).encode()


def _event(value: BaseModel | Json) -> bytes:
    data = orjson.dumps(value) if isinstance(value, dict) else _write(value)
    return b"event: %b\ndata: %b\n\n" % (orjson.loads(data)["type"].encode(), data)


STAND_IN = MessagesStandIn()
