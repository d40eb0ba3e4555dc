"""What lies at a path in the values that fit a schema, as far as the schema says. Pure.

What a schema leaves open is possible: only what no value that fits can have is absent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utools.lazy_pattern import lazy_compile
from utools.schema.faults import hint
from utools.schema.shape import resolver

INDEX = lazy_compile(r"0|[1-9][0-9]{0,17}")
UNREAD = ("allOf", "if", "then", "else", "not", "dependentSchemas", "unevaluatedProperties", "$dynamicRef")
"""Keywords from which it cannot be read off what one property may be; with them, anything is possible."""
SAY_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$defs", "definitions", "$schema"}
)
"""Keywords that may stand beside a reference or alternatives without changing the value."""
FOLLOWED = 64
"""References and lists of alternatives that are followed for one value."""
KINDS = {
    "object": "an object",
    "array": "a list, counted from 0",
    "string": "a text",
    "integer": "a number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class _Fits:
    """The values of known types that fit a schema; `follow` looks up its references."""

    schema: Mapping[str, Any]
    follow: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class _ListOf:
    """Lists of such items."""

    item: "Shape"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value may be: one of these alternatives, each a schema, a list, or the properties of an object; None:
    anything."""

    alternatives: "tuple[_Fits | _ListOf | Mapping[str, Shape] | None, ...]"

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of the value."""
        return None in self.alternatives

    @property
    def is_empty(self) -> bool:
        """Whether there can be no such value."""
        return not self.alternatives

    def at(self, part: str) -> "Shape":
        """Return what the value has under a key, or at an index; empty when it can have nothing there."""
        return _shape_of_each(inner for each in self.alternatives for inner in _step(each, part))

    def items(self) -> "Shape":
        """Return what the items of the value may be; empty when it is no list."""
        return _shape_of_each(inner for each in self.alternatives for inner in _items(each))

    def keys(self) -> list[str]:
        """Return the names that are known of what the value has, if it is an object."""
        return list(dict.fromkeys(name for each in self.alternatives for name in _names(each)))

    def always_has(self, key: str) -> bool:
        """Return whether each value that fits is an object with this key."""
        return not self.is_empty and all(key in _required(each) for each in self.alternatives)

    def kinds(self) -> list[str]:
        """Return the JSON types that the value may have; none where nothing is known of it."""
        found = [kind for each in self.alternatives for kind in _kinds(each)]
        return [] if self.is_open else list(dict.fromkeys(found))

    def describe(self, missing: str = "") -> str:
        """Describe a value without the missing key: a near name, the names of an object, or the value's kind."""
        if names := sorted({name for each in self.alternatives for name in _names(each)}):
            return f"; {hint(missing, names)}"
        fits = [each.schema for each in self.alternatives if isinstance(each, _Fits)]
        kinds = dict.fromkeys(KINDS[kind] for schema in fits for kind in _types(schema))
        kinds |= dict.fromkeys(KINDS["array"] for each in self.alternatives if isinstance(each, _ListOf))
        return f": it is {' or '.join(kinds)}" if kinds else "; it is empty"

    def __or__(self, other: "Shape") -> "Shape":
        return _shape_of_each((*self.alternatives, *other.alternatives))


ANYTHING = Shape((None,))


def _shape_of_each(alternatives: Iterable[Any]) -> Shape:
    """Return the shape of these alternatives, each once: a recursive schema leads to the same ones again."""
    return Shape(tuple({id(_written(each)): each for each in alternatives}.values()))


def _written(alternative: _Fits | _ListOf | Mapping[str, Shape] | None) -> Any:
    return alternative.schema if isinstance(alternative, _Fits) else alternative


def shape_of(schema: Any) -> Shape:
    """Return the shape of the values that fit a schema."""
    follow = resolver(schema) if isinstance(schema, dict) else _follow_nothing
    return _shape_of_each(_spell_out(schema, follow, set()))


