"""ConfigSchema: a JSON Schema compiled once, which reports the faults of a value. Pure.

`jsonschema` (Draft 2020-12) alone decides, nothing is coerced, nothing is fetched.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from utools.errors import DefinitionError
from utools.schema.faults import Fault, faults
from utools.schema.keywords import bounded_keywords
from utools.schema.shape import (
    REFERENCES,
    check_author_marks,
    check_references,
    close,
    escaped,
    is_marked,
    resolver,
    spell_out,
    walk,
)

if TYPE_CHECKING:
    from jsonschema import ValidationError

__all__ = ["ConfigSchema", "Fault", "Narrowing", "author_keys", "visible"]

Schema = dict[str, Any]

Keyword = Callable[..., Any]

MAX_DEPTH = 64
REFERENCES_FOLLOWED = 1000
REFERENCES_FOLLOWED_EACH = 50


class ConfigSchema:
    """What a value must look like; `schema` is what is in force.

    In a schema of our own making objects that name properties refuse all others, unless they say otherwise;
    a `foreign` one is checked as written. An invalid schema, or a reference that leaves it, is a
    DefinitionError whose `where` is the given one plus a JSON pointer.
    """

    def __init__(self, schema: Schema, *, foreign: bool = False, where: str = "") -> None:
        try:
            self.schema = _checked(schema, where)
            check_author_marks(self.schema, where=where)
            if not foreign:
                close(self.schema)
        except RecursionError:
            raise DefinitionError("this schema is nested too deeply", where=where) from None
        self._judge = _judge(self.schema, {})

    def faults(self, value: Any) -> list[Fault]:
        """What is wrong with `value`, the first 100 faults, in document order; empty when it is valid."""
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
        self._judge = _judge(self.schema, _strict_keywords())

    def faults(self, value: Any) -> list[Fault]:
        """What is wrong with `value`, the first 100 faults, in document order; empty when it is valid."""
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
    return frozenset(name for name, each in properties.items() if is_marked(each))


def _checked(schema: Schema, where: str) -> Schema:
    """A deep copy of a schema that is sound: valid, and closed in itself."""
    from jsonschema import Draft202012Validator, SchemaError, ValidationError

    if not isinstance(schema, dict):
        raise DefinitionError("a schema must be a JSON object", where=where, value=schema)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "".join(f"/{escaped(part)}" for part in error.absolute_path)
        told = error.message[:300]
        if error.context:  # of several forms none fits: say which there are
            (first, *_) = faults([ValidationError.create_from(error)], schema, resolver(schema))
            place, told = first.pointer, first.message.removeprefix(first.pointer).strip().removesuffix(".")
        raise DefinitionError(f"not a valid JSON Schema: {told}", where=where + place) from None
    own: Schema = _unshared(schema)
    check_references(own, where=where)
    return own


def _unshared(value: Any) -> Any:
    """A deep copy in which no two places are one object: each place is then closed, and checked, by itself."""
    if isinstance(value, dict):
        return {name: _unshared(each) for name, each in value.items()}
    return [_unshared(each) for each in value] if isinstance(value, list) else value


def _judge(schema: Schema, strict: Mapping[str, Keyword]) -> Callable[[Any], list[Fault]]:
    """The function that finds every fault of a value; `strict` keywords stand in for the usual ones."""
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    spelled = copy.deepcopy(schema)
    spell_out(spelled)
    effort = _Effort()
    usual = Draft202012Validator.VALIDATORS
    used = {key for _, each in walk(spelled) for key in REFERENCES if key in each}
    own = {**bounded_keywords(), **strict, **{key: effort.counting(usual[key]) for key in used}}
    extend: Callable[..., Any] = validators.extend
    dialect: Any = extend(Draft202012Validator, own)
    registry: Registry[Any] = Registry()  # empty, so that nothing can be fetched
    validator = dialect(spelled, registry=registry)
    follow = resolver(spelled)

    def judge(value: Any) -> list[Fault]:
        size = _size(value)
        if size is None:
            return [_unjudged(f"nested at most {MAX_DEPTH} levels deep")]
        try:
            effort.left = REFERENCES_FOLLOWED + REFERENCES_FOLLOWED_EACH * size
            return faults(validator.iter_errors(value), value, follow)
        except _TooMuch:
            return [_unjudged("simpler: this schema has too many ways to read it")]

    return partial(_on_a_fresh_stack_if_need_be, judge)


class _TooMuch(Exception):
    """A schema that refers to itself in several alternatives: judging takes exponential time."""


class _Effort(threading.local):
    """How many references may still be followed in the validation that this thread is at."""

    left = 0

    def counting(self, keyword: Keyword) -> Keyword:
        """The keyword (`$ref`), which ends the validation when it has been used too often."""

        def check(validator: Any, target: Any, value: Any, schema: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise _TooMuch
            return keyword(validator, target, value, schema)

        return check


def _strict_keywords() -> dict[str, Keyword]:
    from jsonschema import Draft202012Validator

    usual = Draft202012Validator.VALIDATORS
    return {"pattern": _whole_pattern, "not": _with_controls(usual["not"]), "if": _with_controls(usual["if"])}


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


def _with_controls(keyword: Keyword) -> Keyword:
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


def _on_a_fresh_stack_if_need_be(judge: Callable[[Any], list[Fault]], value: Any) -> list[Fault]:
    """Judge again in a thread of its own, so that the verdict does not depend on how deep the caller stands."""
    try:
        return judge(value)
    except BaseException as error:
        if not _is_out_of_stack(error):
            raise
    verdict = [_unjudged("judged by another schema: this one refers to itself without end")]

    def work() -> None:
        try:
            verdict[:] = judge(value)
        except BaseException as error:
            if not _is_out_of_stack(error):
                raise

    thread = threading.Thread(target=work, name="utools-schema")
    thread.start()
    thread.join()
    return verdict


def _is_out_of_stack(error: BaseException) -> bool:
    """Whether the stack ran out: jsonschema's maps, which are Rust, panic where it runs out in the middle of them."""
    return isinstance(error, RecursionError) or type(error).__name__ == "PanicException"


def _unjudged(expected: str) -> Fault:
    return Fault("", expected, "a value that cannot be checked", f"The value must be {expected}.")


def _size(value: Any) -> int | None:
    """How many values there are in `value`; None if it has more than MAX_DEPTH levels of lists and objects."""
    level = [value]
    count = 0
    for _ in range(MAX_DEPTH + 1):
        count += len(level)
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return count
    return None
