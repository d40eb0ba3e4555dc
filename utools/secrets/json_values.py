"""JSON in a text: the values that it consists of or that stand in it, and the places of their leaves. Pure.

Nothing is written anew: a changed leaf leaves every other byte as it came, two equal keys included.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from utools.lazy_pattern import lazy_compile

WHITE_SPACE = " \t\n\r"
TRIES = 100
"""Places of one text where a value that cannot be read may seem to begin; what follows the last is no JSON."""
_BEGIN = lazy_compile(r'\{|\[(?=\s*[\[{"])')
"""Where a value begins within a text; `[1]` may as well be a note."""
_TOKEN = lazy_compile(r'"(?:[^"\\]++|\\.)*+"|-?\d[\d.eE+\-]*+|[\[\]{},]', re.DOTALL)
"""The tokens of a value that can be read, without colons and names."""


def _refuse(literal: str) -> Any:
    raise ValueError(f"{literal} is not JSON")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)


class Span(NamedTuple):
    """Where a value, a text or a key (both with their quotes) or a number stands."""

    start: int
    end: int


class Leaves(NamedTuple):
    """The leaves of a JSON value in order; `keys` are those of each object."""

    texts: list[Span]
    numbers: list[Span]
    keys: list[list[Span]]

    def strings(self) -> list[Span]:
        """Texts and keys, in the order of the text."""
        return sorted([*self.texts, *(key for keys in self.keys for key in keys)])


def find_values(text: str, *, whole: bool) -> list[Span]:
    """Return where the objects and lists in a text stand; with `whole` the text itself if it is one value of any
    kind."""
    if whole and (span := _read_whole(text)):
        return [span]
    return [span for span in _spans(text) if span.end]


def find_open(text: str, *, whole: bool) -> int | None:
    """Return where a value begins that may still continue at the end of the text."""
    if whole and text.lstrip(WHITE_SPACE)[:1] in ('"', "[") and _may_go_on(text):
        return 0
    return next((start for start, end in _spans(text) if not end and _may_go_on(text[start:])), None)


def find_around(leaves: Sequence[Span], start: int, end: int) -> Span | None:
    """Return which of these leaves, in the order of the text, holds all of this part of it."""
    at = bisect_right(leaves, start, key=lambda leaf: leaf.start) - 1
    return leaves[at] if at >= 0 and end <= leaves[at].end else None


def _read_whole(text: str) -> Span | None:
    start, stop = len(text) - len(text.lstrip(WHITE_SPACE)), len(text.rstrip(WHITE_SPACE))
    return Span(start, stop) if start < stop and _end_of(text, start) == stop else None


def _spans(text: str) -> Iterator[Span]:
    """Start and end of each value; the end is 0 where none can be read."""
    at, tries = 0, 0
    while tries < TRIES and (begin := _BEGIN.search(text, at)):
        end = _end_of(text, begin.start())
        tries += not end
        yield Span(begin.start(), end)
        at = end or begin.end()


def _end_of(text: str, start: int) -> int:
    """Return where the value ends that begins here; 0 if none does."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def _may_go_on(text: str) -> bool:
    try:
        from_json(text, allow_partial=True)
    except ValueError:
        return False
    return True


def find_leaves(text: str, value: Span) -> Leaves:
    """Return the leaves of a value that was found in a text."""
    found = Leaves([], [], [])
    within: list[list[Span] | None] = []  # the keys of each open object, None for a list
    is_key = False
    for token in _TOKEN.finditer(text, *value):
        match text[token.start()]:
            case "{" | "[" as bracket:
                is_key = bracket == "{"
                within.append([] if is_key else None)
            case "}" | "]":
                keys, is_key = within.pop(), False
                found.keys.extend([keys] if keys else [])
            case ",":
                is_key = within[-1] is not None
            case '"' if is_key and within and (of_object := within[-1]) is not None:
                of_object.append(Span(*token.span()))
                is_key = False
            case '"':
                found.texts.append(Span(*token.span()))
            case _:
                found.numbers.append(Span(*token.span()))
    return found
