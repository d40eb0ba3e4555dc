"""Keywords that jsonschema judges in too much time or memory: the same verdicts, in time that grows with the value.

What a model wrote is judged on the event loop. Errors come in document order, whatever the hash seed.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

    Errors = Iterator[ValidationError]

Keyword = Callable[..., Any]

MOST = 100


def bounded_keywords() -> dict[str, Keyword]:
    """What stands in for jsonschema's own keywords, for one schema."""
    judges = _Judges()
    return {
        "type": _type,
        "properties": judges.properties,
        "items": judges.items,
        "uniqueItems": _unique_items,
        "anyOf": _any_of,
        "oneOf": _one_of,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _unevaluated_properties,
        "unevaluatedItems": _unevaluated_items,
    }


class _Judges:
    """Validators of subschemas, each made once: jsonschema makes one anew for every value that it descends into.

    A schema here is closed in itself and has no nested identity, so what "#" means is the same everywhere.
    """

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def _of(self, validator: Any, schema: Any) -> Any:
        judge = self._made.get(id(schema))
        if judge is None:  # a judge keeps its schema, so that no other can come to have its id
            judge = self._made[id(schema)] = validator.evolve(schema=schema)
        return judge

    def properties(self, validator: Any, properties: Any, value: Any, _: Any) -> "Errors":
        if not isinstance(value, dict):
            return
        for name, inner in properties.items():
            if name in value:
                for error in self._of(validator, inner).iter_errors(value[name]):
                    error.path.appendleft(name)
                    error.schema_path.appendleft(name)
                    yield error

    def items(self, validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
        from jsonschema import ValidationError

        prefix = len(schema.get("prefixItems", []))
        if not isinstance(value, list) or len(value) <= prefix:
            return
        if inner is False:
            yield ValidationError(f"has more than {prefix} items")
            return
        judge = self._of(validator, inner)
        for index in range(prefix, len(value)):
            for error in judge.iter_errors(value[index]):
                error.path.appendleft(index)
                yield error


_PLAIN: Mapping[type, tuple[str, ...]] = {
    str: ("string",),
    int: ("integer", "number"),
    float: ("number",),
    bool: ("boolean",),
    dict: ("object",),
    list: ("array",),
    NoneType: ("null",),
}
"""The kinds that a value has beyond doubt; a float may be an integer too, and `kinds` a list."""


def _type(validator: Any, kinds: Any, value: Any, schema: Any) -> "Iterable[ValidationError]":
    if kinds in _PLAIN.get(type(value), ()):
        return ()
    from jsonschema import Draft202012Validator

    errors: Iterable[ValidationError] = Draft202012Validator.VALIDATORS["type"](validator, kinds, value, schema)
    return errors


def canonical(value: Any) -> str:
    """A text that two JSON values share exactly when JSON Schema calls them equal: 1 is 1.0, and true is not 1."""
    match value:
        case bool() | None | str():
            return json.dumps(value)
        case float() if not value.is_integer():
            return repr(value)
        case int() | float():
            return hex(int(value))  # a set of numbers could be made to collide, a set of texts cannot
        case list():
            return f"[{','.join(map(canonical, value))}]"
        case dict():
            return f"{{{','.join(sorted(f'{json.dumps(name)}:{canonical(each)}' for name, each in value.items()))}}}"
    return repr(value)


def _unique_items(_: Any, wanted: bool, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    if wanted and isinstance(value, list) and len(set(map(canonical, value))) < len(value):
        yield ValidationError("has non-unique elements")


def _any_of(validator: Any, branches: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    context: list[ValidationError] = []
    for index, branch in enumerate(branches):
        errors = list(islice(validator.descend(value, branch, schema_path=index), MOST))
        if not errors:
            return
        context += errors
    yield ValidationError("is not valid under any of the given schemas", context=context)


def _one_of(validator: Any, branches: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError

    context: list[ValidationError] = []
    fitting = 0
    for index, branch in enumerate(branches):
        errors = list(islice(validator.descend(value, branch, schema_path=index), 1 if fitting else MOST))
        fitting += not errors
        context += errors
    if not fitting:
        yield ValidationError("is not valid under any of the given schemas", context=context)
    elif fitting > 1:
        yield ValidationError(f"is valid under {fitting} of the given schemas")


def _additional_properties(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    if not isinstance(value, dict) or inner is True or value.keys() <= schema.get("properties", {}).keys():
        return
    from jsonschema._utils import find_additional_properties

    extras = find_additional_properties(value, schema)
    if inner is False:
        yield from _not_allowed("Additional", extras)
        return
    for name in extras:
        yield from validator.descend(value[name], inner, path=name)


def _unevaluated_properties(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema._utils import find_evaluated_property_keys_by_schema

    if not isinstance(value, dict):
        return
    beside = {keyword: each for keyword, each in schema.items() if keyword != "unevaluatedProperties"}
    seen = set(find_evaluated_property_keys_by_schema(validator, value, beside))
    judge = validator.evolve(schema=inner)
    yield from _not_allowed(
        "Unevaluated", (name for name in value if name not in seen and not judge.is_valid(value[name]))
    )


def _not_allowed(kind: str, names: Iterator[str]) -> "Errors":
    from jsonschema import ValidationError

    if extras := list(islice(names, MOST)):
        quoted = ", ".join(map(repr, extras))
        yield ValidationError(f"{kind} properties are not allowed ({quoted} were unexpected)")


def _unevaluated_items(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    from jsonschema import ValidationError
    from jsonschema._utils import find_evaluated_item_indexes_by_schema

    if not isinstance(value, list):
        return
    seen = set(find_evaluated_item_indexes_by_schema(validator, value, schema))
    if any(index not in seen for index in range(len(value))):
        yield ValidationError("Unevaluated items are not allowed")
