"""A stand-in of Google's Gemini API, by the types of the google-genai SDK."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import orjson
from google.genai import types
from pydantic import BaseModel, ConfigDict, Field

from support.loopback import Request
from support.wires.turn import Asked, Counts, Json, Turn

DUMMY = "skip_thought_signature_validator"
"""What Google documents for calls that Gemini did not make."""
NAME = re.compile("[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
TARGET = re.compile(r"(/v1)?/v1beta/models/(?P<model>[^/:]+):(generateContent|streamGenerateContent\?alt=sse)")
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
FINISHES = {
    "stop": types.FinishReason.STOP,
    "length": types.FinishReason.MAX_TOKENS,
    "content_filter": types.FinishReason.SAFETY,
    "malformed_call": types.FinishReason.MALFORMED_FUNCTION_CALL,
}
WORDS = {"temperature": "temperature", "topP": "top_p", "seed": "seed", "stopSequences": "stop"}
WORDS |= {"maxOutputTokens": "max_output_tokens"}
CHOICES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
FILTERED = "The reply was stopped for safety."
MALFORMED = "Malformed function call: print(default_api.look("


class _Body(BaseModel):
    """The body of generateContent, whose parts are the SDK's types."""

    model_config = ConfigDict(extra="forbid", val_json_bytes="base64")
    contents: list[types.Content] = Field(min_length=1)
    systemInstruction: types.Content | None = None
    generationConfig: types.GenerationConfig | None = None
    tools: list[types.Tool] = []
    toolConfig: types.ToolConfig | None = None
    safetySettings: list[types.SafetySetting] = []
    serviceTier: types.ServiceTier | None = None


class GeminiStandIn:
    """The Gemini API: what it takes, and how it answers."""

    provider = "gemini"
    api = "gemini"
    keys = "GEMINI_API_KEY"
    url_env = "GOOGLE_GEMINI_BASE_URL"

    def is_its_path(self, request: Request) -> bool:
        found = TARGET.fullmatch(request.target)
        return found is not None and found["model"] == "m1"

    def key_of(self, request: Request) -> str | None:
        assert "key=" not in urlsplit(request.target).query, request.target
        return request.headers.get("x-goog-api-key")

    def read(self, request: Request) -> Asked:
        found = TARGET.fullmatch(request.target)
        assert found is not None, request.target
        body = _Body.model_validate_json(request.body)
        raw: Json = orjson.loads(request.body)
        _check_conversation(raw["contents"])
        system: list[Json] = raw.get("systemInstruction", {}).get("parts", [])
        parts = [part for content in raw["contents"] for part in content["parts"]]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        functions = [each for tool in body.tools for each in tool.function_declarations or ()]
        return Asked(
            found["model"],
            [part["text"] for part in [*system, *parts] if "text" in part and not part.get("thought")],
            [_check_name(str(each.name)) for each in functions],
            [(call["name"], call["args"]) for call in calls],
            [result["output"] for result in results],
            [_is_signed(content["parts"]) for content in raw["contents"] if _calls_of(content)],
            "stream" in request.target,
            _read_options(raw),
            [],
        )

    def whole(self, turn: Turn, number: int) -> bytes:
        parts = _write_parts(turn, number)
        return _write(turn, parts, number, turn.counts, ends=True)

    def events(self, turn: Turn, number: int) -> list[bytes]:
        pieces = [piece for part in _write_parts(turn, number) for piece in _cut(part)]
        begun = Counts(turn.counts.input, 0, turn.counts.cached)
        bodies = [_write(turn, [piece], number, begun, ends=False) for piece in pieces]
        end = [types.Part(text="")] if turn.finish == "stop" else []
        bodies.append(_write(turn, end, number, turn.counts, ends=True))
        return [b"data: %b\r\n\r\n" % body for body in bodies]

    def error(self, status: int, message: str, kind: str = "") -> bytes:
        error = {"code": status, "message": message, "status": kind or STATUSES.get(status, "UNKNOWN")}
        return orjson.dumps({"error": error})


STAND_IN = GeminiStandIn()


# ── what it takes ────────────────────────────────────────────────────────────────────────────────────


