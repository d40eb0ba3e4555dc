"""load_cases(): a case file, read and checked; every fault has its place."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ValidationError

from agent_core.errors import DefinitionError
from engine_shim.definition.errors import DefinitionErrors, Location, Problem, problems_of, refuse
from engine_shim.evals.cases import Answer, Call, Case, CaseFile, Document, Forbidden, World
from engine_shim.evals.world import build_registry
from utools.document import read_document
from utools.schema.faults import hint


def load_cases(path: Path) -> CaseFile:
    """The cases of a JSON or YAML file; DefinitionError names every fault and its place."""
    try:
        file = CaseFile.model_validate(read_document(path, "the case file").data)
    except ValidationError as error:
        raise DefinitionErrors(problems_of(error, _keys)) from None
    refuse(_unknown_tools(file))
    return file


def choose_cases(cases: list[Case], categories: list[str]) -> list[Case]:
    """The cases of these categories, all without any; DefinitionError for an unknown category."""
    known = sorted({case.category for case in cases})
    if unknown := sorted(set(categories) - set(known)):
        message = f"there is no such category; there are {', '.join(known)}"
        raise DefinitionError(message, where="--only", value=unknown[0])
    return [case for case in cases if not categories or case.category in categories]


def _unknown_tools(file: CaseFile) -> Iterator[Problem]:
    """Each tool that a case names and that the world does not have."""
    codes = [tool.code for tool in build_registry(file.world).all()]
    for location, name in _named_tools(file):
        if not any(fnmatchcase(code, name) if location[2] == "tools" else code == name for code in codes):
            yield Problem("/".join(map(str, location)), f"there is no such tool; {hint(name, codes)} (got {name!r})")


def _named_tools(file: CaseFile) -> Iterator[tuple[Location, str]]:
    """The tools that the cases name, each with its place. Those that are offered may be globs."""
    for index, case in enumerate(file.cases):
        for at, name in enumerate(case.tools or ()):
            yield ("cases", index, "tools", at), name
        for at, call in enumerate(case.calls):
            yield ("cases", index, "calls", at, "tool"), call.tool
        for at, forbidden in enumerate(case.forbidden):
            yield ("cases", index, "forbidden", at, "tool"), forbidden.tool


def _keys(location: Location) -> list[str]:
    models: list[type[BaseModel]] = [CaseFile, World, Case, Answer, Call, Forbidden, Document]
    depth: list[type[BaseModel]] = {1: models[:1], 2: models[1:2]}.get(len(location), models[2:])
    return [name for model in depth for name in model.model_fields]
