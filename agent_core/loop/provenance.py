"""Provenance: whether an argument's text stands, whole, in text that may be trusted. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from agent_core.effects import Json

_WORD = r"[\w@+\-\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_JOINED = _WORD.replace("@", ".@")
"""What may not stand beside an occurrence: letters, digits, marks on letters, and `_.@+-`."""

MOST_LEAVES = 500
"""More texts than this in one argument are not looked for one by one: the argument is refused."""


def untrusted(value: Any, schema: Any, texts: Iterable[str], pointer: str = "") -> str | None:
    """The pointer of the first leaf of `value` that no trusted text holds, or None when all are covered.

    A text must occur bounded; any other leaf passes only where its schema enumerates it.
    """
    folded = [fold(text) for text in texts]
    held: set[str] = set()
    for place, leaf, rule in _leaves(value, schema, pointer):
        if "enum" in rule or "const" in rule or (isinstance(leaf, str) and leaf in held):
            continue  # the author wrote every value that can stand here, or it was found before
        if not isinstance(leaf, str) or len(held) >= MOST_LEAVES:
            return place
        if not any(occurs(fold(leaf), text) for text in folded):
            return place
        held.add(leaf)
    return None


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys and numbers too, as it reads when it stands alone."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield key
                yield from texts_in(item)
        case list():
            for item in value:
                yield from texts_in(item)
        case int() | float() if not isinstance(value, bool):
            yield str(value)


def fold(text: str) -> str:
    """NFC and case folding, so that only the letters count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def occurs(needle: str, text: str) -> bool:
    """Whether `needle` stands in `text`, both folded, with no letter, digit or `_.@+-` on either side.

    A full stop that ends a sentence, so before white space or the end, does not count as joined on.
    """
    return bool(needle) and re.search(rf"(?<!{_JOINED}){re.escape(needle)}(?!{_WORD}|\.\S)", text) is not None


def _leaves(value: Any, schema: Any, pointer: str) -> Iterator[tuple[str, Any, Json]]:
    """Every leaf with its pointer and the part of the schema that speaks of it; keys the schema does not name too."""
    rule: Json = schema if isinstance(schema, dict) else {}
    match value:
        case dict():
            properties = rule.get("properties", {})
            for key, item in value.items():
                place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
                if key not in properties:
                    yield place, key, {}
                yield from _leaves(item, properties.get(key), place)
        case list():
            first, others = rule.get("prefixItems", []), rule.get("items")
            for index, item in enumerate(value):
                yield from _leaves(item, first[index] if index < len(first) else others, f"{pointer}/{index}")
        case _:
            yield pointer, value, rule
