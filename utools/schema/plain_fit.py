"""A quick yes: that a value fits a schema, by keywords whose meaning leaves no doubt. Pure.

A no says nothing: `plain_faults` or jsonschema decides then. What would end a validation early, a reference that is
followed too often or a value that is too deep, never gets a yes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final, NamedTuple

Fits = Callable[[Any], bool]

TYPES: Final[Mapping[type, tuple[str, ...]]] = {
    str: ("string",),
    int: ("integer", "number"),
    float: ("number",),
    bool: ("boolean",),
    dict: ("object",),
    list: ("array",),
    NoneType: ("null",),
}
"""The types that a value has beyond doubt. A float may be an integer too, and a `type` may be a list."""
SAY_NOTHING: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"}
    | {"$comment", "$defs", "definitions", "x-author"}
)
"""Keywords that refuse no value; formats are not checked."""
OF_ANY: Final = frozenset({"type", "enum", "const", "anyOf", "allOf", "$ref"})
OF_OBJECTS: Final = frozenset({"properties", "required", "additionalProperties", "dependentSchemas"})
OF_LISTS: Final = frozenset({"items", "minItems", "maxItems"})
OF_TEXTS: Final = frozenset({"minLength", "maxLength"})
OF_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
READ: Final = SAY_NOTHING | OF_ANY | OF_OBJECTS | OF_LISTS | OF_TEXTS | OF_NUMBERS
CONTAINERS: Final = (dict, list)
MOST_NESTED: Final = 16
"""Schemas within each other that are read: a value that they look into is not too deep."""
MOST_WITHIN: Final = 32
"""Levels of a value that a schema does not look into: with those it looks into, it is not too deep."""
MOST_REFERENCES: Final = 50
"""References that are read: a validation may follow as many for each value."""


class _Check(NamedTuple):
    """`is_whole`: no keyword of the schema is left unread, so that judging by all of them follows few references."""

    fits: Fits
    is_whole: bool


class _References:
    """Follows the references of one schema, as long as they are few: one that refers to itself has no end of them."""

    def __init__(self, follow: Callable[[str], Any]) -> None:
        self._follow, self._left = follow, MOST_REFERENCES

    def targets(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Yield what a schema refers to; None for what is not followed any more."""
        if "$ref" in schema:
            self._left -= 1
            yield self._follow(schema["$ref"]) if self._left >= 0 else None


def plain_fit(schema: Mapping[str, Any], follow: Callable[[str], Any] = lambda reference: None) -> Fits:
    """Return a function that says yes to no value but those that fit a sound schema; `follow` looks up references."""
    whole = {key: each for key, each in schema.items() if key != "$schema"}
    return _check(whole, 0, _is_shallow, _References(follow)).fits


def _check(schema: Any, depth: int, is_shallow: Fits, references: _References) -> _Check:
    """`is_shallow` judges what the schema does not look into."""
    if schema is True:
        return _Check(is_shallow, True)
    if not isinstance(schema, dict) or depth > MOST_NESTED or not schema.keys() <= READ:
        return _Check(_refuse, False)

    def inner(each: Any) -> _Check:
        return _check(each, depth + 1, is_shallow, references)

    def beside(each: Any) -> _Check:  # judges the same value, which this schema looks into
        return _check(each, depth + 1, _take, references)

    properties = {name: inner(each) for name, each in schema.get("properties", {}).items()}
    is_closed = schema.get("additionalProperties") is False
    other = None if is_closed else inner(schema.get("additionalProperties", True))
    item = inner(schema.get("items", True))
    branches = [beside(each) for each in schema.get("anyOf", ())]
    parts = [beside(each) for each in (*schema.get("allOf", ()), *references.targets(schema))]
    dependent = {name: beside(each) for name, each in schema.get("dependentSchemas", {}).items()}
    tests = {kind: [*_tests(schema, kind), *(each.fits for each in parts)] for kind in TYPES if _may_be(schema, kind)}
    if dict in tests:
        tests[dict] += _object_tests(properties, schema.get("required", ()), other)
        tests[dict] += [_if_there(name, each.fits) for name, each in dependent.items()]
    if list in tests and item.fits is not _take:
        tests[list].append(_is_shallow if item.fits is _is_shallow else lambda value: all(map(item.fits, value)))
    if branches:
        for each in tests.values():
            each.append(_any_of(branches))
    every = [*properties.values(), *branches, *parts, *dependent.values(), item, *([other] if other else [])]
    return _Check(_by_type(tests), all(each.is_whole for each in every))


