"""The values in a call's arguments, each with what the tool's schema says of it. Pure."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from agent_core.outputs import Json
from utools.schema.pointer import escape, value_at

MOST_NESTED = 8
"""How many references and alternatives are followed, one within the other."""
MOST_PLACES = 256
"""Tools whose arguments are kept as read."""
MOST_BELOW = 256
"""Properties of a place that are kept as read: a model may send any number of others."""
ALTERNATIVES = ("anyOf", "oneOf", "allOf")


class Leaf(NamedTuple):
    """One value: where it is, the pointer to the argument that it is in, the name of what it is the value of, what a
    schema calls its format, whether the author wrote it."""

    pointer: str
    argument: str
    name: str
    value: Any
    format: str | None
    is_authors: bool


class Place:
    """What the tool's schema, and the author's narrowing, may say of one value; each place below is read once.

    `names` are the properties that the schema names, `format` is the first that it gives. Behind the `firsts` items of
    a list all are alike.
    """

    __slots__ = ("_below", "_narrowing", "_own", "_roots", "_takes_null", "_written", "firsts", "format", "names")

    def __init__(self, own: Sequence[Json], narrowing: Sequence[Json], roots: tuple[Json, Json]) -> None:
        self._own, self._narrowing, self._roots = own, narrowing, roots
        self._below: dict[str | int, Place] = {}
        both = (*own, *narrowing)
        self.names = frozenset(name for part in own for name in part.get("properties", {}))
        self.format = next((part["format"] for part in own if isinstance(part.get("format"), str)), None)
        self._written = [value for part in both for value in _written(part)]
        self._takes_null = any(part.get("type") == "null" or "null" in part.get("type", ()) for part in both)
        self.firsts = max((len(part.get("prefixItems", ())) for part in both), default=0)

    @classmethod
    def of_arguments(cls, schema: Json, narrowing: Json | None) -> "Place":
        """That of all arguments of a tool; it is made once for many runs."""
        return _place_of_arguments(orjson.dumps(schema), orjson.dumps(narrowing or {}))

    def below(self, key: str | int) -> "Place":
        """That of a property, or of an item of a list."""
        found = self._below.get(key)
        if found is None:
            own, narrowing = (
                [below for part in parts for below in _parts(_part_at(part, key), root)]
                for parts, root in zip((self._own, self._narrowing), self._roots, strict=True)
            )
            found = Place(own, narrowing, self._roots)
            if len(self._below) < MOST_BELOW:
                self._below[key] = found
        return found

    def is_authors(self, value: Any) -> bool:
        """Return whether the author wrote the value: as one of a few, as the default, or as null."""
        if value is None and self._takes_null:
            return True
        written = self._written
        return bool(written) and any(type(each) is type(value) and each == value for each in written)


@lru_cache(MOST_PLACES)
def _place_of_arguments(schema: bytes, narrowing: bytes) -> Place:
    own, narrow = orjson.loads(schema), orjson.loads(narrowing)
    return Place(_parts(own, own), _parts(narrow, narrow), (own, narrow))


def leaves_of_arguments(args: Json, place: Place) -> list[Leaf]:
    """Return every text, number, flag and null, and each key that no schema names."""
    found: list[Leaf] = []
    for name, value in args.items():
        pointer = f"/{escape(name)}"
        if name not in place.names:
            found.append(Leaf(pointer, pointer, name, name, None, False))
        _add_leaves(found, value, place.below(name), pointer, pointer, name)
    return found


def _add_leaves(found: list[Leaf], value: Any, place: Place, pointer: str, argument: str, name: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            below = f"{pointer}/{escape(key)}"
            if key not in place.names:
                found.append(Leaf(below, argument, key, key, None, False))
            _add_leaves(found, item, place.below(key), below, argument, key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _add_leaves(found, item, place.below(min(index, place.firsts)), f"{pointer}/{index}", argument, name)
    else:
        found.append(Leaf(pointer, argument, name, value, place.format, place.is_authors(value)))


def _part_at(part: Json, key: str | int) -> Any:
    """Return what a schema says of a property, or of an item of a list."""
    if isinstance(key, str):
        return part.get("properties", {}).get(key)
    first = part.get("prefixItems", ())
    return first[key] if key < len(first) else part.get("items")


def _parts(part: Any, root: Json, depth: int = 0) -> list[Json]:
    """Return a part of a schema, what it refers to, and its alternatives, of which any may be the one that a value
    fits."""
    if not isinstance(part, dict) or depth > MOST_NESTED:
        return []
    reference = part.get("$ref")
    inner = [branch for key in ALTERNATIVES for branch in part.get(key, ())]
    if isinstance(reference, str) and reference.startswith("#"):
        inner.append(_target(reference[1:], root))
    return [part, *(below for each in inner for below in _parts(each, root, depth + 1))]


def _target(pointer: str, root: Json) -> Any:
    try:
        return value_at(root, pointer)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _written(part: Json) -> Iterator[Any]:
    """Yield the values that the author wrote into a part of a schema."""
    yield from part.get("enum", ())
    yield from (part[key] for key in ("const", "default") if key in part)
