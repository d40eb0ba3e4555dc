"""How a value that a case expects fits one that a model sent or a tool gave, with tolerance. Pure.

Texts are compared without regard to case, white space and the commas in numbers; 1 and 1.0 are the same number,
and `true` is none.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from utools.lazy_pattern import lazy_compile

Scalar = str | int | float | bool
_DIGITS = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
NUMBER = lazy_compile(rf"(?:(?<![\w.])-)?{_DIGITS}")
"""A hyphen within a word is no sign: 10-12, A-17, 2026-03-01."""
SIGNED = lazy_compile(rf"-{_DIGITS}")
"""As cases were written before, for which it was one."""
GROUPED = lazy_compile(r"(?<=\d)[,，](?=\d{3}\b)")


class _Matcher(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


class AnyOf(_Matcher):
    """One of several values is right."""

    any: list[Scalar] = Field(min_length=1)


class Matches(_Matcher):
    """A text in which the pattern occurs, ignoring case."""

    matches: Pattern


class Equals(_Matcher):
    """A value as it is written: an object, which would else be read as a matcher."""

    equals: Any


def _kind(value: Any) -> str | None:
    """Return which of the forms a value has; None for an object that is no matcher."""
    if isinstance(value, _Matcher):
        return type(value).__name__
    if not isinstance(value, dict):
        return "value"
    return (
        {"any": "AnyOf", "matches": "Matches", "equals": "Equals"}.get(next(iter(value), ""))
        if len(value) == 1
        else None
    )


FORMS = "write a value, or {any: [VALUE, …]}, {matches: PATTERN}, {equals: OBJECT}"
Expected = Annotated[
    Annotated[AnyOf, Tag("AnyOf")]
    | Annotated[Matches, Tag("Matches")]
    | Annotated[Equals, Tag("Equals")]
    | Annotated[Any, Tag("value")],
    Discriminator(_kind, custom_error_type="matcher", custom_error_message=FORMS),
]
"""A value, or what a value has to be like."""


def is_expected(expected: Expected, value: Any) -> bool:
    """Return whether a value is as a case expects it."""
    match expected:
        case AnyOf():
            return any(is_same(each, value) for each in expected.any)
        case Matches():
            return isinstance(value, str) and re.search(expected.matches, value, re.IGNORECASE) is not None
        case Equals():
            return is_same(expected.equals, value)
        case _:
            return is_same(expected, value)


def is_same(expected: Any, value: Any) -> bool:
    """Return whether two JSON values are the same, texts with tolerance."""
    match expected:
        case str():
            return isinstance(value, str) and plain(expected) == plain(value)
        case list():
            return isinstance(value, list) and len(value) == len(expected) and all(map(is_same, expected, value))
        case dict():
            keys = isinstance(value, Mapping) and value.keys() == expected.keys()
            return keys and all(is_same(each, value[name]) for name, each in expected.items())
        case None | bool():
            return value is expected
        case _:
            return type(value) in (int, float) and bool(expected == value)


def fits(expected: Mapping[str, Expected], args: Any) -> bool:
    """Return whether arguments have all that is expected; others may be there too."""
    given = args if isinstance(args, Mapping) else {}
    return all(name in given and is_expected(value, given[name]) for name, value in expected.items())


def plain(text: str) -> str:
    """Return a text as it is compared."""
    return GROUPED.sub("", " ".join(text.replace("\N{MINUS SIGN}", "-").split()).casefold())


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text, in their order."""
    return [float(each) for each in NUMBER.findall(plain(text))]


def has_numbers(expected: Iterable[float], text: str) -> bool:
    """Return whether a text has all these numbers."""
    return set(expected) <= {*numbers_in(text), *map(float, SIGNED.findall(plain(text)))}


def spaced(output: str) -> str:
    """Return JSON with a space behind each comma, which else would be one of a grouped number; another text as it
    is."""
    try:
        return json.dumps(json.loads(output), ensure_ascii=False)
    except (ValueError, RecursionError):
        return output
