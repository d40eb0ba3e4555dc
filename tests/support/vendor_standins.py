"""Vendors' endpoints on loopback, as their documents and their users tell of them: what each takes, and how it answers.

Checks and words are those that were seen on the wire in 2025 and 2026. A stand-in is a model that says what a script
tells it to, turn by turn; a refused request takes no turn.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from support.loopback import Loopback, Request, serving

Json = dict[str, Any]
KEY = "key-of-the-vendor"
CREATED = 1_790_000_000
SIGNATURE = "EjQKMgEMOdbHJChLX75QUCJjyYlm"
THOUGHT = "The user wants to know a word."
USAGE = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
COMMON = {"model", "messages", "temperature", "top_p", "stop", "max_tokens", "response_format", "stream"}
COMMON |= {"stream_options", "tools", "tool_choice", "seed", "max_completion_tokens"}


@dataclass(frozen=True)
class Turn:
    """What the model says: a text, or calls, (name, arguments) each."""

    text: str = ""
    calls: Sequence[tuple[str, Json]] = ()


class Refused(Exception):
    """A request that the vendor does not take, with its words for it."""

    def __init__(self, message: str, status: int = 400, **more: Any) -> None:
        super().__init__(message)
        self.message, self.status, self.more = message, status, more


@dataclass(frozen=True)
class Vendor:
    """The habits of one vendor: `takes` raises Refused, `error` shapes it, `chunks` is a reply in pieces."""

    path: str
    takes: Callable[[Json], None]
    error: Callable[[Refused], Any]
    message: Callable[[Turn, int], Json]
    chunks: Callable[[Turn, int], Iterator[Json | bytes]]
    wrong_key: Refused
    usage: Json = field(default_factory=lambda: USAGE)
    finish: str = "tool_calls"
    before: bytes = b""


@dataclass
class StandIn:
    """One vendor's endpoint at work: what was asked, what was refused, and the turns that are left."""

    vendor: Vendor
    turns: list[Turn]
    url: str = ""
    asked: list[Json] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    taken: int = 0

    def answer(self, request: Request) -> bytes:
        body: Json = orjson.loads(request.body)
        self.asked.append(body)
        try:
            self._check(request, body)
        except Refused as refused:
            self.refused.append(refused.message)
            return _http(refused.status, orjson.dumps(self.vendor.error(refused)))
        turn, self.taken = self.turns[self.taken], self.taken + 1
        if body.get("stream"):
            return _http(200, b"".join(self._events(turn)), "text/event-stream")
        return _http(200, self.vendor.before + orjson.dumps(self._whole(turn, body["model"])))

    def _check(self, request: Request, body: Json) -> None:
        assert request.target == f"{self.vendor.path}/chat/completions"
        if request.headers.get("authorization") != f"Bearer {KEY}":
            raise self.vendor.wrong_key
        self.vendor.takes(body)

    def _whole(self, turn: Turn, model: str) -> Json:
        finish_reason = self.vendor.finish if turn.calls else "stop"
        choice = {"index": 0, "message": self.vendor.message(turn, self.taken), "finish_reason": finish_reason}
        about = {"id": f"chatcmpl-{self.taken}", "object": "chat.completion", "created": CREATED, "model": model}
        return {**about, "choices": [choice], "usage": self.vendor.usage}

    def _events(self, turn: Turn) -> Iterator[bytes]:
        for chunk in self.vendor.chunks(turn, self.taken):
            yield chunk if isinstance(chunk, bytes) else b"data: %b\n\n" % orjson.dumps(_about(chunk))
        yield b"data: [DONE]\n\n"


@asynccontextmanager
async def standing_in(name: str, *turns: Turn) -> AsyncIterator[StandIn]:
    """The vendor's endpoint, until the end of the block."""
    stand_in = StandIn(VENDORS[name], list(turns))

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(stand_in.answer(server.requests[-1]))
        await writer.drain()

    async with serving(answer) as server:
        stand_in.url = f"http://127.0.0.1:{_port(server)}{stand_in.vendor.path}"
        yield stand_in


def _port(server: Loopback) -> int:
    return server.port


def _http(status: int, body: bytes, content_type: str = "application/json") -> bytes:
    fields = f"content-type: {content_type}\r\ncontent-length: {len(body)}\r\nconnection: close"
    return f"HTTP/1.1 {status} Told\r\n{fields}\r\n\r\n".encode() + body


def _about(chunk: Json) -> Json:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": "m", **chunk}


