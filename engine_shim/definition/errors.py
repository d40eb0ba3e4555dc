"""Faults of a definition as problems, from what a schema and what pydantic find. Pure."""

from collections.abc import Callable, Iterable, Mapping

from pydantic import ValidationError

from utools.problems import DefinitionErrors, Problem, gathering, message_of, problems_in, refuse
from utools.schema.faults import Fault
from utools.schema.model_faults import ModelFault, find_model_faults

__all__ = [
    "DefinitionErrors",
    "Problem",
    "by_line",
    "gathering",
    "message_of",
    "problem_of",
    "problems_in",
    "problems_of",
    "refuse",
]

Location = tuple[int | str, ...]
NOT_WRITTEN = ("str", "list[any]", "EnvName", "ExecutableTool", "[key]")
"""Parts of a location by which pydantic tells apart what may stand at one place of a file."""


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems in the order of the files' lines."""
    return sorted(problems, key=lambda each: (each.file, each.line or 0))


def problem_of(fault: Fault, where: str, more: str = "") -> Problem:
    """Return the problem of what a schema refuses in the value at `where`."""
    message = fault.message.removeprefix(fault.pointer).strip().removesuffix(".")
    return Problem(f"{where}{fault.pointer}", message + more)


def problems_of(
    error: ValidationError, keys: Callable[[Location], Iterable[str]], texts: Mapping[str, str] | None = None
) -> list[Problem]:
    """Return what pydantic found, in our words; `keys` lists the keys that may be given at a place, `texts` say what
    patterns ask for."""
    found = find_model_faults(error, keys, texts)
    return [Problem(_where(each.position), each.text) for each in found if not _is_about_text(each)]


def _is_about_text(fault: ModelFault) -> bool:
    """Return whether this is about the text that could be given instead of an object."""
    return fault.position[-1:] == ("str",) and isinstance(fault.value, dict)


def _where(location: Location) -> str:
    return "/".join(str(part) for part in location if part not in NOT_WRITTEN)
