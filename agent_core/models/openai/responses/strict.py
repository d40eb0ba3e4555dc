"""Whether a function's parameters qualify for strict mode, in which OpenAI holds the model to them. Pure.

What qualifies: every object is closed and requires all its properties, the root is an object without alternatives, and
there is no keyword outside the part of JSON Schema that OpenAI's guide to structured outputs lists.
"""

from typing import Any, Final

KEYWORDS: Final = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"),
        *("description", "title", "pattern", "format", "multipleOf", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    }
)
FORMATS: Final = (None, "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
MAX_LEVELS: Final = 10


def qualifies(schema: Any) -> bool:
    """Return whether a function's parameters may be sent as strict."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    return _qualifies(schema, 0)


def _qualifies(schema: Any, level: int) -> bool:
    if not isinstance(schema, dict) or level > MAX_LEVELS or not schema.keys() <= KEYWORDS:
        return False
    if not all(_qualifies(each, level) for each in _values(schema.get("$defs", {}))):
        return False
    if "$ref" in schema:
        return schema.keys() == {"$ref"} and str(schema["$ref"]).startswith("#")
    if "anyOf" in schema:
        choices = schema["anyOf"]
        return isinstance(choices, list) and all(_qualifies(each, level + 1) for each in choices)
    types = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    if None in types or schema.get("format") not in FORMATS or "(?" in str(schema.get("pattern", "")):
        return False
    if "array" in types and not _qualifies(schema.get("items"), level + 1):
        return False
    return "object" not in types or _is_closed(schema, level)


def _is_closed(schema: dict[str, Any], level: int) -> bool:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list) or schema.get("additionalProperties", 1):
        return False
    return set(required) == properties.keys() and all(_qualifies(each, level + 1) for each in properties.values())


def _values(definitions: Any) -> list[Any]:
    return list(definitions.values()) if isinstance(definitions, dict) else [None]