# ── what they all look at ─────────────────────────────────────────────────────────────────────────────


def _history(body: Json, unanswered: str, orphan: str) -> None:
    """Calls are followed by the answers to each of them, and answers follow their calls."""
    open_calls: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise Refused(orphan)
            open_calls.discard(message["tool_call_id"])
        elif open_calls:
            raise Refused(unanswered)
        for call in message.get("tool_calls", ()):
            assert isinstance(call["function"]["arguments"], str)
            open_calls.add(call["id"])
    if open_calls:
        raise Refused(unanswered)


def _names(body: Json, longest: int, told: str) -> None:
    for tool in body.get("tools", ()):
        if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{longest}}}", tool["function"]["name"]):
            raise Refused(told)


def _format(body: Json) -> str:
    form: str = body.get("response_format", {}).get("type", "text")
    return form


def _says_json(body: Json, told: str) -> None:
    texts = [str(message.get("content")) for message in body["messages"]]
    if _format(body) == "json_object" and "json" not in " ".join(texts).lower():
        raise Refused(told)


JSON_WORD = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."


def _calls(turn: Turn, number: int, **more: Any) -> list[Json]:
    return [
        {"id": f"call_{number}_{i}", "type": "function", "function": _function(name, args), **more}
        for i, (name, args) in enumerate(turn.calls)
    ]


def _function(name: str, args: Json) -> Json:
    return {"name": name, "arguments": orjson.dumps(args).decode()}


def _delta(finish_reason: str | None = None, **delta: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]}


