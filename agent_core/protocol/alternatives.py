"""A tool's schema in the forms that constrained decoding and function calling take. Pure.

A grammar is made of each alternative alone, without the properties beside them; functions may have no alternatives at
the root of their parameters at all, and no array without its items. The tool's own schema decides what is legal,
whatever a model was shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import chain
from typing import Any

from agent_core.outputs import JsonValue
from utools.schema.shape import find_parts, resolver, walk

Schema = dict[str, Any]
ALTERNATIVES = ("anyOf", "oneOf")
MAX_REFERENCES = 16
NOT_IN_FUNCTIONS = (
    *ALTERNATIVES,
    "allOf",
    "not",
    "enum",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
)
"""Keywords that OpenAI or Anthropic refuse at the root of a function's parameters, and what goes with them."""
MOVED = ("properties", "required", "additionalProperties")
"""Keywords of the root that each alternative gets."""
BESIDE_A_REFERENCE = frozenset({"type", "title", "description", "$schema", "$id", "$comment", "$defs", "definitions"})
"""Keywords that say the same at the root as where its reference leads, or what a reader needs to follow another."""


def split_alternatives(schema: Schema) -> Schema:
    """Return the schema as a choice between whole objects, where its alternatives only say what each of them requires.

    A property is left out of an alternative where `dependentSchemas` forbids it beside what is required there.
    """
    keyword = next((each for each in ALTERNATIVES if _only_require(schema.get(each))), None)
    if keyword is None or "properties" not in schema:
        return schema
    forbidden = _find_forbidden(schema)
    gone = (keyword, *MOVED, *(["dependentSchemas"] if forbidden else []))
    rest = {name: value for name, value in schema.items() if name not in gone}
    return {"type": "object", **rest, "anyOf": [_whole_object(schema, each, forbidden) for each in schema[keyword]]}


def flatten_alternatives(schema: Schema) -> Schema:
    """Return the schema with the properties of all alternatives side by side; what some alternative requires is
    optional. A reference at the root is followed: functions list their parameters there."""
    schema = _follow_root(schema)
    if not any(keyword in schema for keyword in NOT_IN_FUNCTIONS):
        return schema
    follow = resolver(schema)
    parts = list(find_parts(schema, follow))
    choices = [
        [list(find_parts(each, follow)) for each in part[key]] for part in parts for key in ALTERNATIVES if key in part
    ]
    rules: dict[str, list[Any]] = {}
    for each in (schema, *chain.from_iterable(chain.from_iterable(choices)), *parts[1:]):
        for name, rule in each.get("properties", {}).items():
            if rule not in rules.setdefault(name, []):
                rules[name].append(rule)
    required = _find_required(parts)
    for several in choices:
        required |= set[str].intersection(*map(_find_required, several)) if several else set()
    flat = {name: value for name, value in schema.items() if name not in NOT_IN_FUNCTIONS}
    flat["properties"] = {name: many[0] if len(many) == 1 else {"anyOf": many} for name, many in rules.items()}
    return {**flat, "required": [name for name in rules if name in required]}


def _follow_root(schema: Schema) -> Schema:
    follow = resolver(schema)
    for _ in range(MAX_REFERENCES):
        if "$ref" not in schema or not isinstance(target := follow(schema["$ref"]), dict):
            break
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        if rest.keys() & target.keys() <= BESIDE_A_REFERENCE:
            schema = {**target, **rest}
        else:
            schema = {**rest, "allOf": [*rest.get("allOf", ()), target]}
    return schema


def name_items(schema: Schema) -> Schema:
    """Return the schema with `items` in each array: OpenAI refuses all functions for one array that has none."""
    if not any(_lacks_items(each) for _, each in walk(schema)):
        return schema
    named: Schema = deepcopy(schema)
    for _, each in walk(named):
        if _lacks_items(each):
            each["items"] = {}
    return named


def _lacks_items(schema: Schema) -> bool:
    kind = schema.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return is_array and not isinstance(schema.get("items"), dict)


def _only_require(alternatives: Any) -> bool:
    return bool(alternatives) and all(isinstance(each, dict) and each.keys() == {"required"} for each in alternatives)


def _find_forbidden(schema: Schema) -> set[tuple[str, str]]:
    """Return the pairs of properties that may not be given together; empty if `dependentSchemas` say anything else."""
    dependent: Mapping[str, Any] = schema.get("dependentSchemas", {})
    pairs = set(chain.from_iterable(_pairs(name, each) for name, each in dependent.items()))
    plain = all(isinstance(each, dict) and each.keys() == {"properties"} for each in dependent.values())
    return pairs if plain and len(pairs) == sum(len(each["properties"]) for each in dependent.values()) else set()


def _pairs(name: str, dependent: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(dependent, dict):
        properties = dependent.get("properties", {}).items()
        yield from ((name, other) for other, rule in properties if rule is False or rule == {"not": {}})


def _whole_object(schema: Schema, alternative: Schema, forbidden: set[tuple[str, str]]) -> Schema:
    required = [*schema.get("required", ()), *alternative["required"]]
    properties = {
        name: rule
        for name, rule in schema["properties"].items()
        if not any({(name, each), (each, name)} & forbidden for each in required)
    }
    named = [name for name in dict.fromkeys(required) if name in properties]  # an author's own are not shown
    closed = {"additionalProperties": schema["additionalProperties"]} if "additionalProperties" in schema else {}
    return {"type": "object", "properties": properties, "required": named, **closed}


def _find_required(parts: Iterable[Schema]) -> set[str]:
    return set(chain.from_iterable(each.get("required", ()) for each in parts))
