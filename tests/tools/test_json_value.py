"""as_json: the short way for plain JSON gives what the long one gives, and refuses what it refuses."""

import enum
import json
from collections import OrderedDict
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utools.schema.json_value import MAX_DEPTH, NotJson, _convert, as_json


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(str):
    """A text of another type."""


class Pair(NamedTuple):
    a: int
    b: str


ODD = [
    float("nan"),
    float("inf"),
    -0.0,
    1e22,
    2**63,
    2**64,
    -(2**63) - 1,
    "\ud800",
    Colour.RED,
    Level.HIGH,
    Name("x"),
    Pair(1, "x"),
    OrderedDict(a=1),
    (1, (2,)),
    {1, 2},
    b"x",
    date(2026, 1, 1),
    UUID(int=1),
    {1: 2},
    {Name("k"): 1},
    {"\udc00": 1},
    object(),
]
LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(ODD)
VALUE = st.recursive(LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def outcome(convert: Callable[[], Any]) -> Any:
    """Return what comes out, with the types of all parts, or what is said of the value."""
    try:
        value = convert()
    except NotJson as error:
        return str(error)
    return repr(value), json.dumps(value)


def as_text(value: Any, pointer: str) -> Any:
    """Convert what is no JSON."""
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else f"{type(value).__name__}"


@given(VALUE, st.sampled_from([None, as_text]), st.integers(0, MAX_DEPTH))
def test_short_way_gives_what_the_long_one_gives(value: Any, convert: Any, depth: int) -> None:
    expected = outcome(lambda: _convert(value, "", depth, convert))
    assert outcome(lambda: as_json(value, depth=depth, convert=convert)) == expected


@pytest.mark.parametrize("convert", [None, as_text])
@pytest.mark.parametrize("odd", ODD, ids=[f"{place}-{type(odd).__name__}" for place, odd in enumerate(ODD)])
def test_odd_parts_are_taken_or_refused_as_by_the_long_way(odd: Any, convert: Any) -> None:
    for value in (odd, [odd], {"a": odd}, [{"a": [1, odd]}]):
        expected = outcome(partial(_convert, value, "", 0, convert))
        assert outcome(partial(as_json, value, convert=convert)) == expected


@pytest.mark.parametrize("depth", [0, 1, 60, MAX_DEPTH])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: {"a": [inner]}])
def test_nesting_has_one_limit(wrap: Callable[[Any], Any], depth: int) -> None:
    deep: Any = 1
    for _ in range(70):
        deep = wrap(deep)
        expected = outcome(partial(_convert, deep, "", depth, None))
        assert outcome(partial(as_json, deep, depth=depth)) == expected


def test_copy_shares_texts_and_nothing_that_can_change() -> None:
    given = {"a": [{"b": "text " * 100}]}
    copied = as_json(given)
    assert copied == given
    assert copied["a"] is not given["a"]
    assert copied["a"][0] is not given["a"][0]
    assert copied["a"][0]["b"] is given["a"][0]["b"]
