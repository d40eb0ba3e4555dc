"""What counts as JSON in a tool's output. Pure."""

import math
from typing import Any

SMALLEST, LARGEST = -(2**63), 2**64 - 1
MAX_DEPTH = 64


class NotJson(ValueError):
    """A value that no JSON document can hold; the message says where and why."""


def as_json(value: Any, place: str = "", depth: int = 0) -> Any:
    """A copy of `value` made of plain JSON types, tuples as lists; NotJson if it holds anything else."""
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, place)
        case int():
            if not SMALLEST <= value <= LARGEST:
                raise NotJson(f"{place or 'it'} is an integer outside -2^63…2^64-1")
            return int(value)
        case float():
            if not math.isfinite(value):
                raise NotJson(f"{place or 'it'} is not a finite number")
            return float(value)
    if depth >= MAX_DEPTH:
        raise NotJson(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list | tuple):
        return [as_json(each, f"{place}/{index}", depth + 1) for index, each in enumerate(value)]
    if isinstance(value, dict):
        return {_key(key, place): as_json(each, f"{place}/{key}", depth + 1) for key, each in value.items()}
    raise NotJson(f"{place or 'it'} is of type {type(value).__name__}")


def _key(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise NotJson(f"{place or 'it'} has a key of type {type(key).__name__}, only strings may be keys")
    return _text(key, place)


def _text(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotJson(f"{place or 'it'} holds a lone surrogate, which is not text") from None
    return str.__str__(value)
