"""ConfigSchema: a JSON Schema compiled once, which reports every fault of a value. Pure.

`jsonschema` (Draft 2020-12) alone decides, nothing is coerced, nothing is fetched.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from utools.errors import DefinitionError
from utools.faults import Fault, faults
from utools.schema_shape import check_references, close, escaped, resolver, spell_out

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

__all__ = ["ConfigSchema", "Fault", "Narrowing", "author_keys", "visible"]

Schema = dict[str, Any]

MAX_DEPTH = 64


class ConfigSchema:
    """What a value must look like; `schema` is what is in force.

    In a schema of our own making objects that name properties refuse all others, unless they say otherwise;
    a `foreign` one is checked as written. An invalid schema, or a reference that leaves it, is a
    DefinitionError whose `where` is the given one plus a JSON pointer.
    """

    def __init__(self, schema: Schema, *, foreign: bool = False, where: str = "") -> None:
        try:
            self.schema = _checked(schema, where)
            if not foreign:
                close(self.schema)
        except RecursionError:
            raise DefinitionError("this schema is nested too deeply", where=where) from None
        self._judge = _judge(self.schema, _draft_2020_12())

    def faults(self, value: Any) -> list[Fault]:
        """Every fault of `value`, in document order; empty when it is valid."""
        return self._judge(value)


class Narrowing:
    """A schema that narrows what a model may send, beyond the tool's own; unknown properties pass.

    Stricter than JSON Schema, so that no value slips by: a `pattern` must match the whole string, and a
    string with a control character (Unicode category Cc) is refused before a pattern is tried, be it under
    `not` or `if`.
    """

    def __init__(self, schema: Schema, *, where: str = "") -> None:
        try:
            self.schema = _checked(schema, where)
        except RecursionError:
            raise DefinitionError("this schema is nested too deeply", where=where) from None
        self._judge = _judge(self.schema, _strict_draft_2020_12())

    def faults(self, value: Any) -> list[Fault]:
        """Every fault of `value`, in document order; empty when it is valid."""
        return self._judge(value)


def visible(schema: Schema, hidden: Iterable[str]) -> Schema:
    """A copy of `schema` without the top-level properties `hidden`, which need not be given either."""
    gone = frozenset(hidden)
    shown = copy.deepcopy(schema)
    if "properties" in shown:
        shown["properties"] = {name: each for name, each in shown["properties"].items() if name not in gone}
    if "required" in shown:
        shown["required"] = [name for name in shown["required"] if name not in gone]
    return shown


def author_keys(schema: Schema) -> frozenset[str]:
    """The top-level properties that only the workflow's author or the host may set (`"x-author": true`)."""
    properties = schema.get("properties", {})
    return frozenset(
        name for name, each in properties.items() if isinstance(each, dict) and each.get("x-author") is True
    )


def _checked(schema: Schema, where: str) -> Schema:
    """A deep copy of a schema that is sound: valid, and closed in itself."""
    from jsonschema import Draft202012Validator, SchemaError

    if not isinstance(schema, dict):
        raise DefinitionError("a schema must be a JSON object", where=where, value=schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "".join(f"/{escaped(part)}" for part in error.absolute_path)
        raise DefinitionError(f"not a valid JSON Schema: {error.message[:300]}", where=where + place) from None
    own = copy.deepcopy(schema)
    check_references(own, where=where)
    return own


def _judge(schema: Schema, dialect: Callable[..., "Validator"]) -> Callable[[Any], list[Fault]]:
    """The function that finds every fault of a value."""
    from referencing import Registry

    spelled = copy.deepcopy(schema)
    spell_out(spelled)
    registry: Registry[Any] = Registry()  # empty, so that nothing can be fetched
    validator = dialect(spelled, registry=registry)
    follow = resolver(spelled)

    def found(value: Any) -> list[Fault]:
        return faults(validator.iter_errors(value), value, follow)

    def judge(value: Any) -> list[Fault]:
        if deep := _too_deep(value):
            return [deep]
        try:
            return found(value)
        except RecursionError:
            return _on_a_fresh_stack(found, value)

    return judge


def _draft_2020_12() -> Callable[..., "Validator"]:
    from jsonschema import Draft202012Validator

    return Draft202012Validator


def _strict_draft_2020_12() -> Callable[..., "Validator"]:
    from jsonschema import Draft202012Validator, validators

    usual = Draft202012Validator.VALIDATORS
    strict = {"pattern": _whole_pattern, "not": _with_controls(usual["not"]), "if": _with_controls(usual["if"])}
    extend: Callable[..., Any] = validators.extend
    dialect: Callable[..., Validator] = extend(Draft202012Validator, strict)
    return dialect


def _whole_pattern(_: Any, pattern: str, value: Any, schema: Any) -> "Iterator[ValidationError]":
    import re
    import unicodedata

    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    if any(unicodedata.category(each) == "Cc" for each in value):
        yield ValidationError(
            "has a control character",
            validator="control",
            validator_value=True,
            instance=value,
            schema=schema,
        )
    elif not re.fullmatch(pattern, value):
        yield ValidationError("does not match")


def _with_controls(keyword: Callable[..., Any]) -> Callable[..., Any]:
    """`not` and `if` swallow their schema's errors; let those about control characters out."""

    def check(validator: Any, inner: Any, value: Any, schema: Any) -> "Iterator[ValidationError]":
        yield from _controls(validator.descend(value, inner))
        yield from keyword(validator, inner, value, schema) or ()

    return check


def _controls(errors: "Iterable[ValidationError]") -> "Iterator[ValidationError]":
    for error in errors:
        if error.validator == "control":
            yield error
        yield from _controls(error.context or ())


def _on_a_fresh_stack(found: Callable[[Any], list[Fault]], value: Any) -> list[Fault]:
    """Once more in a thread of its own, so that the verdict does not depend on how deep the caller stands."""
    verdict: list[Fault] = []

    def work() -> None:
        try:
            verdict.extend(found(value))
        except RecursionError:
            message = "The value cannot be checked: the schema refers to itself without end."
            verdict.append(Fault("", "a value that the schema can judge", "", message))

    thread = threading.Thread(target=work, name="utools-schema")
    thread.start()
    thread.join()
    return verdict


def _too_deep(value: Any) -> Fault | None:
    """A fault if `value` has more than MAX_DEPTH levels of lists and objects; walks level by level."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return None
    expected = f"nested at most {MAX_DEPTH} levels deep"
    return Fault("", expected, "a deeper one", f"The value must be {expected}.")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
