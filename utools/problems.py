"""DefinitionErrors: all that is wrong with a definition, each problem with its place, raised together. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from utools.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: its place, and what to do about it. Of a definition from a file, also the file, line and node."""

    where: str
    message: str
    file: str = ""
    line: int | None = None
    node: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message

    @property
    def place(self) -> str:
        """`file:line: nodes/0 (id)/config/key`, as far as it is known."""
        where = self.where
        if self.node:
            nodes, index, *keys = where.split("/")
            where = "/".join([nodes, f"{index} ({self.node})", *keys])
        file = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (file, where) if part)

    def as_json(self) -> dict[str, Any]:
        """Return what is known of it, as a document shows it."""
        more = {"file": self.file, "line": self.line, "node": self.node}
        return {"where": self.where, "message": self.message, **{key: value for key, value in more.items() if value}}


class DefinitionErrors(DefinitionError):
    """A definition with one problem or more; the text has each on a line.

    What to do: correct each of `problems` at its place.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        first, *others = problems
        super().__init__("\n".join([first.message, *map(str, others)]), where=first.place)
        self.problems = tuple(problems)


def refuse(problems: Iterable[Problem]) -> None:
    """Raise `DefinitionErrors` with all the problems, each once, if there are any."""
    if found := tuple(dict.fromkeys(problems)):
        raise DefinitionErrors(found)


@contextmanager
def gathering(problems: list[Problem]) -> Iterator[None]:
    """Add what a check raises to the problems, so that the next check runs too."""
    try:
        yield
    except DefinitionError as error:
        problems += problems_in(error)


def problems_in(error: DefinitionError) -> tuple[Problem, ...]:
    """Return the problems that an error reports."""
    return error.problems if isinstance(error, DefinitionErrors) else (Problem(error.where, message_of(error)),)


def message_of(error: DefinitionError) -> str:
    """Return an error's message without its place."""
    return str(error).removeprefix(f"{error.where}: ")
