"""JSON values: what a tool's output may hold. Pure."""

import math
from collections.abc import Callable
from typing import Any

SMALLEST, LARGEST = -(2**63), 2**64 - 1
MAX_DEPTH = 64


class NotJson(ValueError):
    """A value that no JSON document can hold; the message says where and why."""


def as_json(value: Any, pointer: str = "", depth: int = 0, *, convert: Callable[[Any, str], Any] | None = None) -> Any:
    """A copy of `value` made of plain JSON types, tuples as lists; NotJson if it holds anything else.

    `convert(value, pointer)` makes JSON of other types, or raises NotJson.
    """
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, pointer)
        case int():
            if not SMALLEST <= value <= LARGEST:
                raise NotJson(f"{pointer or 'it'} is an integer outside -2^63…2^64-1")
            return int(value)
        case float():
            if not math.isfinite(value):
                raise NotJson(f"{pointer or 'it'} is not a finite number")
            return float(value)
    if depth >= MAX_DEPTH:
        raise NotJson(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list | tuple):
        return [as_json(each, f"{pointer}/{index}", depth + 1, convert=convert) for index, each in enumerate(value)]
    if isinstance(value, dict):
        items = {
            _key(key, pointer, convert): as_json(each, f"{pointer}/{key}", depth + 1, convert=convert)
            for key, each in value.items()
        }
        if len(items) < len(value):
            raise NotJson(f"{pointer or 'it'} has two keys that are the same text")
        return items
    if convert is None:
        raise NotJson(f"{pointer or 'it'} is of type {type(value).__name__}")
    return as_json(convert(value, pointer), pointer, depth + 1, convert=convert)


def _key(key: Any, pointer: str, convert: Callable[[Any, str], Any] | None) -> str:
    if not isinstance(key, str):
        if convert is None:
            raise NotJson(f"{pointer or 'it'} has a key of type {type(key).__name__}, only strings may be keys")
        (key,) = convert({key: None}, pointer)
    return _text(key, pointer)


def _text(value: str, pointer: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotJson(f"{pointer or 'it'} holds a lone surrogate, which is not text") from None
    return str.__str__(value)
