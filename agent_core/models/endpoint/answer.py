"""The answer of any endpoint, read: a reply as its API has it, or a refusal that says why there is none. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from agent_core.models.client import Completion
from agent_core.models.endpoint.envelope import decode_mended
from agent_core.models.endpoint.refusals import find_wait, has_no_money, is_filtered, is_passing, read_overflow
from agent_core.models.finish_reasons import FILTERED
from agent_core.outputs import Json

TRANSIENT = (408, 409, 429)
STATUSES: Final = ("code", "status", "status_code", "http_code")
"""Fields in which an error has its HTTP status, where the answer's own is a success."""
MINIMAX: Final = {1000: 500, 1001: 504, 1002: 429, 1004: 401, 1008: 402, 1013: 500, 1024: 500, 1033: 500, 1039: 429}
"""HTTP statuses for the codes that MiniMax gives in a 200."""
BAIDU: Final = {"1": 500, "2": 503, "4": 429, "18": 429, "336000": 500, "336100": 503, "336501": 429, "336502": 429}
"""HTTP statuses for the codes by which Baidu asks for another attempt, in a 200; the short ones in `error_code`."""
WORDS: Final = ("message", "msg", "detail", "reason", "error_description")
"""Fields in which gateways say what is wrong, beside an error that is only a title."""
SAID: Final = ("message", "detail", "error_msg", "error_message", "err_msg", "errmsg", "errorMessage", "Message")
"""Fields in which an error says what is wrong: most vendors', FastAPI's, Baidu's, those of gateways, and AWS's."""
TOO_DEEP: Final = "answered with what nests too deep"
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


def read_success(
    reply: Any, answer: HttpAnswer, now: float, error: Any, read: Callable[[Any, int], Completion | Refusal]
) -> Completion | Refusal:
    """Return what an API reads in the JSON value of an answer with a status of success; an `error` in it refuses."""
    if error:
        return read_refusal(answer, error, now)
    try:
        return read(reply, answer.status)
    except orjson.JSONEncodeError:
        return Refusal(TOO_DEEP, answer.status)


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
    error = reply.get("error")
    if error and not (isinstance(error, dict) and not any(error.values())):  # some leave an empty one in each reply
        return _add_words(error, reply)
    if (error := _find_minimax_error(reply) or _find_tencent_error(reply)) is not None:
        return error
    if not reply.keys().isdisjoint(holding):
        return None
    return _find_listed_error(reply) or (reply if _is_bare_error(reply) else None)


def _find_listed_error(reply: Json) -> Json | None:
    """Return the errors of a list as one, with the fields of the first: Cloudflare and watsonx write them so."""
    listed = reply.get("errors")
    errors = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    texts = [text for each in errors if isinstance(text := _read_said(each), str)]
    return {**errors[0], "message": "; ".join(texts)} if texts else None


def _add_words(error: Any, reply: Json) -> Any:
    """Return an error with what stands beside it, where it is only a title, a number or true, as Spring writes it."""
    if isinstance(error, dict | list):
        return error
    said = next((each for name in WORDS if isinstance(each := reply.get(name), str) and each), None)
    if said is None:
        return error if isinstance(error, str) else reply
    return {**reply, "message": f"{error}: {said}" if isinstance(error, str) else said}


def _find_minimax_error(reply: Json) -> Json | None:
    said = reply.get("base_resp")
    if not isinstance(said, dict) or not isinstance(code := said.get("status_code"), int) or not code:
        return None
    return {"message": said.get("status_msg"), "code": str(code), "status": MINIMAX.get(code)}


def _find_tencent_error(reply: Json) -> Any:
    """Return the error of Tencent Cloud's own API, in which its gateway refuses what never reached Hunyuan."""
    response = reply.get("Response")
    error = response.get("Error") if isinstance(response, dict) else None
    return {**error, "code": error.get("Code")} if isinstance(error, dict) and error else None


def _is_bare_error(reply: Json) -> bool:
    """Return whether an object is an error by itself: OpenAI's older ones, FastAPI's, Baidu's, and those of gateways
    that give a code and a text."""
    has_words = any(name in reply and not _is_message(reply[name]) for name in SAID)
    return has_words or ("msg" in reply and reply.get("code") not in (None, 0, 200, "0", "200"))


def _is_message(value: Any) -> bool:
    """Return whether what is named as an error's words is a message of a reply: of Ollama's own API."""
    return isinstance(value, dict) and "role" in value


def _read_said(error: Json) -> Any:
    return next((said for name in (*SAID, "msg") if (said := error.get(name))), None)


def check_encodable(value: Any) -> None:
    """Raise orjson.JSONEncodeError unless a value can be encoded some levels deeper."""
    for _ in range(SPARE_LEVELS):
        value = [value]
    orjson.dumps(value)


def read_refusal(answer: HttpAnswer, error: Any, now: float) -> Refusal:
    """Return the refusal in the vendor's own words, None as the `error` where its body has none of a known shape.

    A success with an error, in a stream or of a gateway, is judged by the status that the error names, or by its kind.
    """
    fields = error if isinstance(error, dict) else {}
    status = _read_status(answer, fields)
    message = _read_said(fields) or error or show_body(answer.body)
    text = (message if isinstance(message, str) else as_json(message) or show_body(answer.body))[:MAX_MESSAGE]
    if isinstance(metadata := fields.get("metadata"), dict) and isinstance(raw := metadata.get("raw"), str):
        text = f"{text}: {raw}"[:MAX_MESSAGE]  # the vendor that OpenRouter asked
    answered = "answered with an error" if status == 200 else f"answered {status}"
    code, kind, param = (_read_word(fields, name) for name in ("code", "type", "param"))
    code = code or _read_word(fields, "error_code")
    kinds = f"{code} {kind} {_read_detail(fields)}".rstrip()
    overflow = read_overflow(status, kinds, text, fields)
    told = find_wait(text, fields)
    transient = _is_transient(status, answer.headers, kinds) and not overflow
    if transient and has_no_money(status, kinds, text, names_wait=told is not None):
        transient = False
    wait = _read_retry_after(answer.headers, now) if transient else None
    return Refusal(
        f"{answered}: {text}",
        status,
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


def _read_status(answer: HttpAnswer, error: Json) -> int:
    if 200 <= answer.status < 300:
        for name in STATUSES:
            if re.fullmatch("[45][0-9]{2}", _read_word(error, name)):
                return int(error[name])
        code = _read_word(error, "error_code") or f"{_read_word(error, 'code'):0>6}"
        return BAIDU.get(code, answer.status)
    return answer.status


def _is_transient(status: int, headers: Mapping[str, str], kinds: str) -> bool:
    """Return whether to ask again: as the endpoint says, in the header that the SDKs obey, else by the status."""
    by_status = status in TRANSIENT or 500 <= status < 600
    if 200 <= status < 300:
        by_status = is_passing(kinds)
    return {"true": True, "false": False}.get(headers.get("x-should-retry", ""), by_status)


def write_arguments(given: Any) -> str:
    """Return the arguments of a call as the text that the loop reads: those that are absent are an empty object."""
    if isinstance(given, str):
        return given
    return "{}" if given is None else orjson.dumps(given).decode()


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
    except (TypeError, ValueError, OverflowError):
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
