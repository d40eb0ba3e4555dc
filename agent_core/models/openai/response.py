"""The answer of an endpoint for chat completions, read: a completion, or a refusal that says why not. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from agent_core.models.client import Completion
from agent_core.models.finish_reasons import CUT, DONE, FILTERED, MALFORMED, MAX_WORD, find_reason, read_finish_reason
from agent_core.models.openai.envelope import decode, mend
from agent_core.models.openai.refusals import find_wait, has_no_money, is_filtered, read_overflow
from agent_core.models.usage import read_vendor_usage

TRANSIENT = (408, 409, 429)
OWN_CALL_KEYS = ("id", "type", "function", "index", "name", "arguments")
"""Keys of a call that we write again when it goes back; others, such as Gemini's extra_content, go back unchanged."""
ECHOED_KEYS = ("reasoning_content", "reasoning_details", "extra_content")
"""Keys of a message with calls that DeepSeek, OpenRouter and Gemini need in later questions."""
MAX_CALLS = 128
MAX_MESSAGE = 2_000
"""Characters of a vendor's message that are read."""
MAX_GENERATION = 20_000
"""Characters of what a model wrote that are read where its vendor refused it."""
SPARE_LEVELS = 32
"""Levels of nesting that are left for what contains a call later: a message, a row of the journal."""
CALLING = ("tool_calls", "function_call")
"""Reasons of a reply that is done, as its calls show by themselves."""
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


