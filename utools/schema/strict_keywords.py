"""The keywords of a Narrowing, stricter than JSON Schema's own: whole patterns, no control characters. Pure."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

Keyword = Callable[..., Any]


def strict_keywords() -> dict[str, Keyword]:
    """What stands in for `pattern`, `not` and `if`."""
    from jsonschema import Draft202012Validator

    usual = Draft202012Validator.VALIDATORS
    return {"pattern": _whole_pattern, "not": _with_controls(usual["not"]), "if": _with_controls(usual["if"])}


def _whole_pattern(_: Any, pattern: str, value: Any, schema: Any) -> "Iterator[ValidationError]":
    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    if any(unicodedata.category(each) == "Cc" for each in value):
        yield ValidationError(
            "has a control character", validator="control", validator_value=True, instance=value, schema=schema
        )
    elif not re.fullmatch(pattern, value):
        yield ValidationError("does not match")


def _with_controls(keyword: Keyword) -> Keyword:
    """The keyword, which swallows the errors of its schema, with those about control characters let through."""

    def check(validator: Any, inner: Any, value: Any, schema: Any) -> "Iterator[ValidationError]":
        yield from _controls(validator.descend(value, inner))
        yield from keyword(validator, inner, value, schema) or ()

    return check


def _controls(errors: "Iterable[ValidationError]") -> "Iterator[ValidationError]":
    for error in errors:
        if error.validator == "control":
            yield error
        yield from _controls(error.context or ())
