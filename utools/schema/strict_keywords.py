"""The keywords of a Narrowing, stricter than JSON Schema's own, so that no value slips by. Pure.

A pattern is read in one of two ways. Where it says what is allowed, the whole text must match. Where it says what is
forbidden, under an odd number of negations, a match anywhere in the text will do: `{"not": {"pattern": "www"}}` forbids
every text that holds www. `not` and the condition of `if` turn the reading round. `contains` and `oneOf` ask for some
matches and forbid others, so they are read both ways: enough whole matches, and not too many anywhere.

A control character is refused before a pattern is tried, under negations as well. A line end is none where a pattern
says what is forbidden, or names it itself: by `\\n`, `\\r`, `\\s` or `(?s)`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from utools.lazy_pattern import lazy_compile
from utools.schema.linear_pattern import linear
from utools.schema.validation_pass import current_pass

if TYPE_CHECKING:
    from jsonschema import ValidationError

    Errors = Iterator[ValidationError]

Keyword = Callable[..., Any]
LINE_ENDS = frozenset("\r\n")
DOT_ALL = lazy_compile(r"\(\?[a-zA-Z]*s")
NAMED = lazy_compile(r"\\(.)|(\[\^?)|(\])|[\r\n]", re.DOTALL)
"""What matters for the question whether a pattern names line ends: escapes, and where classes begin and end."""


def strict_keywords() -> dict[str, Keyword]:
    """Return what stands in for the keywords that a pattern may be under."""
    from jsonschema import Draft202012Validator

    usual = Draft202012Validator.VALIDATORS
    return {
        "pattern": _pattern,
        "not": _turned(usual["not"]),
        "if": _if,
        "contains": _contains,
        "oneOf": _one_of,
    }


def earlier_keywords() -> dict[str, Keyword]:
    """Return the same under the second rules of comparison: whole matches everywhere, and line ends are control
    characters."""
    from jsonschema import Draft202012Validator

    usual = Draft202012Validator.VALIDATORS
    return {"pattern": _whole_pattern, "not": _with_controls(usual["not"]), "if": _with_controls(usual["if"])}


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> "Errors":
    forbids = current_pass.get().is_negated
    if not isinstance(value, str):
        return
    allowed = LINE_ENDS if forbids or names_line_ends(pattern) else frozenset[str]()
    if _has_control(value, allowed):
        yield _control_error(value, schema)
    elif not (linear(pattern).search if forbids else linear(pattern).fullmatch)(value):
        yield _error("does not match")


@lru_cache(1024)
def names_line_ends(pattern: str) -> bool:
    """Return whether a part of a pattern, other than what a negated class leaves out, is made for line ends."""
    if DOT_ALL.search(pattern):
        return True
    negated = within = False
    for found in NAMED.finditer(pattern):
        if found[2]:
            negated, within = (negated, within) if within else (found[2] == "[^", True)
        elif found[3]:
            negated = within = False
        elif (found[1] is None or found[1] in "nrs") and not negated:
            return True
    return False


def _turned(keyword: Keyword) -> Keyword:
    """Return a keyword that refuses what its schema allows."""

    def check(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
        with current_pass.get().negated():
            errors = list(validator.descend(value, inner))
            refused = list(keyword(validator, inner, value, schema) or ())
        yield from _controls(errors)
        yield from refused

    return check


def _if(validator: Any, condition: Any, value: Any, schema: Any) -> "Errors":
    with current_pass.get().negated():
        errors = list(validator.descend(value, condition))
    yield from _controls(errors)
    branch = "else" if errors else "then"
    if branch in schema:
        yield from validator.descend(value, schema[branch], schema_path=branch)


def _contains(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
    if not isinstance(value, list):
        return
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
    surely, perhaps = (sum(each) for each in _both_ways(validator, [inner] * len(value), value))
    yield from _controls_within(validator, [inner] * len(value), value)
    if surely < least:
        yield _error(f"does not contain {least} items matching the given schema")
    if perhaps > most:
        yield _error(f"contains more than {most} items matching the given schema")


def _one_of(validator: Any, branches: Any, value: Any, schema: Any) -> "Errors":
    surely, perhaps = _both_ways(validator, branches, [value] * len(branches))
    yield from _controls_within(validator, branches, [value] * len(branches))
    if not any(surely):
        context = [
            error
            for index, branch in enumerate(branches)
            for error in validator.descend(value, branch, schema_path=index)
        ]
        yield _error("is not valid under any of the given schemas", context=context)
    elif sum(perhaps) > 1:
        yield _error(f"is valid under {sum(perhaps)} of the given schemas")


def _both_ways(validator: Any, schemas: Iterable[Any], values: Iterable[Any]) -> tuple[list[bool], list[bool]]:
    """Return whether each value fits its schema: by the reading that is in force, and by the other one.

    The first is the stricter where something is asked for, the second where it is forbidden.
    """
    pairs = list(zip(schemas, values, strict=True))
    here = [_fits(validator, schema, value) for schema, value in pairs]
    with current_pass.get().negated():
        there = [_fits(validator, schema, value) for schema, value in pairs]
    return here, there


def _fits(validator: Any, schema: Any, value: Any) -> bool:
    fits: bool = current_pass.get().validator_of(validator, schema).is_valid(value)
    return fits


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


def _error(message: str, **details: Any) -> "ValidationError":
    from jsonschema import ValidationError

    return ValidationError(message, **details)


def _has_control(value: str, allowed: frozenset[str] = frozenset()) -> bool:
    return any(unicodedata.category(each) == "Cc" and each not in allowed for each in value)


def _control_error(value: str, schema: Any) -> "ValidationError":
    return _error("has a control character", validator="control", validator_value=True, instance=value, schema=schema)


def _controls_within(validator: Any, schemas: Sequence[Any], values: Sequence[Any]) -> "list[ValidationError]":
    """Return the control characters that no reading allows, in values that are read both ways."""
    now = current_pass.get()
    with nullcontext() if now.is_negated else now.negated():
        found = (validator.descend(value, schema) for schema, value in zip(schemas, values, strict=True))
        return [error for errors in found for error in _controls(errors)]


def _controls(errors: "Iterable[ValidationError]") -> "Errors":
    for error in errors:
        if error.validator == "control":
            yield error
        yield from _controls(error.context or ())


# ── the second rules of comparison ───────────────────────────────────────────────────────────────


def _whole_pattern(_: Any, pattern: str, value: Any, schema: Any) -> "Errors":
    if not isinstance(value, str):
        return
    if _has_control(value):
        yield _control_error(value, schema)
    elif not linear(pattern).fullmatch(value):
        yield _error("does not match")


def _with_controls(keyword: Keyword) -> Keyword:
    """Return the keyword, which swallows the errors of its schema, with those about control characters let through."""

    def check(validator: Any, inner: Any, value: Any, schema: Any) -> "Errors":
        yield from _controls(validator.descend(value, inner))
        yield from keyword(validator, inner, value, schema) or ()

    return check
