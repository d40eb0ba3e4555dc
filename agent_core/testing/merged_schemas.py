"""spread(): a schema as the plain ones that it may stand for, without references, parts and alternatives. Pure."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

from utools.schema.shape import REFERENCES

Schema = dict[str, Any]
Follow = Callable[[str], Any]
COMPOSED: Final = (*REFERENCES, "allOf", "anyOf", "oneOf", "if", "then", "else")
HIGHEST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
LOWEST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
ONE_INSIDE: Final = ("items", "additionalProperties", "propertyNames", "contains")
NESTED: Final = 20
"""References and parts within each other."""


def spread(schema: Schema, follow: Follow, *, prefers_plain: bool = False, depth: int = 0) -> Iterator[Schema]:
    """Yield what a schema comes to, for one choice of its alternatives after another.

    With `prefers_plain` alternatives that refer to others come last, so that a recursion ends.
    """
    if depth > NESTED:
        return
    own = {key: value for key, value in schema.items() if key not in COMPOSED}
    choices = [[follow(schema[key])] for key in REFERENCES if key in schema]
    choices += [[part] for part in schema.get("allOf", ())]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            choices.append(sorted(schema[key], key=_refers) if prefers_plain else schema[key])
    if "if" in schema:
        choices.append([{"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)])
    for chosen in product(*choices):
        parts = [each if isinstance(each, dict) else {} if each else None for each in chosen]
        if None in parts:
            continue
        known = [each for each in parts if each is not None]
        flat = [list(spread(each, follow, prefers_plain=prefers_plain, depth=depth + 1)) for each in known]
        for together in product(*flat):
            yield _merge(own, *together)


def _refers(schema: Any) -> bool:
    return isinstance(schema, dict) and any(key in schema for key in (*REFERENCES, "properties"))


def _merge(*schemas: Schema) -> Schema:
    merged: Schema = {}
    for schema in schemas:
        for key, value in schema.items():
            merged[key] = _join(key, merged[key], value) if key in merged else value
    return merged


def _join(key: str, one: Any, other: Any) -> Any:
    """Return what a keyword says of a value that two schemas judge."""
    match key:
        case "properties" | "patternProperties" | "dependentSchemas":
            both = {name: {"allOf": [one[name], other[name]]} for name in one.keys() & other.keys()}
            return {**one, **other, **both}
        case "required":
            return [*one, *other]
        case "dependentRequired":
            return {name: [*one.get(name, ()), *other.get(name, ())] for name in {**one, **other}}
        case "enum":
            return [each for each in one if each in other]
        case "type":
            return _common_types(one, other)
        case "pattern":
            return one if one == other else f"(?={_whole(one)}){_whole(other)}"
        case _ if key in HIGHEST:
            return max(one, other)
        case _ if key in LOWEST:
            return min(one, other)
        case _ if key in ONE_INSIDE:
            return {"allOf": [one, other]}
        case _:
            return other


def _whole(pattern: str) -> str:
    return f"(?:{pattern})"


def _common_types(one: Any, other: Any) -> Any:
    ones, others = ([each] if isinstance(each, str) else list(each) for each in (one, other))
    if "number" in ones and "integer" in others:
        ones = ["integer" if each == "number" else each for each in ones]
    if "number" in others and "integer" in ones:
        others = ["integer" if each == "number" else each for each in others]
    return [each for each in ones if each in others]