def _by_type(tests: Mapping[type, Sequence[Fits]]) -> Fits:
    if not any(tests.values()):
        kinds = frozenset(tests)
        return lambda value: type(value) in kinds
    by_type = {kind: _all_of(each) for kind, each in tests.items()}
    return lambda value: by_type.get(type(value), _refuse)(value)


def _all_of(tests: Sequence[Fits]) -> Fits:
    if not tests:
        return _take
    if len(tests) == 1:
        return tests[0]

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - all() takes twice as long
            if not test(value):
                return False
        return True

    return fits


def _refuse(value: Any) -> bool:
    return False


def _take(value: Any) -> bool:
    return True


def _is_shallow(value: Any) -> bool:
    """Return whether few values lie within each other."""
    level = [value] if isinstance(value, CONTAINERS) else []
    for _ in range(MOST_WITHIN):
        if not level:
            return True
        parts = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for part in parts for each in part if isinstance(each, CONTAINERS)]
    return False


def _may_be(schema: Mapping[str, Any], kind: type) -> bool:
    """Return whether the schema allows values of this type."""
    allowed = schema.get("type", TYPES[kind])
    return any(name == allowed or (not isinstance(allowed, str) and name in allowed) for name in TYPES[kind])


def _tests(schema: Mapping[str, Any], kind: type) -> Iterator[Fits]:
    """Yield what a value of this type has to pass, without looking into it."""
    if "enum" in schema:
        yield _is_one_of(schema["enum"])
    if "const" in schema:
        yield _is_one_of([schema["const"]])
    if kind is str:
        yield from _bounds(schema, "minLength", "maxLength")
    elif kind is list:
        yield from _bounds(schema, "minItems", "maxItems")
    elif kind in (int, float):
        yield from (test(schema[key]) for key, test in _LIMITS.items() if key in schema)


_LIMITS: Final[Mapping[str, Callable[[Any], Fits]]] = {
    "minimum": lambda limit: lambda value: bool(value >= limit),
    "maximum": lambda limit: lambda value: bool(value <= limit),
    "exclusiveMinimum": lambda limit: lambda value: bool(value > limit),
    "exclusiveMaximum": lambda limit: lambda value: bool(value < limit),
}


def _bounds(schema: Mapping[str, Any], least: str, most: str) -> Iterator[Fits]:
    if least in schema or most in schema:
        low, high = schema.get(least, 0), schema.get(most, float("inf"))
        yield lambda value: bool(low <= len(value) <= high)


def _is_one_of(values: Sequence[Any]) -> Fits:
    """Texts and null alone are compared: 1 is 1.0, and true is not 1."""
    plain = frozenset(each for each in values if each is None or type(each) is str)
    return lambda value: (value is None or type(value) is str) and value in plain


def _object_tests(properties: Mapping[str, _Check], required: Sequence[str], other: _Check | None) -> Iterator[Fits]:
    """`other` judges the properties that the schema does not name; None refuses them."""
    if required:
        yield frozenset(required).issubset
    known = {name: each.fits for name, each in properties.items()}
    unknown = _refuse if other is None else other.fits

    def fits(value: Any) -> bool:
        for name, each in value.items():  # noqa: SIM110
            if not known.get(name, unknown)(each):
                return False
        return True

    if known or unknown is not _take:
        yield fits


def _if_there(name: str, fits: Fits) -> Fits:
    return lambda value: name not in value or fits(value)


def _any_of(branches: Sequence[_Check]) -> Fits:
    """Up to the first that fits; what comes behind one that is not read as a whole might never be looked at."""

    def fits(value: Any) -> bool:
        for branch in branches:
            if branch.fits(value):
                return True
            if not branch.is_whole:
                return False
        return False

    return fits
