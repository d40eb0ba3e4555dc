"""Keywords with jsonschema's verdicts, in bounded time and memory: a model's reply is judged on the event loop. Pure.

Each was measured alone with a reply of 1 MiB, the most that is read. `uniqueItems` and `unevaluated…` are quadratic in
jsonschema (minutes). `anyOf` and `oneOf` keep every error of every branch (870 MB and 7 s for two branches).
`additionalProperties` finds errors in the order of a set, which another process does not repeat. Some patterns keep
Python's `re` for ever. `properties`, `items` and `type` make a validator anew for each value; without that, ordinary
arguments are judged four times as fast.

The verdict of `multipleOf` alone is another one: `multiple.py` says which.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from utools.schema.linear_pattern import linear
from utools.schema.plain_fit import TYPES
from utools.schema.unevaluated import unevaluated_items, unevaluated_properties
from utools.schema.validation_pass import MOST, current_pass, not_allowed

if TYPE_CHECKING:
    from jsonschema import ValidationError

    Errors = Iterator[ValidationError]

Keyword = Callable[..., Any]


def bounded_keywords() -> dict[str, Keyword]:
    """Return what stands in for jsonschema's own keywords."""
    from jsonschema import Draft202012Validator

    usual = Draft202012Validator.VALIDATORS
    return {
        "$ref": _counting(usual["$ref"]),
        "$dynamicRef": _counting(usual["$dynamicRef"]),
        "type": _type,
        "properties": _properties,
        "items": _items,
        "uniqueItems": _unique_items,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "anyOf": _any_of,
        "oneOf": _one_of,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": unevaluated_properties,
        "unevaluatedItems": unevaluated_items,
    }


def _counting(keyword: Keyword) -> Keyword:
    """Return the keyword, which ends the validation when it has been used too often."""

    def check(validator: Any, target: Any, value: Any, schema: Any) -> Any:
        current_pass.get().count_reference()
        return keyword(validator, target, value, schema)

    return check


def _type(validator: Any, types: Any, value: Any, schema: Any) -> "Iterable[ValidationError]":
    if types in TYPES.get(type(value), ()):
        return ()
    from jsonschema import Draft202012Validator

    errors: Iterable[ValidationError] = Draft202012Validator.VALIDATORS["type"](validator, types, value, schema)
    return errors


def _properties(validator: Any, properties: Any, value: Any, _: Any) -> "Errors":
    if not isinstance(value, dict):
        return
    validator_of = current_pass.get().validator_of
    for name, inner in properties.items():
        if name in value:
            for error in validator_of(validator, inner).iter_errors(value[name]):
                error.path.appendleft(name)
                error.schema_path.appendleft(name)
                yield error


def _items(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    prefix = len(schema.get("prefixItems", []))
    if not isinstance(value, list) or len(value) <= prefix:
        return
    if inner is False:
        yield ValidationError(f"has more than {prefix} items")
        return
    item_validator = current_pass.get().validator_of(validator, inner)
    for index in range(prefix, len(value)):
        for error in item_validator.iter_errors(value[index]):
            error.path.appendleft(index)
            yield error


def _unique_items(_: Any, wanted: bool, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    if wanted and isinstance(value, list) and len(set(map(_canonical, value))) < len(value):
        yield ValidationError("has non-unique elements")


def _canonical(value: Any) -> str:
    """Return a text that two JSON values share exactly when JSON Schema calls them equal: 1 is 1.0, and true is not
    1."""
    match value:
        case bool() | None | str():
            return json.dumps(value)
        case float() if not value.is_integer():
            return repr(value)
        case int() | float():
            return hex(int(value))  # a set of numbers could be made to collide, a set of texts cannot
        case list():
            return f"[{','.join(map(_canonical, value))}]"
        case dict():
            return f"{{{','.join(sorted(f'{json.dumps(name)}:{_canonical(each)}' for name, each in value.items()))}}}"
        case _:
            return repr(value)


def _pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    if isinstance(value, str) and not linear(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> "Errors":
    if not isinstance(value, dict):
        return
    for pattern, inner in patterns.items():
        for name in filter(linear(pattern).search, value):
            yield from validator.descend(value[name], inner, path=name, schema_path=pattern)


def _any_of(validator: Any, branches: Any, value: Any, schema: Any) -> "Errors":
    fitting, error = _judge_branches(validator, branches, value, enough=1)
    if not fitting:
        yield error


def _one_of(validator: Any, branches: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    fitting, error = _judge_branches(validator, branches, value, enough=len(branches))
    if not fitting:
        yield error
    elif fitting > 1:
        yield ValidationError(f"is valid under {fitting} of the given schemas")


def _judge_branches(validator: Any, branches: Any, value: Any, *, enough: int) -> "tuple[int, ValidationError]":
    """Return how many branches fit, until `enough` do; and the error to report if none does."""
    from jsonschema import ValidationError

    context: list[ValidationError] = []
    fitting = 0
    for index, branch in enumerate(branches):
        errors = list(islice(validator.descend(value, branch, schema_path=index), 1 if fitting else MOST))
        fitting += not errors
        context += errors
        if fitting == enough:
            break
    return fitting, ValidationError("is not valid under any of the given schemas", context=context)


def _additional_properties(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", ())
    if not isinstance(value, dict) or inner is True or value.keys() <= properties.keys():
        return
    extras = (
        name
        for name in value
        if name not in properties and not any(linear(pattern).search(name) for pattern in patterns)
    )
    if inner is False:
        yield from not_allowed("Additional", extras)
        return
    for name in extras:
        yield from validator.descend(value[name], inner, path=name)