def read_answer(answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return the completion in an answer, whatever the endpoint made of it. `now`: Unix seconds, for a Retry-After
    date."""
    if 300 <= answer.status < 400:
        return Refusal(
            f"answered {answer.status}, a redirect{_redirect_target(answer)}; redirects are refused", answer.status
        )
    try:
        reply = mend(decode(answer.body.removeprefix(BOM)))
    except ValueError:
        reply = None
    if not 200 <= answer.status < 300:
        return _read_refusal(answer, reply, now)
    if reply is None:
        return Refusal(f"answered with what is not JSON: {_show_body(answer.body)}", answer.status)
    return read_reply(reply, answer, now)


def contains_in_order(text: str, *words: str) -> bool:
    """Return whether words follow one another in a text: what `a.*b.*c` matches, in one pass."""
    at = 0
    for word in words:
        at = text.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


def read_reply(reply: Any, answer: HttpAnswer, now: float) -> Completion | Refusal:
    """Return the completion in the JSON value of an answer with a status of success."""
    if find_error(reply):
        return _read_refusal(answer, reply, now)
    try:
        return _read_completion(reply, answer.status)
    except orjson.JSONEncodeError:
        return Refusal("answered with what nests too deep", answer.status)


def _read_completion(reply: Any, status: int) -> Completion | Refusal:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list):
        return Refusal(f"answered with no chat completion: {_show_body(orjson.dumps(reply))}", status)
    if not choices:
        return Refusal("answered with an empty list of choices", status)
    choice = choices[0] if isinstance(choices[0], dict) else {}
    finish_reason = _read_finish_reason(choice)
    stopped = find_reason(finish_reason) in (FILTERED, MALFORMED)
    absent: dict[str, Any] = {"content": None if stopped else ()}
    message = found if isinstance(found := choice.get("message"), dict) else absent
    if isinstance(tool_calls := message.get("tool_calls"), list) and len(tool_calls) > MAX_CALLS:
        return Refusal(f"answered with {len(tool_calls)} calls, and at most {MAX_CALLS} are read", status)
    content, calls = read_text(message.get("content")), _read_calls(message)
    if content is None or calls is None:
        return Refusal(f"answered with a choice that holds no message: {_show_body(orjson.dumps(choices[0]))}", status)
    if (refusal := read_text(message.get("refusal"))) and refusal.strip():
        return Refusal(f"answered: the model refused to answer: {refusal[:MAX_MESSAGE]}", status, "content_filter")
    usage = read_vendor_usage(reply.get("usage"))
    echo = _read_echo(message) if calls else None
    _check_encodable([calls, echo])
    return Completion(
        content,
        finish_reason,
        usage.inputs,
        usage.outputs,
        usage.cost,
        calls=calls,
        echo=echo,
        cached_tokens=usage.cached,
        estimated=usage.doubtful,
    )


def _read_calls(message: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    """Return the message's native calls, {name, arguments} and other keys of the vendor; None when one is not a call.

    The one call of the older field `function_call` counts where there are no others.
    """
    calls = []
    tool_calls = message.get("tool_calls")
    if not tool_calls and isinstance(older := message.get("function_call"), dict) and older.get("name"):
        tool_calls = [{"function": older}]
    for call in tool_calls if isinstance(tool_calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return None
        arguments = {} if function.get("arguments") is None else function["arguments"]
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        more = {name: value for name, value in call.items() if name not in OWN_CALL_KEYS}
        calls.append({"name": function["name"], "arguments": text, **more})
    return tuple(calls)


def _read_echo(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields that a vendor needs back with a message that makes calls."""
    return {name: message[name] for name in ECHOED_KEYS if message.get(name)} or None


def _check_encodable(value: Any) -> None:
    """Raise orjson.JSONEncodeError unless a value can be encoded some levels deeper."""
    for _ in range(SPARE_LEVELS):
        value = [value]
    orjson.dumps(value)


def read_text(content: Any) -> str | None:
    """Return the text of a message's content: a text, null, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _read_finish_reason(choice: Mapping[str, Any]) -> str:
    """Return the vendor's word, which the caller reads; ours where the vendor behind a gateway says more."""
    given = choice.get("finish_reason")
    reason = read_finish_reason(given, choice.get("native_finish_reason"))
    if isinstance(given, str) and given and given not in CALLING and reason == read_finish_reason(given):
        return given[:MAX_WORD]
    return reason


def _read_refusal(answer: HttpAnswer, reply: Any, now: float) -> Refusal:
    """Return the refusal in the vendor's own words; the status of a 200 with an error says nothing."""
    error = find_error(reply)
    fields = error if isinstance(error, dict) else {}
    message = fields.get("message") or fields.get("detail") or error or _show_body(answer.body)
    text = (message if isinstance(message, str) else as_json(message) or _show_body(answer.body))[:MAX_MESSAGE]
    if isinstance(metadata := fields.get("metadata"), dict) and isinstance(raw := metadata.get("raw"), str):
        text = f"{text}: {raw}"[:MAX_MESSAGE]  # the vendor that OpenRouter asked
    answered = "answered with an error" if answer.status == 200 else f"answered {answer.status}"
    code, kind, param = (_read_word(fields, name) for name in ("code", "type", "param"))
    kinds, overflow = f"{code} {kind}", read_overflow(answer.status, f"{code} {kind}", text, fields)
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


def find_error(reply: Any) -> Any:
    """Return the error in a reply: OpenAI's and most others' {"error": …}, Gemini's list of one, a bare object, or an
    error of the first choice, as OpenRouter reports one that comes after the head.
    """
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    if not isinstance(reply, dict):
        return None
    if error := reply.get("error") or _find_choice_error(reply.get("choices")):
        return error
    return reply if "choices" not in reply and ("message" in reply or "detail" in reply) else None


def is_first_choice(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.get("index", 0) in (0, None)


def _find_choice_error(choices: Any) -> Any:
    """Return the error of the first choice, whatever text or calls are beside it."""
    for choice in choices if isinstance(choices, list) else ():
        if is_first_choice(choice) and (choice.get("error") or _is_error(choice)):
            return choice.get("error") or "the reply ended with the finish reason error"
    return None


def _is_error(choice: dict[str, Any]) -> bool:
    """Return whether a choice ended by an error, unless the vendor behind a gateway says it better."""
    reason, native = choice.get("finish_reason"), choice.get("native_finish_reason")
    is_error = isinstance(reason, str) and reason.lower() == "error"
    return is_error and read_finish_reason(None, native) in (DONE, CUT)


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


def _show_body(body: bytes) -> str:
    return body[:500].decode(errors="replace") or "(an empty body)"
