"""A quick yes: that a schema is valid, by keywords whose meaning leaves no doubt. Pure.

A no says nothing: jsonschema decides then, which takes some milliseconds for a tool, and more to load.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from utools.lazy_pattern import lazy_compile
from utools.schema.plain_fit import MOST_NESTED

Holds = Callable[[Any, int], bool]

TYPES: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
PLAIN_REFERENCE: Final = lazy_compile(r"#(/[A-Za-z0-9_$.-]+)*\Z")
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
OWN: Final = "x-"
"""How keywords begin that are no business of JSON Schema, which allows any value for them."""


def is_plainly_sound(schema: Any) -> bool:
    """Return whether a schema is valid beyond doubt."""
    return _is_schema(schema, 0)


def plain_pointer(reference: str) -> list[str] | None:
    """Return the names that a local reference leads through, if it needs no decoding."""
    return reference.split("/")[1:] if PLAIN_REFERENCE.match(reference) else None


def _is_schema(schema: Any, depth: int) -> bool:
    if type(schema) is bool:
        return True
    if type(schema) is not dict or depth > MOST_NESTED:
        return False
    return all(
        KEYWORDS[key](value, depth + 1) if key in KEYWORDS else type(key) is str and key.startswith(OWN)
        for key, value in schema.items()
    )


def _is_map(value: Any, depth: int) -> bool:
    return type(value) is dict and all(type(name) is str and _is_schema(each, depth) for name, each in value.items())


def _is_some(value: Any, depth: int) -> bool:
    return type(value) is list and len(value) > 0 and all(_is_schema(each, depth) for each in value)


def _is_count(value: Any, depth: int) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any, depth: int) -> bool:
    return type(value) in (int, float)


def _is_text(value: Any, depth: int) -> bool:
    return type(value) is str


def _is_flag(value: Any, depth: int) -> bool:
    return type(value) is bool


def _is_any(value: Any, depth: int) -> bool:
    return True


def _is_list(value: Any, depth: int) -> bool:
    return type(value) is list


def _are_names(value: Any, depth: int) -> bool:
    return type(value) is list and all(type(each) is str for each in value) and len({*value}) == len(value)


def _is_type(value: Any, depth: int) -> bool:
    if type(value) is str:
        return value in TYPES
    return _are_names(value, depth) and len(value) > 0 and TYPES.issuperset(value)


def _is_pattern(value: Any, depth: int) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError, RecursionError, OverflowError):
        return False
    return type(value) is str


def _is_reference(value: Any, depth: int) -> bool:
    return type(value) is str and plain_pointer(value) is not None


def _is_dialect(value: Any, depth: int) -> bool:
    return type(value) is str and value == DIALECT


KEYWORDS: Final[Mapping[str, Holds]] = {
    **dict.fromkeys(("title", "description", "$comment", "format"), _is_text),
    **dict.fromkeys(("default", "const"), _is_any),
    **dict.fromkeys(("enum", "examples"), _is_list),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly", "uniqueItems"), _is_flag),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("properties", "$defs", "definitions", "dependentSchemas"), _is_map),
    **dict.fromkeys(("anyOf", "allOf", "oneOf", "prefixItems"), _is_some),
    **dict.fromkeys(("items", "additionalProperties", "propertyNames", "contains"), _is_schema),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems", "not", "if", "then", "else"), _is_schema),
    "required": _are_names,
    "type": _is_type,
    "pattern": _is_pattern,
    "$ref": _is_reference,
    "$schema": _is_dialect,
}
