"""What an endpoint's refusal means, in the words of many vendors: when to ask again, and what was wrong. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_core.models.finish_reasons import MALFORMED, find_reason
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

# ── a wait that is only in the text ──────────────────────────────────────────────────────────────

_UNITS = {"ms": 0.001, "毫秒": 0.001, "s": 1.0, "秒": 1.0, "m": 60.0, "分": 60.0, "h": 3600.0, "小": 3600.0}
_AMOUNT = lazy_compile(
    r"(\d{1,12}(?:\.\d{1,12})?)\s{0,9}(ms|millis(?:econds?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?|毫秒|秒|分钟|小时)"
    r"(?![a-z])",
    re.I,
)
_WAIT = lazy_compile(
    r"(?:(?:try|available) again|available(?= in )|retry(?:[-_ ]?after)?|retrying|wait|resets?|后重试|请)"
    r"(?:[\s:=`\"']|in|after|at least|for|about|another|~|在|等待)*"
    rf"(?P<time>(?:{_AMOUNT.pattern}[\s,]*(?:and\s+)?)+|\d{{1,12}}(?:\.\d{{1,12}})?(?=[\s.,;)\"']*$))",
    re.I,
)
_DELAY_FIELDS = ("retryDelay", "retry_after", "retryAfter", "retry_after_seconds")


def find_wait(message: str, error: Mapping[str, Any]) -> float | None:
    """Seconds to wait that an error names in a field of its own (Gemini's RetryInfo) or in its text."""
    for place in _places(error):
        for name in _DELAY_FIELDS:
            if (wait := _read_time(str(place.get(name, "")))) is not None:
                return wait
    found = _WAIT.search(message)
    return _read_time(found["time"]) if found else None


def _places(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    details = error.get("details")
    for place in (error, error.get("metadata"), *(details if isinstance(details, list) else ())):
        if isinstance(place, Mapping):
            yield place


def _read_time(text: str) -> float | None:
    """Seconds of `2.2s`, `1m30s`, `350ms`, `5 seconds`, or of a number alone."""
    if amounts := _AMOUNT.findall(text):
        return sum(float(number) * _UNITS[_unit_of(unit.lower())] for number, unit in amounts)
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d+)?", text.strip()) else None


def _unit_of(unit: str) -> str:
    return unit if unit == "毫秒" else "ms" if unit.startswith(("ms", "milli")) else unit[0]


# ── what may be gone at the next attempt ──────────────────────────────────────────────────────────

_PASSING: Final = frozenset(
    (
        *("server", "internalserver", "internal", "api", "serviceunavailable", "unavailable", "upstream", "slowdown"),
        *("ratelimit", "ratelimitexceeded", "toomanyrequests", "throttling", "resourceexhausted", "timeout"),
        *("requestlimitexceeded", "rpmratelimitexceeded", "tpmratelimitexceeded"),  # at Tencent, at Baidu
        *("vectorstoretimeout", "overloaded", "engineoverloaded", "serverisoverloaded", "modelstreamerror"),
    )
)
_KIND_END: Final = lazy_compile(r"(?:_?error|exception)$", re.I)


def is_passing(kinds: str) -> bool:
    """Return whether the kinds of an error say so, where no status does: in a stream, or in a 200.

    One kind has many spellings: `rate_limit_error`, `RateLimitError`, `ThrottlingException`.
    """
    return any(_KIND_END.sub("", kind).replace("_", "").lower() in _PASSING for kind in kinds.split())


# ── what asking again does not change ────────────────────────────────────────────────────────────

_NO_MONEY_CODES = lazy_compile(
    r"insufficient_(?:user_)?(?:quota|balance|credits?|funds)|billing_(?:hard_limit_reached|not_active)|arrearage"
    r"|(?:contract|enforced)_spend_limit_reached|payment_required|exceeded_current_quota_error|credit_?balance|^1113$"
    r"|accountoverdue|setlimitexceeded",
    re.I,
)
_NO_MONEY = lazy_compile(
    r"insufficient[ _](?:account )?(?:quota|balance|credits?|funds)|credit balance|billing hard limit"
    r"|out of credits|used all available credits|monthly spending limit|payment required|no credits|used up your daily"
    r"|余额不足|额度不足|额度已用尽|欠费|充值",
    re.I,
)
_QUOTA = lazy_compile(r"exceeded your current quota", re.I)
"""So OpenAI says where nothing is left, and Gemini where a minute's share is used up: then it names a wait."""
PAYMENT_REQUIRED = 402
_FILTER_CODES = lazy_compile(
    r"content_?(?:filter|policy|moderation)|data_?inspection|responsible_?ai|prohibited_content"
    r"|sensitive_?(?:content|words)|(?:bio|cyber)_policy|policy_violation|content_?blocked|guardrail",
    re.I,
)
_FILTER = lazy_compile(
    r"content exists risk|may contain (?:inappropriate content|sensitive information)|content management policy"
    r"|violat(?:ing our usage polic|es usage guidelines)|blocked by content filter|input was flagged|new_sensitive"
    r"|prompt(?: was)? blocked: |不安全或敏感内容",
    re.I,
)


def has_no_money(status: int, codes: str, message: str, *, names_wait: bool) -> bool:
    """Return whether an account has nothing left to pay the question with."""
    if status == PAYMENT_REQUIRED or any(_NO_MONEY_CODES.search(code) for code in codes.split()):
        return True
    return _NO_MONEY.search(message) is not None or (not names_wait and _QUOTA.search(message) is not None)


def is_filtered(codes: str, message: str) -> bool:
    """Return whether a vendor refused what the question or its reply says."""
    return _FILTER_CODES.search(codes) is not None or _FILTER.search(message) is not None


# ── a model's own call ───────────────────────────────────────────────────────────────────────────

BAD_SAMPLE = "json_validate_failed"
"""Groq's code for one bad reply of a model; its endpoint accepts the format."""
_CALL = r"(?:tool|function)[ _-]?(?:calls?|use)"
_BAD_CALL = lazy_compile(
    rf"failed_generation|{_CALL} validation failed|attempted to call tool|model (?:called|did not call) a tool"
    rf"|fail(?:ed|ure) to call a function"
    rf"|fail(?:ed|ure) to (?:parse|generate|decode|extract) (?:the |a |valid |fc )*(?:{_CALL}|related)"
    r"|failed to parse input at pos"
    rf"|error (?:in |while |when )?(?:parsing|extracting|decoding) (?:the |a )?{_CALL}"
    rf"|malformed[ _](?:{_CALL})|(?:{_CALL}) (?:could not|cannot|can't) be parsed"
    r"|model (?:has )?(?:produced|generated|returned) (?:an? )?(?:invalid|malformed|unpars\w+) "
    rf"(?:content|sequence|output|json|arguments|{_CALL})"
    r"|model(?:'s)? (?:output|response|generation) (?:could not|cannot) be parsed|output_parse_failed"
    r"|model response did not respect the required format|model (?:has )?produced output that does not match"
    r"|XML syntax error on line \d+: |unexpected tokens remaining in message header"
    r"|expected 2 output messages \(reasoning and final\)",
    re.I,
)
_OF_HISTORY = lazy_compile(r"\bmessages?\s*[\[.]\s*\d|tool[_ ]call[_ ]ids?\b|role ['\"`]?tool", re.I)
"""Words of a refusal of the messages that were sent."""


def is_bad_call(codes: str, message: str) -> bool:
    """Return whether a vendor refused the call that its own model wrote."""
    if _OF_HISTORY.search(message):
        return False
    return any(find_reason(code) == MALFORMED for code in codes.split()) or _BAD_CALL.search(message) is not None


_NO_TOOLS = lazy_compile(
    r"(?:does|do)(?:n't| not) support (?:tools?|function)\b|no endpoints found that support tool use"
    r"|(?:tools?|function)[ _-]?(?:call(?:s|ing)?|use)\W{0,3} (?:is |are )?not supported|tools param requires",
    re.I,
)


def lacks_tools(message: str) -> bool:
    """Return whether a model, or its server, cannot call functions."""
    return _NO_TOOLS.search(message) is not None


# ── a question that is too long ──────────────────────────────────────────────────────────────────

_TOO_LONG = lazy_compile(
    r"context_length_exceeded|exceed_context_size|context[ _-]?(?:length|size|window|limit)"
    r"|maximum (?:prompt|context|input)"
    r"|(?:prompt|input|request|messages?|inputs?)\W+(?:is |are )?too (?:long|large)"
    r"|too large for (?:the |[\w./-]{1,60} )?model|prompt length|maximum model length|max_model_len|max message tokens"
    r"|(?:prompt|input) tokens? (?:length )?too long|prompt exceeds|input text too large"
    r"|request too large|too many (?:input )?tokens|input (?:token count|length)|prompt token count|prompt contains \d"
    r"|number of input tokens|tokens in request|model token limit|`inputs`|max_seq_len|message token length"
    r"|reduce the length of the (?:messages|prompt)|model max length exceeded|^max_tokens must be at least 1, got -"
    r"|messages\[\d{1,6}\]\.content\S{0,40} string too long|prompt 超长|longer than the model"
    r"|max input characters|max length of current question"
    r"|(?:输入|上下文|提示词|对话历史)(?:[的总内容长度文本字窗口数量\s]|tokens?){0,12}(?:超[过出长]|过长)"
    r"|(?<!_)tokens? ?(?:总数|数量|数|长度)? ?超[过出]",
    re.I,
)
_OF_REPLY = lazy_compile(r"max_(?:completion_|output_)?tokens\W{1,3}must be less than or equal to", re.I)
"""Groq's words for a reply that may be longer than its model's replies can be; they speak of the window, too."""
_SAYS_SO = lazy_compile(
    r"exceed|too (?:long|large|many)|maximum|longer than|larger than|greater than|must (?:have|be) (?:less|<=)|<="
    r"|limit|range of input|only supports up to|at least 1, got -|configured context|max input|max length of"
    r"|less than|reduce the length|超长|过长|超过|超出|overflow|more than",
    re.I,
)
_WHATEVER_STATUS = lazy_compile(r"request too large|context[ _-]?(?:length|size|window)|prompt is too long", re.I)
_NUMBER = lazy_compile(r"(?<![\w.$-])(\d{1,3}(?:,\d{3}){1,4}|\d{1,9})(?![\w-]|\.\d|,\d)")
_FOR_REPLY = lazy_compile(
    r"(\d[\d,]{0,14}) (?:tokens )?(?:in|for|of|from) the (?:completion|output)|\+ (\d[\d,]{0,14}) >"
    r"|and (\d[\d,]{0,14}) `max_new_tokens`|\((\d[\d,]{0,14}) > \d[\d,]{0,14} - \d"
    r"|requested (\d[\d,]{0,14}) output tokens|max_tokens \((\d[\d,]{0,14})\) should not",
    re.I,
)
_FOR_QUESTION = lazy_compile(
    r"(\d[\d,]{0,14}) (?:tokens )?(?:in|of|from) (?:the |your )?(?:messages|prompt|text input|input)"
    r"|(\d[\d,]{0,14}) input tokens|: (\d[\d,]{0,14}) \+ \d",
    re.I,
)
_PARTS = lazy_compile(r"(\d[\d,]{0,14}) of \w{1,20} input\b", re.I)
"""The parts of a question, where its vendor counts them apart (OpenRouter)."""
_SENT = lazy_compile(
    r"(?:resulted in|given:|requested:?|request has|contains|received) (\d[\d,]{0,14})\b(?! output)", re.I
)
_WINDOW = lazy_compile(
    r"\+ [\d,]{1,15} > (\d[\d,]{0,14})|> (\d[\d,]{0,14}) (?:maximum|tokens)|<= ?(\d[\d,]{0,14})"
    r"|(?:context (?:length|size|window)|maximum prompt length|token limit|tokens limit|limit|cannot exceed)"
    r"(?:\s+(?:is|of|while|only|to|be)|\s*[:(])*\s*(\d[\d,]{0,14})\b(?! \+| tokens >)|max_model_len (\d[\d,]{0,14})"
    r"|n_ctx: (\d[\d,]{0,14})|model length of (\d[\d,]{0,14})|max size: (\d[\d,]{0,14}) tokens",
    re.I,
)
_OTHER_NUMBERS = lazy_compile(
    r"<\d{3}>|\(2013\)|\bcode:? \d{3}\b|\bby \d[\d,]{0,14} tokens|\d[\d,]{0,14} (?:input )?characters"
    r"|(?:characters|question) is \d{1,15}|\bvalue=\(?\d[\d, ]{0,30}|string with (?:maximum )?length \d{1,15}",
    re.I,
)
"""Numbers that are no windows: codes in the midst of a text (DashScope, MiniMax, the SDKs behind a gateway),
characters, and by how much a question is too long."""
TOO_LARGE, PLEASE_WAIT = 413, "please wait"
_LEAST = 64
"""Smaller numbers in such a message are no windows."""


def read_overflow(status: int, codes: str, message: str, error: Mapping[str, Any]) -> Json | None:
    """Of a question that is too long for the model, the tokens that it may have (`room`) and that it has (`counted`).

    Each is None where the vendor does not say; None for a refusal with another reason.
    """
    is_code = "context_length_exceeded" in codes or "exceed_context_size" in codes
    if not is_code and not _is_too_long(status, message):
        return {"room": None, "counted": None} if status == TOO_LARGE else None
    message = _OTHER_NUMBERS.sub("", message)
    window, counted = _read_int(error, "n_ctx"), _read_int(error, "n_prompt_tokens")
    for_reply = _first(_FOR_REPLY, message)
    parts = sum(map(_to_int, _PARTS.findall(message)))
    for_question = parts or _first(_FOR_QUESTION, message) or _first(_SENT, message)
    numbers = sorted({number for number in map(_to_int, _NUMBER.findall(message)) if number >= _LEAST}, reverse=True)
    window = window or _first(_WINDOW, message) or next(iter(numbers[1:] or numbers), None)
    largest = numbers[0] if numbers and window and numbers[0] > window else None
    counted = counted or for_question or largest
    if window is None:
        return {"room": None, "counted": None}
    room = window - (for_reply or 0)
    if room <= 0 or (counted is not None and counted <= room):
        return None  # it is the reply that has no room
    return {"room": room, "counted": counted}


def _is_too_long(status: int, message: str) -> bool:
    """Return whether a message says so. Bedrock's "too many tokens, please wait" is a rate limit, as 429 says where the
    answer is no stream."""
    if status not in (200, 400, TOO_LARGE, 422) and not _WHATEVER_STATUS.search(message):
        return False
    if PLEASE_WAIT in message.lower() or _OF_REPLY.search(message):
        return False
    return _TOO_LONG.search(message) is not None and _SAYS_SO.search(message) is not None


def _first(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    return _to_int(next(group for group in found.groups() if group)) if found else None


def _to_int(text: str) -> int:
    return int(text.replace(",", ""))


def _read_int(error: Mapping[str, Any], name: str) -> int | None:
    value = error.get(name)
    return value if type(value) is int and value > 0 else None
