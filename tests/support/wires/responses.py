"""A stand-in of OpenAI's Responses API: bodies by the types of the openai SDK, rules as its vendor has them."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from openai.types import responses as api
from openai.types.responses import response_create_params as params
from pydantic import BaseModel, TypeAdapter, ValidationError

from support.loopback import Request
from support.wires.turn import Asked, Counts, Finish, Json, Turn

OUTPUT = ("reasoning", "message", "function_call")
INCOMPLETE: Mapping[Finish, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
KINDS = {401: "invalid_request_error", 429: "rate_limit_exceeded", 500: "server_error", 503: "server_error"}
PIECE = 7
"""Characters of a delta."""


class ResponsesStandIn:
    """The Responses API without storage: thoughts go out encrypted, and must come back as they went."""

    provider, api = "openai", "responses"
    keys, url_env = "OPENAI_API_KEY", "OPENAI_BASE_URL"

    def is_its_path(self, request: Request) -> bool:
        return request.method == "POST" and request.target.endswith("/v1/responses")

    def key_of(self, request: Request) -> str | None:
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        return key if kind == "Bearer" else None

    def read(self, request: Request) -> Asked:
        body = request.json()
        check_types(body)
        assert body["store"] is False
        items: list[Json] = body["input"]
        check_conversation(items)
        return Asked(
            body["model"],
            [read_text(item["content"]) for item in items if item["type"] == "message"],
            [tool["name"] for tool in body.get("tools", ())],
            [(item["name"], json.loads(item["arguments"])) for item in items if item["type"] == "function_call"],
            [item["output"] for item in items if item["type"] == "function_call_output"],
            [came_back(reply) for reply in replies_with_calls(items)],
            body.get("stream", False),
            {name: value for name, value in body.items() if name not in ("model", "input", "tools", "stream")},
            [],
        )

    def whole(self, turn: Turn, number: int) -> bytes:
        return dump(write_response(turn, number))

    def events(self, turn: Turn, number: int) -> list[bytes]:
        events = enumerate(_events(write_response(turn, number)))
        return [write_event({**event, "sequence_number": place}) for place, event in events]

    def error(self, status: int, message: str, kind: str = "") -> bytes:
        code = kind or KINDS.get(status)
        fields = {"message": message, "type": KINDS.get(status, "invalid_request_error"), "param": None, "code": code}
        return json.dumps({"error": fields}).encode()


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────


@lru_cache
def request_types() -> tuple[TypeAdapter[Any], TypeAdapter[Any]]:
    return TypeAdapter(params.ResponseCreateParamsNonStreaming), TypeAdapter(params.ResponseCreateParamsStreaming)


def check_types(body: Json) -> None:
    """AssertionError for a body that is not the SDK's request, or that has a key which the SDK does not know."""
    try:
        read = _take(request_types()[bool(body.get("stream"))].validate_python(body, strict=True))
    except ValidationError as error:
        raise AssertionError(str(error)) from None
    assert read == body, "a key that the SDK's types do not have"


