"""One pass of validation: what its keywords share. Pure."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

    Errors = Iterator[ValidationError]

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
    is_negated: bool = False
    """Of a Narrowing: whether the schema at hand says what is forbidden."""

    @contextmanager
    def negated(self) -> Iterator[None]:
        """Turn `is_negated` round for what is judged, and read to its end, within."""
        self.is_negated = not self.is_negated
        try:
            yield
        finally:
            self.is_negated = not self.is_negated

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


def is_valid(validator: Any, inner: Any, value: Any) -> bool:
    valid: bool = current_pass.get().validator_of(validator, inner).is_valid(value)
    return valid


def not_allowed(kind: str, names: Iterator[str]) -> "Errors":
    from jsonschema import ValidationError

    if extras := list(islice(names, MOST)):
        quoted = ", ".join(map(repr, extras))
        yield ValidationError(f"{kind} properties are not allowed ({quoted} were unexpected)")
