"""Provenance: whether an argument's text stands, whole, in text that may be trusted. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from agent_core.loop.effects import Json


def untrusted(value: Any, schema: Json, texts: Iterable[str], pointer: str = "") -> str | None:
    """The pointer of the first leaf of `value` that no trusted text holds, or None when all are covered.

    A text must occur bounded; any other leaf passes only where its schema enumerates it.
    """
    folded = [fold(text) for text in texts]
    for place, leaf, rule in _leaves(value, schema, pointer):
        if "enum" in rule or "const" in rule:
            continue  # the author wrote every value that can stand here
        if not isinstance(leaf, str) or not any(occurs(fold(leaf), text) for text in folded):
            return place
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
    start = text.find(needle) if needle else -1
    while start >= 0:
        end = start + len(needle)
        if not _joins(text[max(0, start - 1) : start]) and not _goes_on(text, end):
            return True
        start = text.find(needle, start + 1)
    return False


def _goes_on(text: str, end: int) -> bool:
    ends_sentence = text[end : end + 1] == "." and not text[end + 1 : end + 2].strip()
    return not ends_sentence and _joins(text[end : end + 1])


def _joins(char: str) -> bool:
    return char.isalnum() or (char != "" and (char in "_.@+-" or unicodedata.combining(char) > 0))


def _leaves(value: Any, schema: Json, pointer: str) -> Iterator[tuple[str, Any, Json]]:
    """Every leaf with its pointer and the part of the schema that speaks of it; keys the schema does not name too."""
    match value:
        case dict():
            properties = schema.get("properties", {})
            for key, item in value.items():
                place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
                if key not in properties:
                    yield place, key, {}
                yield from _leaves(item, properties.get(key, {}), place)
        case list():
            items = schema.get("items")
            for index, item in enumerate(value):
                yield from _leaves(item, items if isinstance(items, dict) else {}, f"{pointer}/{index}")
        case _:
            yield pointer, value, schema