def _split(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


# ── OpenAI ────────────────────────────────────────────────────────────────────────────────────────────


def _openai_takes(body: Json) -> None:
    """A model that reasons, as all new ones do."""
    for name in body.keys() - COMMON:
        raise Refused(f"Unrecognized request argument supplied: {name}")
    if "max_tokens" in body:
        told = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        raise Refused(told, param="max_tokens", code="unsupported_parameter")
    if body.get("temperature", 1) != 1:
        told = (
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
            "Only the default (1) value is supported."
        )
        raise Refused(told, param="temperature", code="unsupported_value")
    if _format(body) == "json_schema" and body["response_format"]["json_schema"]["schema"].get("type") != "object":
        told = "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
        raise Refused(f"Invalid schema for response_format 'step': {told}", param="response_format")
    _says_json(body, JSON_WORD)
    if "stream_options" in body and not body.get("stream"):
        raise Refused(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )
    if "tool_choice" in body and "tools" not in body:
        raise Refused("'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice")
    _names(body, 64, "Invalid 'tools[0].function.name': string does not match pattern.")
    told = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    _history(body, told, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")


def _openai_error(refused: Refused) -> Json:
    kinds = {"type": "invalid_request_error", "param": None, "code": None}
    return {"error": {"message": refused.message, **kinds, **refused.more}}


def _openai_message(turn: Turn, number: int) -> Json:
    calls = {"tool_calls": _calls(turn, number)} if turn.calls else {}
    return {"role": "assistant", "content": turn.text or None, "refusal": None, "annotations": [], **calls}


def _openai_chunks(turn: Turn, number: int) -> Iterator[Json | bytes]:
    """The counts come in a last chunk of no choices; until then `usage` is null."""
    yield {**_delta(role="assistant", content=None if turn.calls else "", refusal=None), "usage": None}
    for text in _split(turn.text):
        yield {**_delta(content=text), "usage": None, "obfuscation": "x9"}
    for index, call in enumerate(_calls(turn, number)):
        head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield {**_delta(tool_calls=[head]), "usage": None}
        for text in _split(call["function"]["arguments"]):
            yield {**_delta(tool_calls=[{"index": index, "function": {"arguments": text}}]), "usage": None}
    yield {**_delta("tool_calls" if turn.calls else "stop"), "usage": None}
    yield {"choices": [], "usage": USAGE}


# ── Gemini ────────────────────────────────────────────────────────────────────────────────────────────

GEMINI_WORDS = {"type", "properties", "required", "description", "enum", "items", "anyOf", "minimum", "maximum"}
GEMINI_WORDS |= {"minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "title", "nullable", "default"}


def _gemini_takes(body: Json) -> None:
    """A model that thinks: it wants its signatures back."""
    for name in body.keys() - COMMON:
        raise Refused(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    unknown = [
        f'Invalid JSON payload received. Unknown name "{word}" at '
        f"'tools[0].function_declarations[{i}].parameters': Cannot find field."
        for i, tool in enumerate(body.get("tools", ()))
        for word in sorted(_words(tool["function"]["parameters"]) - GEMINI_WORDS)
    ]
    if unknown:
        raise Refused("\n".join(unknown))
    _names(body, 64, "Invalid function name. Must start with a letter or an underscore.")
    told = "Please ensure that the number of function response parts is equal to the number of function call parts."
    _history(body, told, told)
    for position, message in enumerate(body["messages"]):
        for call in message.get("tool_calls", ())[:1]:
            if call.get("extra_content", {}).get("google", {}).get("thought_signature") != SIGNATURE:
                raise Refused(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                    f"data, function call `default_api:{call['function']['name']}` , position {position}."
                )


def _words(schema: Json) -> set[str]:
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    return set(schema).union(*map(_words, [*inner, *([schema["items"]] if "items" in schema else [])]))


def _gemini_error(refused: Refused) -> list[Json]:
    status = {400: "INVALID_ARGUMENT"}[refused.status]
    return [{"error": {"code": refused.status, "message": refused.message, "status": status}}]


def _gemini_calls(turn: Turn, number: int) -> list[Json]:
    """Of calls made side by side the first one alone is signed."""
    first, *others = _calls(turn, number)
    return [{**first, "extra_content": {"google": {"thought_signature": SIGNATURE}}}, *others]


def _gemini_message(turn: Turn, number: int) -> Json:
    said = {"tool_calls": _gemini_calls(turn, number)} if turn.calls else {"content": turn.text}
    return {"role": "assistant", **said}


def _gemini_chunks(turn: Turn, number: int) -> Iterator[Json | bytes]:
    """A call comes whole, in one chunk, without an index; every chunk has a role, the last one the counts."""
    for text in _split(turn.text):
        yield _delta(role="assistant", content=text)
    for call in _gemini_calls(turn, number) if turn.calls else ():
        yield _delta(role="assistant", tool_calls=[call])
    yield {**_delta("stop", role="assistant"), "usage": USAGE}


# ── Anthropic ─────────────────────────────────────────────────────────────────────────────────────────


def _anthropic_takes(body: Json) -> None:
    if _format(body) == "json_object":
        raise Refused("response_format.type: Input should be 'json_schema'")
    if _format(body) == "json_schema" and not body["response_format"]["json_schema"].get("strict"):
        raise Refused("response_format.json_schema.strict: Input should be True")
    if {"temperature", "top_p"} <= body.keys():
        raise Refused("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    if all(message["role"] == "system" for message in body["messages"]):
        raise Refused("messages: at least one message is required")
    _names(body, 128, "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
    if "tools" not in body and any(message.get("tool_calls") for message in body["messages"]):
        raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools.")
    _history(
        body,
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after.",
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks.",
    )


def _anthropic_error(refused: Refused) -> Json:
    kind = refused.more.get("type", "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": "req_011CZfa9cXgSH"}


# ── Qwen, at DashScope ────────────────────────────────────────────────────────────────────────────────


def _qwen_takes(body: Json) -> None:
    """An open model that thinks unless it is told not to, and thinks in streams only."""
    allows_thinking = body.get("enable_thinking", True)
    if allows_thinking and not body.get("stream"):
        raise Refused("parameter.enable_thinking must be set to false for non-streaming calls")
    if allows_thinking and _format(body) != "text":
        raise Refused("Json mode response is not supported when enable_thinking is true")
    if allows_thinking and body.get("tool_choice") == "required":
        told = "The tool_choice parameter does not support being set to required or object in thinking mode"
        raise Refused(f"<400> InternalError.Algo.InvalidParameter: {told}")
    _says_json(body, f"<400> InternalError.Algo.InvalidParameter: {JSON_WORD}")
    told = 'An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id".'
    _history(body, f"<400> InternalError.Algo.InvalidParameter: {told}", "<400> messages with role tool")


def _qwen_error(refused: Refused) -> Json:
    """A gateway's refusals are bare, a model's are in OpenAI's shape."""
    if refused.status == 401:
        return {"code": "InvalidApiKey", "message": refused.message, "request_id": "5bf78562-0341"}
    error = {"message": refused.message, "type": "invalid_request_error", "param": None}
    return {"error": {**error, "code": "invalid_parameter_error"}, "id": "chatcmpl-5bf7", "request_id": "5bf78562-0341"}


def _qwen_chunks(turn: Turn, number: int) -> Iterator[Json | bytes]:
    """It thinks aloud first, in a field of its own; the later pieces of a call have an empty id and no name."""
    for text in _split(THOUGHT):
        yield _delta(role="assistant", content=None, reasoning_content=text)
    for text in _split(turn.text):
        yield _delta(content=text, reasoning_content=None)
    for index, call in enumerate(_calls(turn, number)):
        head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield _delta(content=None, tool_calls=[head])
        for text in _split(call["function"]["arguments"]):
            piece = {"index": index, "id": "", "type": "function", "function": {"name": None, "arguments": text}}
            yield _delta(content=None, tool_calls=[piece])
    yield _delta("tool_calls" if turn.calls else "stop", content="", reasoning_content=None)
    yield {"choices": [], "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 0}}}


# ── DeepSeek ──────────────────────────────────────────────────────────────────────────────────────────


def _deepseek_takes(body: Json) -> None:
    """A model that thinks: it wants its thoughts back with its calls."""
    if _format(body) == "json_schema":
        raise Refused("This response_format type is unavailable now")
    _says_json(body, "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.")
    if body.get("tool_choice") == "required":
        raise Refused("Thinking mode does not support this tool_choice")
    for message in body["messages"]:
        if message.get("tool_calls") and message.get("reasoning_content") != THOUGHT:
            raise Refused("The reasoning_content in the thinking mode must be passed back to the API.")
    told = "An assistant message with 'tool_calls' must be followed by tool messages"
    _history(body, told, "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'")


def _deepseek_error(refused: Refused) -> Json:
    kinds = {"type": "invalid_request_error", "param": None, "code": "invalid_request_error"}
    return {"error": {"message": refused.message, **kinds}}


def _deepseek_message(turn: Turn, number: int) -> Json:
    return {**_openai_message(turn, number), "content": turn.text, "reasoning_content": THOUGHT}


def _deepseek_chunks(turn: Turn, number: int) -> Iterator[Json | bytes]:
    yield b": keep-alive\n\n"
    yield from _qwen_chunks(turn, number)


# ── OpenRouter ────────────────────────────────────────────────────────────────────────────────────────


def _openrouter_takes(body: Json) -> None:
    """A router hands on what it does not know; the model behind it is one that knows no schemas."""
    if _format(body) == "json_schema":
        raise Refused("Provider returned error", metadata={"raw": "json_schema is not supported"})


def _openrouter_error(refused: Refused) -> Json:
    return {"error": {"message": refused.message, "code": refused.status, **refused.more}, "user_id": "user_2x"}


def _openrouter_chunks(turn: Turn, number: int) -> Iterator[Json | bytes]:
    """Comments keep the connection alive; the last chunk says what it cost."""
    yield b": OPENROUTER PROCESSING\n\n"
    yield b": OPENROUTER PROCESSING\n\n"
    *chunks, last = _openai_chunks(turn, number)
    yield from chunks
    assert isinstance(last, dict)
    yield {**_delta(role="assistant", content=""), "usage": {**last["usage"], "cost": 0.25}}


VENDORS = {
    "openai": Vendor(
        "/v1",
        _openai_takes,
        _openai_error,
        _openai_message,
        _openai_chunks,
        Refused("Incorrect API key provided: wrong.", 401, code="invalid_api_key"),
    ),
    "gemini": Vendor(
        "/v1beta/openai",
        _gemini_takes,
        _gemini_error,
        _gemini_message,
        _gemini_chunks,
        Refused("API key not valid. Please pass a valid API key."),
        finish="stop",
    ),
    "anthropic": Vendor(
        "/v1",
        _anthropic_takes,
        _anthropic_error,
        _openai_message,
        _openai_chunks,
        Refused("invalid x-api-key", 401, type="authentication_error"),
    ),
    "qwen": Vendor(
        "/compatible-mode/v1",
        _qwen_takes,
        _qwen_error,
        _openai_message,
        _qwen_chunks,
        Refused("Invalid API-key provided.", 401),
    ),
    "deepseek": Vendor(
        "",
        _deepseek_takes,
        _deepseek_error,
        _deepseek_message,
        _deepseek_chunks,
        Refused("Authentication Fails (auth header format should be Bearer sk-...)", 401),
        usage={**USAGE, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 56},
        before=b"\n\n\n",
    ),
    "openrouter": Vendor(
        "/api/v1",
        _openrouter_takes,
        _openrouter_error,
        _openai_message,
        _openrouter_chunks,
        Refused("User not found.", 401),
        usage={**USAGE, "cost": 0.25},
    ),
}
