"""make_texts(): texts that should fit a schema's format, pattern and length. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from re import _constants, _parser  # type: ignore[attr-defined]  # what `re` itself reads patterns by
from typing import Any, Final

FORMATS: Final = {
    "date": "2025-01-01",
    "date-time": "2025-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1H",
    "email": "ann@example.com",
    "idn-email": "ann@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "uri": "https://example.com/a",
    "uri-reference": "https://example.com/a",
    "iri": "https://example.com/a",
    "url": "https://example.com/a",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "/a",
    "regex": "a",
    "binary": "YQ==",
    "byte": "YQ==",
    "iban": "DE89370400440532013000",
    "path": "a.txt",
}
FAVOURITES: Final = ("a0A-_ ./:@", "b1B-_ ./:@", "z9Z/")
"""The characters that are tried first for a place that takes several, one row after another."""
LONGEST: Final = 10_000
REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
CATEGORIES: Final[dict[Any, Callable[[str], bool]]] = {
    _constants.CATEGORY_DIGIT: str.isdecimal,
    _constants.CATEGORY_SPACE: str.isspace,
    _constants.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
}
NEGATED: Final = {
    _constants.CATEGORY_NOT_DIGIT: _constants.CATEGORY_DIGIT,
    _constants.CATEGORY_NOT_SPACE: _constants.CATEGORY_SPACE,
    _constants.CATEGORY_NOT_WORD: _constants.CATEGORY_WORD,
}


class _NoText(Exception):
    """A pattern that no text is made from."""


def make_texts(schema: dict[str, Any]) -> Iterator[str]:
    """Yield texts for a schema of texts; with a pattern, of more and more repetitions."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" in schema:
        for favourites, repeats in product(FAVOURITES, (0, 1, 2, 4, least)):
            text = _Writer(favourites, min(repeats, LONGEST)).write(schema["pattern"])
            if text is not None and re.search(schema["pattern"], text) and len(text) >= least:
                yield text
        return
    if (known := FORMATS.get(schema.get("format", ""))) is not None:
        yield known
        return
    least = min(least, LONGEST)
    yield ("a" * max(1, least))[: max(least, most if most is not None and most < 1 else max(1, least))]
    yield from ("b" * max(1, least), "c" * max(1, least))
    if least < 2:
        yield from (f"text {number}"[:most] for number in range(1, 30))


class _Writer:
    """Writes a text that a pattern matches as a whole, with so many repetitions where it leaves them open."""

    def __init__(self, favourites: str, repeats: int) -> None:
        self._favourites, self._repeats = favourites, repeats
        self._groups: dict[int, str] = {}

    def write(self, pattern: str) -> str | None:
        try:
            return self._all(_parser.parse(pattern))
        except (re.error, _NoText, RecursionError):
            return None

    def _all(self, tree: Any) -> str:
        return "".join([self._part(operation, value) for operation, value in tree])

    def _part(self, operation: Any, value: Any) -> str:
        if operation is _constants.LITERAL:
            return chr(value)
        if operation in (_constants.ANY, _constants.NOT_LITERAL, _constants.IN):
            return self._character(operation, value)
        if operation in REPEATS:
            low, high, inner = value
            return "".join([self._all(inner) for _ in range(min(max(low, min(self._repeats, high)), LONGEST))])
        if operation is _constants.SUBPATTERN:
            return self._groups.setdefault(value[0], self._all(value[3])) if value[0] else self._all(value[3])
        if operation is _constants.BRANCH:
            return self._all(value[1][0])
        if operation is _constants.ATOMIC_GROUP:
            return self._all(value)
        if operation is _constants.GROUPREF:
            return self._groups.get(value, "")
        if operation in (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT):
            return ""  # the whole text is checked
        raise _NoText(operation)

    def _character(self, operation: Any, value: Any) -> str:
        """Return a character that stands at a place of a pattern."""
        if operation is _constants.ANY:
            return self._favourites[0]
        excluded = [(_constants.NEGATE, None), (_constants.LITERAL, value)]
        items: Sequence[Any] = excluded if operation is _constants.NOT_LITERAL else value
        candidates: Iterable[str] = (*self._favourites, *map(chr, range(33, 0x250)), *_named(items))
        for char in candidates:
            if _allows(items, char):
                return char
        raise _NoText(value)


def _named(items: Sequence[Any]) -> Iterator[str]:
    for operation, value in items:
        if operation is _constants.LITERAL:
            yield chr(value)
        elif operation is _constants.RANGE:
            yield chr(value[0])


def _allows(items: Sequence[Any], char: str) -> bool:
    """Return whether a character is in a class of a pattern."""
    found = any(_is_one_of(operation, value, char) for operation, value in items)
    return not found if items[0][0] is _constants.NEGATE else found


def _is_one_of(operation: Any, value: Any, char: str) -> bool:
    if operation is _constants.LITERAL:
        return bool(ord(char) == value)
    if operation is _constants.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    if operation is _constants.CATEGORY:
        base = NEGATED.get(value, value)
        return bool(CATEGORIES[base](char)) == (value in CATEGORIES)
    return False
