"""Keywords with jsonschema's verdicts, in bounded time and memory: a model's reply is judged on the event loop. Pure.

Each was measured alone with a reply of 1 MiB, the most that is read. `uniqueItems` and `unevaluated…` are quadratic in
jsonschema (minutes). `anyOf` and `oneOf` keep every error of every branch (450 MB, 7 s). `additionalProperties`
finds errors in the order of a set, which another process does not repeat. `properties`, `items` and `type` make a
validator anew for each value; without that, ordinary arguments are judged four times as fast.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

    Errors = Iterator[ValidationError]

Keyword = Callable[..., Any]

MOST = 100
"""Errors that are reported, of a value or of one branch."""


class TooManyWays(Exception):
    """A schema refers to itself in several alternatives: judging takes exponential time."""


@dataclass(slots=True)
class Pass:
    """What the keywords share while one value is validated.

    A schema here refers to nothing outside and has no nested identity, so `#` means the same everywhere: a subschema
    needs one validator, by its identity, and a reference one target.
    """

    follow: Callable[[str], Any]
    validators: dict[int, Any]
    references_left: int

    def validator_of(self, validator: Any, schema: Any) -> Any:
        made = self.validators.get(id(schema))
        if made is None:  # a validator holds its schema, so no other schema can get its id
            made = self.validators[id(schema)] = validator.evolve(schema=schema)
        return made

    def count_reference(self) -> None:
        self.references_left -= 1
        if self.references_left < 0:
            raise TooManyWays


current_pass: ContextVar[Pass] = ContextVar("current_pass")


def bounded_keywords() -> dict[str, Keyword]:
    """What stands in for jsonschema's own keywords."""
    from jsonschema import Draft202012Validator

    usual = Draft202012Validator.VALIDATORS
    return {
        "$ref": _counting(usual["$ref"]),
        "$dynamicRef": _counting(usual["$dynamicRef"]),
        "type": _type,
        "properties": _properties,
        "items": _items,
        "uniqueItems": _unique_items,
        "anyOf": _any_of,
        "oneOf": _one_of,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _unevaluated_properties,
        "unevaluatedItems": _unevaluated_items,
    }


def _counting(keyword: Keyword) -> Keyword:
    """The keyword, which ends the validation when it has been used too often."""

    def check(validator: Any, target: Any, value: Any, schema: Any) -> Any:
        current_pass.get().count_reference()
        return keyword(validator, target, value, schema)

    return check


_TYPES: Mapping[type, tuple[str, ...]] = {
    str: ("string",),
    int: ("integer", "number"),
    float: ("number",),
    bool: ("boolean",),
    dict: ("object",),
    list: ("array",),
    NoneType: ("null",),
}
"""The types that a value has beyond doubt. A float may be an integer too, and a `type` may be a list."""


def _type(validator: Any, types: Any, value: Any, schema: Any) -> "Iterable[ValidationError]":
    if types in _TYPES.get(type(value), ()):
        return ()
    from jsonschema import Draft202012Validator

    errors: Iterable[ValidationError] = Draft202012Validator.VALIDATORS["type"](validator, types, value, schema)
    return errors


def _properties(validator: Any, properties: Any, value: Any, _: Any) -> "Errors":
    if not isinstance(value, dict):
        return
    for name, inner in properties.items():
        if name in value:
            for error in _errors(validator, inner, value[name], name):
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
    for index in range(prefix, len(value)):
        yield from _errors(validator, inner, value[index], index)


def _errors(validator: Any, inner: Any, value: Any, part: str | int) -> "Errors":
    """The errors of what lies at one step below the value."""
    for error in current_pass.get().validator_of(validator, inner).iter_errors(value):
        error.path.appendleft(part)
        yield error


def _is_valid(validator: Any, inner: Any, value: Any) -> bool:
    valid: bool = current_pass.get().validator_of(validator, inner).is_valid(value)
    return valid


def _unique_items(_: Any, wanted: bool, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    if wanted and isinstance(value, list) and len(set(map(_canonical, value))) < len(value):
        yield ValidationError("has non-unique elements")


def _canonical(value: Any) -> str:
    """A text that two JSON values share exactly when JSON Schema calls them equal: 1 is 1.0, and true is not 1."""
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
    return repr(value)


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
    """How many branches fit, until `enough` do; and the error to report if none does."""
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
        name for name in value if name not in properties and not any(re.search(pattern, name) for pattern in patterns)
    )
    if inner is False:
        yield from _not_allowed("Additional", extras)
        return
    for name in extras:
        yield from _errors(validator, inner, value[name], name)


def _unevaluated_properties(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    if not isinstance(value, dict):
        return
    beside = {keyword: each for keyword, each in schema.items() if keyword != "unevaluatedProperties"}
    evaluated = _evaluated(validator, value, beside)
    unevaluated = (name for name in value if name not in evaluated)
    yield from _not_allowed(
        "Unevaluated", (name for name in unevaluated if not _is_valid(validator, inner, value[name]))
    )


def _not_allowed(kind: str, names: Iterator[str]) -> "Errors":
    from jsonschema import ValidationError

    if extras := list(islice(names, MOST)):
        quoted = ", ".join(map(repr, extras))
        yield ValidationError(f"{kind} properties are not allowed ({quoted} were unexpected)")


def _unevaluated_items(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    if not isinstance(value, list):
        return
    evaluated = _evaluated(validator, value, schema)
    if any(index not in evaluated for index in range(len(value))):
        yield ValidationError("Unevaluated items are not allowed")


def _evaluated(validator: Any, value: Any, schema: Any) -> set[Any]:
    """The names, or the indexes, within `value` that a schema which the value fits has something to say of."""
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
            found |= {name for name, each in value.items() if _is_valid(validator, schema[keyword], each)}
    patterns = schema.get("patternProperties", ())
    return found | {name for name in value if any(re.search(pattern, name) for pattern in patterns)}


def _evaluated_indexes(validator: Any, value: list[Any], schema: Any) -> set[Any]:
    if "items" in schema:
        return set(range(len(value)))
    found = set(range(len(schema.get("prefixItems", ()))))
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            found |= {index for index, each in enumerate(value) if _is_valid(validator, schema[keyword], each)}
    return found


def _fitting_branches(validator: Any, value: Any, schema: Any) -> Iterator[Any]:
    """The schemas that judge the same value together with `schema`, of those that need not hold the ones that do."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            current_pass.get().count_reference()
            yield current_pass.get().follow(schema[keyword])
    for keyword in ("allOf", "oneOf", "anyOf"):
        yield from (each for each in schema.get(keyword, ()) if _is_valid(validator, each, value))
    if isinstance(value, dict):
        yield from (each for name, each in schema.get("dependentSchemas", {}).items() if name in value)
    if "if" in schema:
        fits = _is_valid(validator, schema["if"], value)
        yield from (schema["if"], schema.get("then")) if fits else (schema.get("else"),)
