"""DefinitionErrors: all that is wrong with a definition, each problem with its place, raised together. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from engine_shim.errors import DefinitionError
from utools.schema.faults import Fault
from utools.schema.model_faults import ModelFault, find_model_faults

Location = tuple[int | str, ...]
_MESSAGES = {"string_pattern_mismatch": "must be letters, digits, _ and -, not starting with -"}


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
        """What is known of it, as a document shows it."""
        more = {"file": self.file, "line": self.line, "node": self.node}
        return {"where": self.where, "message": self.message, **{key: value for key, value in more.items() if value}}


class DefinitionErrors(DefinitionError):
    """A definition with one problem or more; the text has each on a line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first, *others = problems
        super().__init__("\n".join([first.message, *map(str, others)]), where=first.place)
        self.problems = tuple(problems)


def refuse(problems: Iterable[Problem]) -> None:
    """Raise `DefinitionErrors` with all the problems, each once, if there are any."""
    if found := tuple(dict.fromkeys(problems)):
        raise DefinitionErrors(found)


def problems_in(error: DefinitionError) -> tuple[Problem, ...]:
    """The problems that an error reports."""
    return error.problems if isinstance(error, DefinitionErrors) else (Problem(error.where, message_of(error)),)


def message_of(error: DefinitionError) -> str:
    """An error's message without its place."""
    return str(error).removeprefix(f"{error.where}: ")


def problem_of(fault: Fault, where: str, more: str = "") -> Problem:
    """The problem of what a schema refuses in the value at `where`."""
    message = fault.message.removeprefix(fault.pointer).strip().removesuffix(".")
    return Problem(f"{where}{fault.pointer}", message + more)


def problems_of(error: ValidationError, keys: Callable[[Location], Iterable[str]]) -> list[Problem]:
    """What pydantic found, in our words; `keys` lists the keys that may be given at a place."""
    found = find_model_faults(error, keys, _MESSAGES)
    return [Problem(_where(each.position), each.text) for each in found if not _is_about_text(each)]


def _is_about_text(fault: ModelFault) -> bool:
    """Whether this is about the text that could be given instead of an object."""
    return fault.position[-1:] == ("str",) and isinstance(fault.value, dict)


def _where(location: Location) -> str:
    return "/".join(str(part) for part in location if part not in ("str", "EnvName"))
