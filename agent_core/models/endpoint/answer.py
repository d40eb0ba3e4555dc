"""The answer of any endpoint, read: a reply as its API has it, or a refusal that says why there is none. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from agent_core.models.client import Completion
from agent_core.models.endpoint.envelope import decode_mended
from agent_core.models.endpoint.refusals import find_wait, has_no_money, is_filtered, read_overflow
from agent_core.models.finish_reasons import FILTERED

TRANSIENT = (408, 409, 429)
MAX_CALLS = 128
MAX_MESSAGE = 2_000
"""Characters of a vendor's message that are read."""
MAX_GENERATION = 20_000
"""Characters of what a model wrote that are read where its vendor refused it."""
SPARE_LEVELS = 32
"""Levels of nesting that are left for what contains a call later: a message, a row of the journal."""
BOM = b"\xef\xbb\xbf"
"""A byte order mark, which some servers write before JSON (RFC 8259, 8.1) and before events."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The endpoint's answer as it came, its body decompressed. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


NOT_LISTENING = "connection_refused"
"""The code of a refusal where nothing listens at the endpoint."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no completion. `status` is 0 without a whole answer; `wait`: the seconds that it asks for.

    `kinds` are all words by which the vendor names the kind of its error, `generation` is what its model wrote where
    that is the fault, `overflow` says how much too long the question is (refusals.py).
    """

    message: str
    status: int = 0
    code: str = ""
    param: str = ""
    transient: bool = False
    wait: float | None = None
    kinds: str = ""
    generation: str = ""
    overflow: dict[str, Any] | None = None


ReadReply = Callable[[Any, HttpAnswer, float], Completion | Refusal]
"""Reads the JSON value of an answer with a status of success; the time is as in `read_answer`."""


def read_answer(answer: HttpAnswer, now: float, read_reply: ReadReply) -> Completion | Refusal:
    """Return the completion in an answer, whatever the endpoint made of it. `now`: Unix seconds, for a Retry-After
    date."""
    if 300 <= answer.status < 400:
        return Refusal(
            f"answered {answer.status}, a redirect{_redirect_target(answer)}; redirects are refused", answer.status
        )
    try:
        reply = decode_mended(answer.body.removeprefix(BOM))
    except ValueError:
        reply = None
    if not 200 <= answer.status < 300:
        return read_refusal(answer, find_error(reply), now)
    if reply is None:
        return Refusal(f"answered with what is not JSON: {show_body(answer.body)}", answer.status)
    return read_reply(reply, answer, now)


def contains_in_order(text: str, *words: str) -> bool:
    """Return whether words follow one another in a text: what `a.*b.*c` matches, in one pass."""
    at = 0
    for word in words:
        at = text.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


def find_error(reply: Any, *holding: str) -> Any:
    """Return the error in a reply: OpenAI's and most others' {"error": …}, Gemini's list of one, or a bare object.

    `holding` are the keys of a reply that is none, whatever other keys it has.
    """
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    if not isinstance(reply, dict):
        return None
    if error := reply.get("error"):
        return error
    return reply if reply.keys().isdisjoint(holding) and ("message" in reply or "detail" in reply) else None


def check_encodable(value: Any) -> None:
    """Raise orjson.JSONEncodeError unless a value can be encoded some levels deeper."""
    for _ in range(SPARE_LEVELS):
        value = [value]
    orjson.dumps(value)


def read_refusal(answer: HttpAnswer, error: Any, now: float) -> Refusal:
    """Return the refusal in the vendor's own words, None as the `error` where its body has none of a known shape.

    The status of a 200 with an error says nothing.
    """
    fields = error if isinstance(error, dict) else {}
    message = fields.get("message") or fields.get("detail") or error or show_body(answer.body)
    text = (message if isinstance(message, str) else as_json(message) or show_body(answer.body))[:MAX_MESSAGE]
    if isinstance(metadata := fields.get("metadata"), dict) and isinstance(raw := metadata.get("raw"), str):
        text = f"{text}: {raw}"[:MAX_MESSAGE]  # the vendor that OpenRouter asked
    answered = "answered with an error" if answer.status == 200 else f"answered {answer.status}"
    code, kind, param = (_read_word(fields, name) for name in ("code", "type", "param"))
    kinds = f"{code} {kind} {_read_detail(fields)}".rstrip()
    overflow = read_overflow(answer.status, kinds, text, fields)
    told = find_wait(text, fields)
    transient = _is_transient(answer) and not overflow
    if transient and has_no_money(answer.status, kinds, text, names_wait=told is not None):
        transient = False
    wait = _read_retry_after(answer.headers, now) if transient else None
    return Refusal(
        f"{answered}: {text}",
        answer.status,
        FILTERED if is_filtered(kinds, text) else code,
        param,
        transient,
        told if wait is None and transient else wait,
        kinds,
        _read_generation(fields),
        overflow,
    )


def _read_word(error: Mapping[str, Any], name: str) -> str:
    value = error.get(name)
    return value[:99] if isinstance(value, str) else str(value) if type(value) is int else ""


def _read_detail(error: Mapping[str, Any]) -> str:
    """Return the word for an error's cause that stands in its details (Anthropic)."""
    details = error.get("details")
    return _read_word(details, "error_code") if isinstance(details, dict) else ""


def _read_generation(error: Mapping[str, Any]) -> str:
    """Return what the model wrote, where its vendor shows it (Groq)."""
    value = error.get("failed_generation")
    return value[:MAX_GENERATION] if isinstance(value, str) else ""


def _is_transient(answer: HttpAnswer) -> bool:
    """Return whether to ask again: as the endpoint says, in the header that the SDKs obey, else by the status."""
    by_status = answer.status in TRANSIENT or 500 <= answer.status < 600
    return {"true": True, "false": False}.get(answer.headers.get("x-should-retry", ""), by_status)


def as_json(value: Any) -> str:
    """Return the value's JSON; empty when it nests too deep."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return ""


def _read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from retry-after-ms (OpenAI) or Retry-After (RFC 9110, 10.2.3); None when neither is valid."""
    if re.fullmatch(r"\d{1,9}(\.\d*)?", milliseconds := headers.get("retry-after-ms", "").strip()):
        return float(milliseconds) / 1000
    if re.fullmatch(r"\d{1,9}(\.\d*)?", after := headers.get("retry-after", "").strip()):
        return float(after)
    try:
        date = parsedate_to_datetime(after)
    except (TypeError, ValueError):
        return None
    return None if date.tzinfo is None else max(0.0, date.timestamp() - now)


def _redirect_target(answer: HttpAnswer) -> str:
    """Return the host of a redirect's target; its path may contain a token."""
    try:
        host = urlsplit(answer.headers.get("location", "")).hostname
    except ValueError:
        return ""
    return f" to {host}" if host else ""


def show_body(body: bytes) -> str:
    return body[:500].decode(errors="replace") or "(an empty body)"