def _check_conversation(contents: Sequence[Json]) -> None:
    """Assert Gemini's rules for a conversation: sides alternate, results follow their calls, signatures come back."""
    roles = [content["role"] for content in contents]
    assert roles == ["user", "model"] * (len(roles) // 2) + ["user"], roles
    for content in contents:
        assert content["parts"], "contents.parts must not be empty"
        for part in content["parts"]:
            assert len(part.keys() - {"thought", "thoughtSignature"}) == 1, part
    for before, content in zip([{"role": "model", "parts": []}, *contents], contents, strict=False):
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        calls = _calls_of(before)
        assert len(results) == len(calls), "the number of function response parts is not that of the function calls"
        assert [_identity(each) for each in results] == [_identity(each) for each in calls]
        if own := _calls_of(content):
            assert content["role"] == "model"
            signature = next(part for part in content["parts"] if "functionCall" in part).get("thoughtSignature")
            assert signature, f"Function call is missing a thought_signature: {own[0]['name']}"
            assert signature == DUMMY or _is_signed(content["parts"]), "Corrupted thought signature."


def _check_name(name: str) -> str:
    assert NAME.fullmatch(name), f"Invalid function name. Must start with a letter or an underscore: {name}"
    return name


def _calls_of(content: Json) -> list[Json]:
    return [part["functionCall"] for part in content["parts"] if "functionCall" in part]


def _identity(call: Json) -> tuple[Any, Any]:
    return _check_name(call["name"]), call.get("id")


def _is_signed(parts: Sequence[Json]) -> bool:
    """Return whether a model's parts are those that were signed, unchanged."""
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    bare = [{name: value for name, value in part.items() if name != "thoughtSignature"} for part in parts]
    return signatures == [_sign(bare)]


def _sign(bare: Sequence[Json]) -> str:
    return urlsafe_b64encode(sha256(orjson.dumps(list(bare), option=orjson.OPT_SORT_KEYS)).digest()).decode()


def _read_options(raw: Json) -> Json:
    """Return the options in our words, whatever has one; all else in Gemini's."""
    config: Json = {**raw.get("generationConfig", {})}
    options: Json = {WORDS.get(name, name): value for name, value in config.items()}
    if options.pop("responseMimeType", None):
        schemas = [options.pop(name, None) for name in ("responseJsonSchema", "responseSchema")]
        options["response_format"] = "json_schema" if any(schemas) else "json_object"
    if mode := raw.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode"):
        options["tool_choice"] = CHOICES[mode]
    return options


# ── what it answers ──────────────────────────────────────────────────────────────────────────────────


def _write_parts(turn: Turn, number: int) -> list[types.Part]:
    """Return the parts of a reply. The first call is signed, else the last text if the model has thought."""
    if turn.finish in ("content_filter", "malformed_call"):
        return []
    parts = [types.Part(text=turn.thought, thought=True)] if turn.thought else []
    parts += [types.Part(text=turn.text)] if turn.text else []
    calls = [
        types.FunctionCall(id=f"fc{number}-{index}", name=name, args=args)
        for index, (name, args) in enumerate(turn.calls)
    ]
    parts += [types.Part(function_call=call) for call in calls]
    if not calls and not turn.thought:
        return parts
    bare = [orjson.loads(part.model_dump_json(by_alias=True, exclude_none=True)) for part in parts]
    signed = len(parts) - max(1, len(calls))
    parts[signed].thought_signature = types.Part.model_validate({"thoughtSignature": _sign(bare)}).thought_signature
    return parts


def _cut(part: types.Part) -> Iterator[types.Part]:
    """Yield a part as a stream has it: a text in three pieces, its signature behind it in a piece of its own."""
    if not part.text:
        yield part
        return
    third = max(1, len(part.text) // 3)
    for text in (part.text[:third], part.text[third : 2 * third], part.text[2 * third :]):
        yield types.Part(text=text, thought=part.thought)
    if part.thought_signature:
        yield types.Part(text="", thought_signature=part.thought_signature)


def _write(turn: Turn, parts: list[types.Part], number: int, counts: Counts, *, ends: bool) -> bytes:
    """Return the body of a reply, or of a piece of it."""
    candidate = types.Candidate(index=0)
    if parts:
        candidate.content = types.Content(role="model", parts=parts)
    if ends:
        candidate.finish_reason = FINISHES[turn.finish]
        candidate.finish_message = {"content_filter": FILTERED, "malformed_call": MALFORMED}.get(turn.finish)
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=counts.input,
        cached_content_token_count=counts.cached or None,
        candidates_token_count=counts.output - counts.reasoning or None,
        thoughts_token_count=counts.reasoning or None,
        total_token_count=counts.input + counts.output,
    )
    reply = types.GenerateContentResponse(
        candidates=[candidate], usage_metadata=usage, model_version="m1-001", response_id=f"r{number}"
    )
    return reply.model_dump_json(by_alias=True, exclude_none=True).encode()
