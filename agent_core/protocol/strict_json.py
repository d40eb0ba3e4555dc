"""Strict JSON text (RFC 8259): the value it holds, or where and why it holds none. Pure.

`decode` is fast and builds the value. `scan` builds nothing, says where a text breaks, and is iterative, so
no nesting can exhaust the stack. They accept the same texts, but for those that nest too deep for `decode`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from agent_core.outputs import JsonValue
from agent_core.protocol.wrappings import WHITE_SPACE
from utools.lazy_pattern import lazy_compile
from utools.schema.pointer import escape

MAX_DEPTH = 64
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1


Problem = Literal["open_string", "bad_escape", "raw_control", "byte_order_mark", "end", "unexpected"]


@dataclass(frozen=True, slots=True)
class Malformed:
    """Where a text breaks, and how: `state` says what should come there, `hint` which mistake it looks like."""

    position: int
    problem: Problem
    state: str = ""
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class JsonFault:
    """Something that RFC 8259 allows and that we refuse; `what` is the key, literal or string concerned."""

    kind: Literal["duplicate_key", "number_range", "lone_surrogate"]
    pointer: str
    what: str


@dataclass(frozen=True, slots=True)
class _Repeated:
    key: str


@dataclass(frozen=True, slots=True)
class _OutOfRange:
    literal: str


# --- decode: the value, with a mark wherever it has a fault ----------------------------------------


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    counts = Counter(key for key, _ in pairs)
    return _Repeated(next(key for key in counts if counts[key] > 1))


def _make_integer(literal: str) -> int | _OutOfRange:
    number = int(literal) if len(literal) <= 20 else None  # 20 characters hold both ends of the range
    return _OutOfRange(literal) if number is None or not MIN_INTEGER <= number <= MAX_INTEGER else number


def _make_float(literal: str) -> float | _OutOfRange:
    number = float(literal)
    return _OutOfRange(literal) if number in (float("inf"), float("-inf")) else number


def _make_constant(literal: str) -> Any:
    raise ValueError(f"{literal} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_int=_make_integer, parse_float=_make_float, parse_constant=_make_constant
)

_STRINGS = lazy_compile(r'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)  # one never closed runs to the end: linear time
_BRACKETS = lazy_compile(r"[\[\]{}]")


def decode(text: str) -> Any:
    """Return the value of a text; ask `find_json_fault` before using it.

    Raises ValueError if the text is not exactly one value of at most `MAX_DEPTH` levels.
    """
    if _is_too_deep(text):
        raise ValueError("nested too deep")
    return _DECODER.decode(text)


def decode_sound(text: str) -> Any:
    """Return the value of a text that orjson itself writes for it, but for white space, and that so has no fault; None
    for any other text.

    A key that occurs twice, or a number that is out of range, is not written again as it was.
    """
    if _is_too_deep(text):
        return None
    try:
        value = orjson.loads(text)
        written = orjson.dumps(value).decode()
    except ValueError:
        return None
    return value if written == text or _without_space(written) == _without_space(text) else None


def _without_space(text: str) -> str:
    """Return the text without white space, in its strings too: whatever else differs, differs still."""
    return "".join(text.split())


def _is_too_deep(text: str) -> bool:
    """Exact for JSON; for other texts never too low up to the point where they break."""
    if len(text) <= 2 * MAX_DEPTH or text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def find_json_fault(value: Any) -> JsonFault | None:
    """Return the first fault in what `decode` returned: duplicate keys before numbers before surrogates."""
    try:
        orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)  # refuses our marks and lone surrogates
    except TypeError:
        ranks = ("duplicate_key", "number_range", "lone_surrogate")
        return min(_find_json_faults(value, ""), key=lambda found: ranks.index(found.kind))
    return None


def _find_json_faults(value: JsonValue | _Repeated | _OutOfRange, pointer: str) -> Iterator[JsonFault]:
    match value:
        case _Repeated(key):
            yield JsonFault("duplicate_key", pointer, key)
        case _OutOfRange(literal):
            yield JsonFault("number_range", pointer, literal)
        case str() if not _is_encodable(value):
            yield JsonFault("lone_surrogate", pointer, value)
        case dict():
            for key, item in value.items():
                below = f"{pointer}/{escape(key)}"
                yield from _find_json_faults(key, below)
                yield from _find_json_faults(item, below)
        case list():
            for n, item in enumerate(value):
                yield from _find_json_faults(item, f"{pointer}/{n}")
        case _:
            return


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def compact(text: bytes) -> bytes:
    """Return the same bytes without the spare room, 4 KB and more, that orjson allocates: for bytes that are stored."""
    return bytes(memoryview(text))


# --- scan: where a value ends, or where the text breaks -------------------------------------------
#
#   state    may come next                    then
#   VALUE    a scalar, `[` or `{`             AFTER, ITEM, NAME
#   ITEM     as VALUE, or `]`                 (just after `[`)
#   NAME     a string, or `}`                 COLON, AFTER (just after `{`)
#   KEY      a string                         COLON (after a comma)
#   COLON    `:`                              VALUE
#   AFTER    `,` or the awaited closer        VALUE or KEY, AFTER

_VALUE, _ITEM, _NAME, _KEY, _COLON, _AFTER = "value", "item", "name", "key", "colon", "after"

# No group is possessive: up to Python 3.11.4 one that fails half-way leaves its half matched.
_STRING_BODY = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_SPACE = lazy_compile(r"[ \t\n\r]*+")
_OPEN_STRING = lazy_compile(_STRING_BODY)
_TOKEN = lazy_compile(
    rf'[ \t\n\r]*+(?:(?P<string>{_STRING_BODY}")|'
    rf"(?P<scalar>{_NUMBER}|true|false|null)|(?P<mark>[\[\]{{}},:]))"
)
_STEPS = {
    **{(state, token): _AFTER for state in (_VALUE, _ITEM) for token in ("string", "scalar")},
    **{(state, "["): _ITEM for state in (_VALUE, _ITEM)},
    **{(state, "{"): _NAME for state in (_VALUE, _ITEM)},
    (_ITEM, "]"): _AFTER,
    (_NAME, "string"): _COLON,
    (_NAME, "}"): _AFTER,
    (_KEY, "string"): _COLON,
    (_COLON, ":"): _VALUE,
}


def scan(text: str, start: int = 0) -> int | Malformed:
    """Return where the value ends that starts at `start` (white space skipped), whatever follows it."""
    state, position = _VALUE, start
    open_brackets: list[str] = []
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            return _explain_broken(text, position, state)
        name = token["mark"] or token.lastgroup or ""
        following = _state_after(name, open_brackets) if state is _AFTER else _STEPS.get((state, name))
        if following is None:
            return _explain_unexpected(text, token.end() - len(token[0].lstrip(WHITE_SPACE)), state)
        if name in ("[", "{"):
            open_brackets.append(name)
        elif name in ("]", "}"):
            open_brackets.pop()
        state, position = following, token.end()
        if state is _AFTER and not open_brackets:
            return position


def _state_after(name: str, open_brackets: list[str]) -> str | None:
    bracket = open_brackets[-1]
    if name == ",":
        return _VALUE if bracket == "[" else _KEY
    return _AFTER if bracket + name in ("[]", "{}") else None


def find_values(text: str) -> list[tuple[int, int]] | None:
    """Start and end of each of the values of which the text consists, or None if it holds anything else."""
    spans: list[tuple[int, int]] = []
    start = _skip(text, 0)
    while start < len(text):
        touching = bool(spans) and spans[-1][1] == start
        found = scan(text, start)
        if isinstance(found, Malformed) or (touching and text[start - 1] not in "]}"):
            return None
        spans.append((start, found))
        start = _skip(text, found)
    return spans


def _skip(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _explain_broken(text: str, position: int, state: str) -> Malformed:
    """Return why there is no JSON token at `position`."""
    start = _skip(text, position)
    string = _OPEN_STRING.match(text, start)
    if string is None:
        return _explain_unexpected(text, start, state)
    if string.end() == len(text):
        return Malformed(start, "open_string")
    if text[string.end()] == "\\":
        return Malformed(string.end(), "bad_escape")
    return Malformed(string.end(), "raw_control")


_HINTS = {
    "'": "single_quote",
    "“": "curly_quote",
    "/": "comment",
    "#": "comment",
    "\ufeff": "byte_order_mark",
    "T": "true",
    "F": "false",
    "N": "null",
}
"""By the character found, the mistake that it looks like."""


def _explain_unexpected(text: str, position: int, state: str) -> Malformed:
    if position == len(text):
        return Malformed(position, "end", state)
    return Malformed(position, "unexpected", state, _find_hint(text, position, state))


def _find_hint(text: str, position: int, state: str) -> str | None:
    found = text[position]
    if (state, found) in ((_KEY, "}"), (_VALUE, "]")):
        return "last_comma"
    if state is _AFTER and text[position - 1] == '"':
        return "inner_quote"
    return _HINTS.get(found)
