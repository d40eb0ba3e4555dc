"""What an endpoint for chat completions sent back, read: a completion, or a refusal that says why not. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from agent_core.models.client import Completion

PASSING = (408, 409, 429)
OURS = ("id", "type", "function", "index", "name", "arguments")
"""Keys of a call that are made anew when it is sent back; the rest, such as Gemini's extra_content, goes back as is."""
WANTED_BACK = ("reasoning_content", "reasoning_details", "extra_content")
"""Keys of a message with calls that DeepSeek, OpenRouter and Gemini want back in the questions that follow."""
MOST_CALLS = 128
LARGEST_COUNT = 2**40
"""Tokens past which a count is no count; sums of such would not fit into JSON."""
LONGEST_WORDS = 2_000
"""Characters of a vendor's message that are looked at."""
ROOM = 32
"""Levels of nesting that are left for what a call is put into later: a message, a row of the journal."""
FINISH_REASONS = {"tool_calls": "stop", "function_call": "stop"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The endpoint's answer as it came, its body decompressed. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no completion. `status` is 0 when no whole answer came, `wait` the seconds asked for by it."""

    message: str
    status: int = 0
    code: str = ""
    param: str = ""
    transient: bool = False
    wait: float | None = None


def read(answer: Answer, now: float) -> Completion | Refusal:
    """The completion in an answer, whatever the endpoint made of it. `now` is the time in Unix seconds, for a Retry-After that is a date."""
    if 300 <= answer.status < 400:
        return Refusal(f"answered {answer.status}, a redirect{_target(answer)}; redirects are refused", answer.status)
    try:
        reply = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        reply = None
    if not 200 <= answer.status < 300:
        return _refused(answer, reply, now)
    if reply is None:
        return Refusal(f"answered with what is not JSON: {_shown(answer.body)}", answer.status)
    return judged(reply, answer, now)


def in_order(text: str, *words: str) -> bool:
    """Whether words follow one another somewhere in a text: what `a.*b.*c` finds, in one walk."""
    at = 0
    for word in words:
        at = text.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


def judged(reply: Any, answer: Answer, now: float) -> Completion | Refusal:
    """The completion in the JSON value of an answer that says it is one."""
    if _error(reply):
        return _refused(answer, reply, now)
    try:
        return _completion(reply, answer.status)
    except orjson.JSONEncodeError:
        return Refusal("answered with what nests too deep", answer.status)


def _completion(reply: Any, status: int) -> Completion | Refusal:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list):
        return Refusal(f"answered with no chat completion: {_shown(orjson.dumps(reply))}", status)
    if not choices:
        return Refusal("answered with an empty list of choices", status)
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = found if isinstance(found := choice.get("message"), dict) else {"content": ()}
    if isinstance(made := message.get("tool_calls"), list) and len(made) > MOST_CALLS:
        return Refusal(f"answered with {len(made)} calls, and at most {MOST_CALLS} are read", status)
    content, calls = _text(message.get("content")), _calls(message)
    if content is None or calls is None:
        return Refusal(f"answered with a choice that holds no message: {_shown(orjson.dumps(choices[0]))}", status)
    usage = reply.get("usage")
    given, got = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
    finish_reason, echo = _finish_reason(choice.get("finish_reason")), _echo(message) if calls else None
    _be_dumped([calls, echo])
    cost, cached = _cost(usage), _cached(usage)
    return Completion(content, finish_reason, given, got, cost, calls=calls, echo=echo, cached_tokens=cached)


def _calls(message: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    """The message's native calls, {name, arguments} and what else the vendor put there; None when one is none."""
    calls = []
    made = message.get("tool_calls")
    for call in made if isinstance(made, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return None
        arguments = {} if function.get("arguments") is None else function["arguments"]
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        more = {name: value for name, value in call.items() if name not in OURS}
        calls.append({"name": function["name"], "arguments": text, **more})
    return tuple(calls)


def _echo(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a vendor wants back with the message that made calls."""
    return {name: message[name] for name in WANTED_BACK if message.get(name)} or None


def _be_dumped(value: Any) -> None:
    """Raise orjson.JSONEncodeError unless a value may be sent back and written down, some levels further in."""
    for _ in range(ROOM):
        value = [value]
    orjson.dumps(value)


def _cached(usage: Any) -> int:
    """The input tokens that came from the vendor's cache, in OpenAI's words or in DeepSeek's."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    return _count(details, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens") or 0


def _cost(usage: Any) -> float | None:
    """What the reply cost, where the vendor itself says so (OpenRouter)."""
    cost = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= LARGEST_COUNT:
        return float(cost)
    return None


def _text(content: Any) -> str | None:
    """The text of a message's content: a text, null, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _finish_reason(reason: Any) -> str:
    return FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else "stop"


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value <= LARGEST_COUNT else None


def _refused(answer: Answer, reply: Any, now: float) -> Refusal:
    """The vendor's own words; a 200 that holds an error has no status worth telling."""
    error = _error(reply)
    fields = error if isinstance(error, dict) else {}
    told = fields.get("message") or fields.get("detail") or error or _shown(answer.body)
    text = (told if isinstance(told, str) else _as_json(told) or _shown(answer.body))[:LONGEST_WORDS]
    if isinstance(behind := fields.get("metadata"), dict) and isinstance(raw := behind.get("raw"), str):
        text = f"{text}: {raw}"[:LONGEST_WORDS]  # OpenRouter's word of the vendor behind it
    answered = "answered with an error" if answer.status == 200 else f"answered {answer.status}"
    code, param = (value[:99] if isinstance(value := fields.get(name), str) else "" for name in ("code", "param"))
    transient = answer.status in PASSING or 500 <= answer.status < 600
    wait = _retry_after(answer.headers, now) if transient else None
    return Refusal(f"{answered}: {text}", answer.status, code, param, transient, wait)


def _as_json(value: Any) -> str:
    """The value's JSON, empty when it nests too deep for that."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return ""


def _error(reply: Any) -> Any:
    """The error in a reply: OpenAI's and most others' {"error": …}, Gemini's list of one, or a bare object."""
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    if not isinstance(reply, dict):
        return None
    if error := reply.get("error"):
        return error
    return reply if "choices" not in reply and ("message" in reply or "detail" in reply) else None


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from retry-after-ms (OpenAI) or Retry-After (RFC 9110, 10.2.3); None when neither is sound."""
    if re.fullmatch(r"\d{1,9}(\.\d*)?", milliseconds := headers.get("retry-after-ms", "").strip()):
        return float(milliseconds) / 1000
    if re.fullmatch(r"\d{1,9}(\.\d*)?", after := headers.get("retry-after", "").strip()):
        return float(after)
    try:
        date = parsedate_to_datetime(after)
    except (TypeError, ValueError):
        return None
    return None if date.tzinfo is None else max(0.0, date.timestamp() - now)


def _target(answer: Answer) -> str:
    """The host that a redirect points to, and no more: its path may hold a token."""
    try:
        host = urlsplit(answer.headers.get("location", "")).hostname
    except ValueError:
        return ""
    return f" to {host}" if host else ""


def _shown(body: bytes) -> str:
    return body[:500].decode(errors="replace") or "(an empty body)"