def record(properties: Mapping[str, Shape]) -> Shape:
    """Return the shape of an object that has no other properties."""
    return Shape((properties,))


def list_of(item: Shape) -> Shape:
    """Return the shape of a list of such items."""
    return Shape((_ListOf(item),))


def _follow_nothing(reference: str) -> Any:
    return None


def _spell_out(schema: Any, follow: Callable[[str], Any], entered: set[int]) -> Iterator[_Fits | None]:
    """Yield the alternatives of a schema. One that is `entered` already, by its id, may lead to itself: it is left
    open."""
    if schema is False:
        return
    if not isinstance(schema, dict) or any(key in schema for key in UNREAD):
        yield None
        return
    branching = [key for key in ("$ref", "anyOf", "oneOf") if key in schema]
    is_followed = id(schema) not in entered and len(entered) < FOLLOWED
    if not branching:
        yield _Fits(schema, follow) if _types(schema) else None
    elif not is_followed or len(branching) > 1 or schema.keys() - SAY_NOTHING - {*branching}:
        yield None
    else:
        entered.add(id(schema))
        (key,) = branching
        for each in [follow(schema[key])] if key == "$ref" else schema[key]:
            yield from _spell_out(each, follow, entered)


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    """Return the types that a value may have; none when the schema does not say."""
    if "type" in schema:
        return [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    return list(dict.fromkeys(map(type_of, values)))


def type_of(value: Any) -> str:
    """Return the JSON type of a value; of an integer "number" as well."""
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"


def _names(alternative: _Fits | _ListOf | Mapping[str, Shape] | None) -> Iterator[str]:
    match alternative:
        case _Fits(schema) if "object" in _types(schema):
            yield from schema.get("properties", ())
        case Mapping():
            yield from alternative
        case _:
            pass


def _required(alternative: _Fits | _ListOf | Mapping[str, Shape] | None) -> Iterable[str]:
    """Return the keys that all objects among the values have; none where there are others."""
    match alternative:
        case _Fits(schema) if list(_types(schema)) == ["object"]:
            required: Iterable[str] = schema.get("required", ())
            return required
        case Mapping():
            return alternative
        case _:
            return ()


def _kinds(alternative: _Fits | _ListOf | Mapping[str, Shape] | None) -> Iterable[str]:
    match alternative:
        case None:
            return ()
        case _Fits(schema):
            return _types(schema)
        case _ListOf():
            return ("array",)
        case _:
            return ("object",)


def _step(alternative: _Fits | _ListOf | Mapping[str, Shape] | None, part: str) -> Iterator[Any]:
    match alternative:
        case None:
            yield None
        case _Fits(schema, follow):
            types = _types(schema)
            if "object" in types:
                yield from _spell_out(_property(schema, part), follow, set())
            if "array" in types and INDEX.fullmatch(part):
                first, index = schema.get("prefixItems", ()), int(part)
                yield from _spell_out(first[index] if index < len(first) else schema.get("items"), follow, set())
        case _ListOf(item):
            yield from item.alternatives if INDEX.fullmatch(part) else ()
        case _ if part in alternative:
            yield from alternative[part].alternatives
        case _:
            pass


def _property(schema: Mapping[str, Any], name: str) -> Any:
    """Return the schema of a property; None for one of which nothing is known."""
    if name in (named := schema.get("properties", {})):
        return named[name]
    if schema.get("patternProperties"):  # whether a pattern fits is left to the validator
        return None
    return schema.get("additionalProperties")


def _items(alternative: _Fits | _ListOf | Mapping[str, Shape] | None) -> Iterator[Any]:
    match alternative:
        case None:
            yield None
        case _Fits(schema, follow) if "array" in _types(schema):
            yield from _spell_out(None if "prefixItems" in schema else schema.get("items"), follow, set())
        case _ListOf(item):
            yield from item.alternatives
        case _:
            pass
