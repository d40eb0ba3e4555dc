"""The keywords `unevaluatedProperties` and `unevaluatedItems`, in linear time. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from utools.schema.linear_pattern import linear
from utools.schema.validation_pass import current_pass, is_valid, not_allowed

if TYPE_CHECKING:
    from jsonschema import ValidationError

    Errors = Iterator[ValidationError]


def unevaluated_properties(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    if not isinstance(value, dict):
        return
    others = {keyword: each for keyword, each in schema.items() if keyword != "unevaluatedProperties"}
    evaluated = _evaluated(validator, value, others)
    unevaluated = (name for name in value if name not in evaluated)
    yield from not_allowed("Unevaluated", (name for name in unevaluated if not is_valid(validator, inner, value[name])))


def unevaluated_items(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    if not isinstance(value, list):
        return
    evaluated = _evaluated(validator, value, schema)
    if any(index not in evaluated for index in range(len(value))):
        yield ValidationError("Unevaluated items are not allowed")


def _evaluated(validator: Any, value: Any, schema: Any) -> set[Any]:
    """Return the names, or the indexes, within `value` that a schema which the value fits has something to say of."""
    if not isinstance(schema, dict):
        return set()
    found = _evaluated_names(validator, value, schema) if isinstance(value, dict) else set()
    found |= _evaluated_indexes(validator, value, schema) if isinstance(value, list) else set()
    for each in _fitting_branches(validator, value, schema):
        found |= _evaluated(validator, value, each)
    return found


def _evaluated_names(validator: Any, value: dict[str, Any], schema: Any) -> set[Any]:
    found: set[Any] = value.keys() & schema.get("properties", {}).keys()
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            found |= {name for name, each in value.items() if is_valid(validator, schema[keyword], each)}
    patterns = schema.get("patternProperties", ())
    return found | {name for name in value if any(linear(pattern).search(name) for pattern in patterns)}


def _evaluated_indexes(validator: Any, value: list[Any], schema: Any) -> set[Any]:
    if "items" in schema:
        return set(range(len(value)))
    found = set(range(len(schema.get("prefixItems", ()))))
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            found |= {index for index, each in enumerate(value) if is_valid(validator, schema[keyword], each)}
    return found


def _fitting_branches(validator: Any, value: Any, schema: Any) -> Iterator[Any]:
    """Yield the schemas that judge the same value together with `schema`, of those that need not hold the ones that
    do."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            current_pass.get().count_reference()
            yield current_pass.get().follow(schema[keyword])
    for keyword in ("allOf", "oneOf", "anyOf"):
        yield from (each for each in schema.get(keyword, ()) if is_valid(validator, each, value))
    if isinstance(value, dict):
        yield from (each for name, each in schema.get("dependentSchemas", {}).items() if name in value)
    if "if" in schema:
        fits = is_valid(validator, schema["if"], value)
        yield from (schema["if"], schema.get("then")) if fits else (schema.get("else"),)