def _take(value: Any) -> Any:
    """Return a validated value with its iterators read."""
    if isinstance(value, Mapping):
        return {name: _take(each) for name, each in value.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [_take(each) for each in value]


def check_conversation(items: list[Json]) -> None:
    """AssertionError for what the vendor refuses: a call without its output, a thought that is alone or was changed."""
    calls: dict[str, Json] = {}
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else {"type": "nothing"}
        match item["type"]:
            case "function_call":
                assert item["call_id"] not in calls, f"duplicate call {item['call_id']}"
                assert len(item["call_id"]) <= 64
                calls[item["call_id"]] = item
            case "function_call_output":
                assert calls.pop(item["call_id"], None), f"no tool call found for {item['call_id']}"
            case "reasoning":
                assert following["type"] in ("message", "function_call"), "without its required following item"
                assert following.get("role", "assistant") == "assistant"
            case "message" if item["role"] != "assistant":
                assert not calls, f"no tool output found for {[*calls]}"
            case kind:
                assert kind == "message", kind
    assert not calls, f"no tool output found for {[*calls]}"
    for reply in replies_with_calls(items):
        check_reply(reply)


def replies_with_calls(items: list[Json]) -> Iterator[list[Json]]:
    """Yield the items of each earlier reply that has calls."""
    reply: list[Json] = []
    for item in [*items, {"type": "end"}]:
        if item["type"] in OUTPUT and item.get("role", "assistant") == "assistant":
            reply.append(item)
        else:
            if any(each["type"] == "function_call" for each in reply):
                yield reply
            reply = []


def check_reply(reply: list[Json]) -> None:
    """AssertionError for a reply of ours whose items are not those that went out."""
    thoughts = [item for item in reply if item["type"] == "reasoning"]
    for thought in thoughts:
        assert thought["encrypted_content"] == encrypt(seal(reply)), "the encrypted content could not be verified"
    ids = [item.get("id", "") for item in reply if item["type"] == "function_call"]
    assert thoughts or not any(id_.startswith("fc_thought") for id_ in ids), "without its required 'reasoning' item"


def came_back(reply: list[Json]) -> bool:
    """Return whether a reply has all that went out of it; one whose calls have no ids is of another API."""
    return all("id" in item for item in reply)


def seal(reply: list[Json]) -> list[Json]:
    """Return what a thought is bound to: the items after it, whose ids may be left out."""
    said = (item for item in reply if item["type"] != "reasoning")
    return [{name: value for name, value in item.items() if name != "id"} for item in said]


def encrypt(said: list[Json]) -> str:
    return b64encode(json.dumps(said, sort_keys=True).encode()).decode()


def read_text(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


# ── what is answered ──────────────────────────────────────────────────────────────────────────────────


def write_items(turn: Turn, number: int) -> list[Json]:
    said: list[Json] = []
    if turn.text:
        text = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
        message = {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant"}
        said.append({**message, "content": [text]})
    for place, (name, args) in enumerate(turn.calls):
        mark = "thought" if turn.thought else "plain"
        ids = {"id": f"fc_{mark}_{number}_{place}", "call_id": f"call_{number}_{place}"}
        arguments = '{"' if turn.finish == "malformed_call" else json.dumps(args, ensure_ascii=False)
        said.append({"type": "function_call", **ids, "status": "completed", "name": name, "arguments": arguments})
    if not turn.thought:
        return said
    summary = [{"type": "summary_text", "text": turn.thought}]
    return [
        {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": encrypt(seal(said))},
        *said,
    ]


def write_usage(counts: Counts) -> Json:
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.written},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    }


def write_response(turn: Turn, number: int) -> api.Response:
    reason = INCOMPLETE.get(turn.finish)
    return api.Response.model_validate(
        {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_760_000_000,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "model": "m1",
            "output": write_items(turn, number),
            "parallel_tool_calls": True,
            "reasoning": {"effort": "medium", "summary": None},
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "usage": write_usage(turn.counts),
        }
    )


def dump(value: BaseModel) -> bytes:
    return value.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _events(response: api.Response) -> Iterator[Json]:
    whole: Json = json.loads(dump(response))
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(whole["output"]):
        yield from _item_events(item, place)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _item_events(item: Json, place: int) -> Iterator[Json]:
    at: Json = {"item_id": item["id"], "output_index": place}
    empty = {"reasoning": {"summary": [], "encrypted_content": ""}, "message": {"content": []}}
    started = {**item, **empty.get(item["type"], {"arguments": ""})}
    started |= {} if item["type"] == "reasoning" else {"status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": place, "item": started}
    match item["type"]:
        case "reasoning":
            text = item["summary"][0]["text"]
            for piece in _cut(text):
                yield {"type": "response.reasoning_summary_text.delta", **at, "summary_index": 0, "delta": piece}
            yield {"type": "response.reasoning_summary_text.done", **at, "summary_index": 0, "text": text}
        case "message":
            part, at = item["content"][0], {**at, "content_index": 0}
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            for piece in _cut(part["text"]):
                yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": part}
        case _:
            for piece in _cut(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


@lru_cache
def event_type() -> TypeAdapter[Any]:
    return TypeAdapter(api.ResponseStreamEvent)


def write_event(event: Json) -> bytes:
    """Return an event as the SDK's types write it, in the vendor's form."""
    value = cast(BaseModel, event_type().validate_python(event))
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), dump(value))


STAND_IN = ResponsesStandIn()
