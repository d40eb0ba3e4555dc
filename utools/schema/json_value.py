"""JSON values: what a tool's output may hold. Pure."""

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from utools.words.catalogue import ENGLISH, Words

SMALLEST, LARGEST = -(2**63), 2**64 - 1
MAX_DEPTH = 64
PLAIN = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
"""Orjson refuses subclasses, dates and dataclasses by these options."""
LEAVES = frozenset({str, int, bool, type(None)})
Convert = Callable[[Any, str], Any]


class NotJson(ValueError):
    """A value that no JSON document can hold; the message says where and why, in the words of any language."""

    def __init__(self, why: str, pointer: str = "", **values: object) -> None:
        self._why, self._pointer, self._values = why, pointer, values
        super().__init__(self.explain(ENGLISH))

    def explain(self, words: Words) -> str:
        return words.why_not_json[self._why].format(at=self._pointer or words.it, **self._values)


class _NotPlain(Exception):
    """A value with something that is no plain JSON."""


def as_json(value: Any, *, depth: int = 0, convert: Convert | None = None) -> Any:
    """Return a copy of `value` made of plain JSON types, tuples as lists; NotJson if it holds anything else.

    It stands `depth` levels deep in a larger value. `convert(value, pointer)` makes JSON of other types, or raises
    NotJson.
    """
    if isinstance(value, dict | list):
        with suppress(TypeError, _NotPlain):
            orjson.dumps(value, option=PLAIN)  # refuses half surrogates, integers beyond 64 bits, keys that are no str
            return _copy_plain(value, MAX_DEPTH - depth)
    return _convert(value, "", depth, convert)


def _copy_plain(value: Any, levels: int) -> Any:
    """Return a copy of what is plain JSON already, of at most so many levels: a fourth of the time of `_convert`.
    _NotPlain for any other value."""
    if type(value) is float and math.isfinite(value):
        return value
    if levels > 0 and type(value) is dict:
        return {key: each if type(each) in LEAVES else _copy_plain(each, levels - 1) for key, each in value.items()}
    if levels > 0 and type(value) is list:
        return [each if type(each) in LEAVES else _copy_plain(each, levels - 1) for each in value]
    raise _NotPlain


def _convert(value: Any, pointer: str, depth: int, convert: Convert | None) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, pointer)
        case int():
            if not SMALLEST <= value <= LARGEST:
                raise NotJson("integer", pointer)
            return int(value)
        case float():
            if not math.isfinite(value):
                raise NotJson("number", pointer)
            return float(value)
        case _:
            pass
    if depth >= MAX_DEPTH:
        raise NotJson("depth", depth=MAX_DEPTH)
    if isinstance(value, list | tuple):
        return [_convert(each, f"{pointer}/{index}", depth + 1, convert) for index, each in enumerate(value)]
    if isinstance(value, dict):
        items = {
            _key(key, pointer, convert): _convert(each, f"{pointer}/{key}", depth + 1, convert)
            for key, each in value.items()
        }
        if len(items) < len(value):
            raise NotJson("twice", pointer)
        return items
    if convert is None:
        raise NotJson("type", pointer, type=type(value).__name__)
    return _convert(convert(value, pointer), pointer, depth + 1, convert)


def round_integers(value: Any) -> Any:
    """Return the value with each integer that no journal holds as the nearest float: what a stranger wrote as
    `18446744073709552000` bounds a number, and is none that anybody sends."""
    match value:
        case bool():
            return value
        case int():
            return value if SMALLEST <= value <= LARGEST else _to_float(value)
        case dict():
            return {name: round_integers(each) for name, each in value.items()}
        case list():
            return [round_integers(each) for each in value]
        case _:
            return value


def _to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def _key(key: Any, pointer: str, convert: Convert | None) -> str:
    if not isinstance(key, str):
        if convert is None:
            raise NotJson("key", pointer, type=type(key).__name__)
        (key,) = convert({key: None}, pointer)
    return _text(key, pointer)


def _text(value: str, pointer: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotJson("surrogate", pointer) from None
    return str.__str__(value)
