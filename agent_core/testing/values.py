"""make_values(): values that should fit a JSON Schema, the plainest first; who asks checks them. Pure.

Alternatives are tried one after the other, so that the first value which a compiled schema takes can be chosen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from math import ceil, floor
from operator import ge, gt, le, lt
from typing import Any, Final

from agent_core.testing.merged_schemas import Schema, spread
from agent_core.testing.texts import make_texts
from utools.schema.shape import resolver

DEEPEST: Final = 12
"""Levels of a value; a schema that refers to itself, and requires it, has none."""
MOST: Final = 40
"""Candidates of one part of a value."""
ANY_TYPE: Final = ("string", "integer", "boolean", "null", "object", "array")
Follow = Callable[[str], Any]
TYPE_OF_KEYWORD: Final = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "minProperties", "patternProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "contains", "uniqueItems"), "array"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}


def make_values(schema: Any) -> Iterator[Any]:
    """Yield candidates for a schema, without what it only allows: optional properties, further items."""
    root = schema if isinstance(schema, dict) else {}
    return _values(schema, resolver(root), 0)


def _values(schema: Any, follow: Follow, depth: int) -> Iterator[Any]:
    if schema is False or depth > DEEPEST:
        return iter(())
    flat = spread(schema if isinstance(schema, dict) else {}, follow, prefers_plain=depth > 2)
    return islice(chain.from_iterable(_of_flat(each, follow, depth) for each in flat), MOST)


def _of_flat(schema: Schema, follow: Follow, depth: int) -> Iterator[Any]:
    """Yield candidates for a schema without references and alternatives."""
    if "const" in schema:
        yield schema["const"]
        return
    if "enum" in schema:
        yield from schema["enum"]
        return
    if isinstance(schema.get("examples"), list):
        yield from schema["examples"]
    if "default" in schema:
        yield schema["default"]
    for kind in _types(schema):
        yield from _of_type(kind, schema, follow, depth)


def _types(schema: Schema) -> Sequence[str]:
    kinds = schema.get("type")
    if kinds is None:
        known = next((TYPE_OF_KEYWORD[key] for key in schema if key in TYPE_OF_KEYWORD), None)
        return ANY_TYPE if known is None else [known]
    return kinds if isinstance(kinds, list) else [kinds]


def _of_type(kind: str, schema: Schema, follow: Follow, depth: int) -> Iterator[Any]:
    match kind:
        case "object":
            yield from _objects(schema, follow, depth)
        case "array":
            yield from _arrays(schema, follow, depth)
        case "string":
            yield from make_texts(schema)
        case "integer" | "number":
            yield from _numbers(schema, is_whole=kind == "integer")
        case "boolean":
            yield from (False, True)
        case "null":
            yield None
        case _:
            return


# ── objects ──────────────────────────────────────────────────────────────────────────────────────


def _objects(schema: Schema, follow: Follow, depth: int) -> Iterator[dict[str, Any]]:
    """Yield objects with what is required; then with one part after another in its other forms."""
    names = _needed(schema, follow, depth)
    parts = {name: list(_values(_rule_of(name, schema), follow, depth + 1)) for name in names}
    if not all(parts.values()):
        return
    yield {name: values[0] for name, values in parts.items()}
    for name, values in parts.items():
        for value in values[1:]:
            yield {each: value if each == name else parts[each][0] for each in parts}


def _needed(schema: Schema, follow: Follow, depth: int) -> list[str]:
    """Return the names that an object must have: required ones, what depends on them, and as many as it needs."""
    names, depending = list(dict.fromkeys(schema.get("required", ()))), schema.get("dependentRequired", {})
    for name in names:  # grows while it is walked
        names += [each for each in depending.get(name, ()) if each not in names]
    more = chain(schema.get("properties", {}), _invented(schema, follow, depth))
    missing = schema.get("minProperties", 0) - len(names)
    return names + list(islice((each for each in more if each not in names), max(0, missing)))


def _invented(schema: Schema, follow: Follow, depth: int) -> Iterator[str]:
    """Yield names that no property has, as `propertyNames` and `patternProperties` want them."""
    rules = [schema["propertyNames"]] if isinstance(schema.get("propertyNames"), dict) else []
    rules += [{"type": "string", "pattern": each} for each in schema.get("patternProperties", {})]
    for rule in rules:
        yield from (each for each in _values({"type": "string", **rule}, follow, depth) if isinstance(each, str))
    if not rules:
        yield from (f"key{number}" for number in count(1))


def _rule_of(name: str, schema: Schema) -> Any:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if name in properties:
        return properties[name]
    patterns = schema.get("patternProperties")
    rule = next(iter(patterns.values())) if patterns else schema.get("additionalProperties", {})
    return {} if rule is False else rule


# ── arrays ───────────────────────────────────────────────────────────────────────────────────────


def _arrays(schema: Schema, follow: Follow, depth: int) -> Iterator[list[Any]]:
    """Yield the shortest arrays; then with their first item in its other forms."""
    first, wanted = schema.get("prefixItems", []), schema.get("minItems", 0)
    holds = [schema["contains"]] * max(1, schema.get("minContains", 1)) if "contains" in schema else []
    rest = [schema.get("items", {})] * max(0, wanted - len(first) - len(holds))
    rules = [*first[: max(wanted, len(first) if holds else 0)], *holds, *rest]
    found: list[Any] = []
    for rule in rules:
        values = list(_values(rule, follow, depth + 1))
        fresh = [each for each in values if each not in found] if schema.get("uniqueItems") else values
        if not fresh:
            return
        found.append(fresh[0])
    yield found
    if rules:
        yield from ([value, *found[1:]] for value in islice(_values(rules[0], follow, depth + 1), 1, None))


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def _numbers(schema: Schema, *, is_whole: bool) -> Iterator[float]:
    """Yield 0 where that is in its bounds, else numbers near them."""
    step = schema.get("multipleOf") or 1
    low = max((schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema), default=None)
    high = min((schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema), default=None)
    near: list[float] = [0, 1, -1]
    near += [ceil(low / step) + more for more in (0, 1)] if low is not None else []
    near += [floor(high / step) - less for less in (0, 1)] if high is not None else []
    found = [each * step for each in near]
    if low is not None and high is not None and not is_whole:
        found.append((low + high) / 2)
    yield from (each for each in dict.fromkeys(found) if _is_within(each, schema))


def _is_within(number: float, schema: Schema) -> bool:
    bounds = (("minimum", ge), ("exclusiveMinimum", gt), ("maximum", le), ("exclusiveMaximum", lt))
    return all(compare(number, schema[key]) for key, compare in bounds if key in schema)
