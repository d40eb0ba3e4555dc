"""A JSON Schema in Gemini's own dialect: types in capitals, nullable, no references. Pure.

The dialect is a part of OpenAPI 3.0. What it cannot say is left out, so that it allows more than the schema does; the
tool's own schema decides what is legal.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent_core.models.endpoint.answer import as_json
from agent_core.outputs import Json
from utools.schema.shape import resolver

TYPES = {name: name.upper() for name in ("string", "number", "integer", "boolean", "array", "object", "null")}
TEXTS = ("title", "description", "pattern")
COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
BOUNDS = ("minimum", "maximum")
FORMATS = {
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
    "STRING": ("date-time", "date", "email", "byte", "password"),
}
MAX_SCHEMAS = 2_000
"""Schemas of one whole, so that references do not make it grow without end."""
_TYPE_BY_KEYWORD = {
    "properties": "OBJECT",
    "items": "ARRAY",
    "prefixItems": "ARRAY",
    "pattern": "STRING",
    "minLength": "STRING",
    "maxLength": "STRING",
    "minimum": "NUMBER",
    "maximum": "NUMBER",
}
"""The type of a schema that names none."""
_ANYTHING = ("STRING", "NUMBER", "BOOLEAN")
_LISTS, _MAPS = ("anyOf", "oneOf", "allOf", "prefixItems"), ("properties", "$defs", "definitions")
_ELSEWHERE = ("anyOf", "oneOf", "$ref")
"""Keywords by which an object's properties are named in another place."""


def to_dialect(schema: Any) -> Json:
    """Return a JSON Schema in the dialect, its local references replaced by what they stand for."""
    return _Conversion(schema if isinstance(schema, dict) else {}).convert(schema, ())


def has_open_object(schema: Any) -> bool:
    """Return whether a schema has an object whose properties it does not name: held to it, Gemini always writes {}."""
    if not isinstance(schema, dict):
        return False
    is_named = bool(schema.get("properties")) or any(name in schema for name in _ELSEWHERE)
    is_open = schema.get("additionalProperties") is not False and not is_named
    return (schema.get("type") == "object" and is_open) or any(map(has_open_object, _find_inner(schema)))


def _find_inner(schema: Json) -> Iterator[Any]:
    yield from (schema.get("items"), schema.get("additionalProperties"))
    for name in _LISTS:
        yield from each if isinstance(each := schema.get(name), list) else ()
    for name in _MAPS:
        yield from each.values() if isinstance(each := schema.get(name), dict) else ()


class _Conversion:
    """The conversion of one whole schema."""

    def __init__(self, root: Json) -> None:
        self._follow = resolver(root)
        self._left = MAX_SCHEMAS

    def convert(self, schema: Any, followed: tuple[str, ...]) -> Json:
        """Return a schema in the dialect. `followed` are the references on the way to it: one that comes again is an
        object without properties."""
        self._left -= 1
        if self._left < 0:
            return {"type": "OBJECT"}
        if not isinstance(schema, dict):
            return _unite([{"type": name} for name in _ANYTHING], {})
        if isinstance(reference := schema.get("$ref"), str):
            return self._convert_target(reference, schema, followed)
        if isinstance(schema.get("allOf"), list):
            return self.convert(_merge_all(schema), followed)
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(alternatives, list) and not schema.get("properties"):
            return _unite([self.convert(each, followed) for each in alternatives], schema)
        types = _read_types(schema)
        return _unite([self._convert_type(each, schema, followed) for each in types], {})

    def _convert_target(self, reference: str, schema: Json, followed: tuple[str, ...]) -> Json:
        if reference in followed:
            return {"type": "OBJECT"}
        target = self._follow(reference)
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        return self.convert({**target, **rest} if isinstance(target, dict) else rest, (*followed, reference))

    def _convert_type(self, kind: str, schema: Json, followed: tuple[str, ...]) -> Json:
        """Return the schema as one of a single type."""
        made: Json = {"type": kind}
        made |= {name: schema[name] for name in TEXTS if isinstance(schema.get(name), str)}
        made |= {name: schema[name] for name in COUNTS if type(schema.get(name)) is int}
        made |= {name: schema[name] for name in BOUNDS if type(schema.get(name)) in (int, float)}
        if (form := schema.get("format")) in FORMATS.get(kind, ()):
            made["format"] = form
        made |= _write_choices(kind, schema)
        if kind == "OBJECT" and isinstance(properties := schema.get("properties"), dict) and properties:
            made["properties"] = {name: self.convert(each, followed) for name, each in properties.items()}
            required = schema.get("required")
            named = [name for name in required if name in properties] if isinstance(required, list) else []
            made |= {"required": named} if named else {}
        if kind == "ARRAY":
            places = schema.get("prefixItems")
            items = places if isinstance(places, list) and places else [schema.get("items")]
            made["items"] = _unite([self.convert(each, followed) for each in items], {})
        return made


def _unite(alternatives: Sequence[Json], schema: Json) -> Json:
    """Return the alternatives as one schema: null as `nullable`, and nothing beside `anyOf`, as Gemini wants it."""
    several: list[Json] = []
    for each in alternatives:
        several += [one for one in each.get("anyOf", [each]) if one not in several]
    kinds = [each for each in several if each.get("type") != "NULL"]
    if not kinds:
        return {"type": "NULL"}
    about = {"description": schema["description"]} if isinstance(schema.get("description"), str) else {}
    nullable = {"nullable": True} if len(kinds) < len(several) else {}
    united = [{**about, **each, **nullable} for each in kinds]
    return united[0] if len(united) == 1 else {"anyOf": united}


def _read_types(schema: Json) -> list[str]:
    given = schema.get("type")
    types = [TYPES[each] for each in (given if isinstance(given, list) else [given]) if each in TYPES]
    if types:
        return types
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    if values:
        return list(dict.fromkeys(map(_type_of, values)))
    return [kind for name, kind in _TYPE_BY_KEYWORD.items() if name in schema][:1] or list(_ANYTHING)


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "BOOLEAN"
        case int() | float():
            return "NUMBER"
        case str():
            return "STRING"
        case None:
            return "NULL"
        case _:
            return "ARRAY" if isinstance(value, list) else "OBJECT"


def _write_choices(kind: str, schema: Json) -> Json:
    """Return the values that a schema allows: an enum of texts, for any others words in the description."""
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    own = [value for value in values if _type_of(value) == ("NUMBER" if kind == "INTEGER" else kind)]
    if not own:
        return {}
    if kind == "STRING" and all(own):
        return {"enum": own}
    before = f"{schema['description']} " if isinstance(schema.get("description"), str) else ""
    return {"description": f"{before}(one of {', '.join(map(as_json, own))})"}


def _merge_all(schema: Json) -> Json:
    """Return a schema with its `allOf` merged into it: the properties of all, and what any of them requires."""
    merged: Json = {}
    for each in (*schema["allOf"], {name: value for name, value in schema.items() if name != "allOf"}):
        if not isinstance(each, dict):
            continue
        if isinstance(each.get("allOf"), list):
            each = _merge_all(each)
        properties = {**merged.get("properties", {}), **each.get("properties", {})}
        required = list(dict.fromkeys([*merged.get("required", ()), *each.get("required", ())]))
        merged |= each
        merged |= ({"properties": properties} if properties else {}) | ({"required": required} if required else {})
    return merged
