"""load_cases(): a case file and what it names, read and checked; every fault has its place."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent_core.errors import DefinitionError
from engine_shim.definition.errors import DefinitionErrors, problems_of, refuse
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import AGENT
from engine_shim.evals.cases import Case, CaseFile
from engine_shim.evals.checks import find_problems
from engine_shim.evals.suite import MeasuredAgent, Suite
from engine_shim.host.find import find_host_config, open_host
from engine_shim.host.registry import build_registry
from utools.document import read_document
from utools.schema.model_faults import keys_of

FORMS = ("AllowedTool", "AnyOf", "Matches", "Equals", "value")
"""What pydantic calls the forms of a value that may have several."""
SHIPPED = Path(__file__).with_name("case_files")


def find_case_file(name: Path) -> Path:
    """The file of this path, or the one of this name that ships with the package."""
    shipped = {file.stem: file for file in sorted(SHIPPED.glob("*.yaml"))}
    if name.is_file() or str(name) not in shipped:
        if not name.exists() and len(name.parts) == 1 and not name.suffix:
            message = f"there is no such file, and what ships with the package is {', '.join(shipped)}"
            raise DefinitionError(message, where=str(name))
        return name
    return shipped[str(name)]


def read_case_file(path: Path) -> CaseFile:
    """The cases of a JSON or YAML file as they are written. DefinitionErrors for each key that is wrong."""
    data = read_document(path, "the case file").data
    try:
        return CaseFile.model_validate(data)
    except ValidationError as error:
        found = problems_of(error, keys_of(CaseFile))
    raise DefinitionErrors([replace(each, where=_place(each.where)) for each in found])


def load_cases(path: Path, config: Path | None = None) -> Suite:
    """The cases of a file, with the host and the workflow that it names.

    A file that names no host has that of `config`, or the one that is found. DefinitionErrors names every fault.
    """
    file = read_case_file(path)
    agent = _find_agent(file, path)
    definition = None if agent is None else path.parent / str(file.workflow)
    named = path.parent / file.host if file.host else find_host_config(config, definition)
    host = open_host(named)
    tools = build_registry(host) if file.host or agent else None
    suite = Suite(_complete(file, agent), file.world, host, tools, agent)
    refuse(find_problems(file, suite))
    return suite


def choose_cases(cases: Sequence[Case], wanted: Sequence[str]) -> list[Case]:
    """The cases whose category or name is wanted, or fits a pattern; all without any.

    DefinitionError for a word that fits none.
    """
    for word in wanted:
        if not any(_fits(case, word) for case in cases):
            known = ", ".join(sorted({case.category for case in cases}))
            message = f"no case has this category or name; the categories are {known}"
            raise DefinitionError(message, where="--only", value=word)
    return [case for case in cases if not wanted or any(_fits(case, word) for word in wanted)]


def _fits(case: Case, word: str) -> bool:
    return fnmatchcase(case.category, word) or fnmatchcase(case.name, word)


def _place(where: str) -> str:
    return "/".join(part for part in where.split("/") if part not in FORMS)


def _find_agent(file: CaseFile, path: Path) -> MeasuredAgent | None:
    """The agent that the file's workflow has, or the one that it names."""
    if file.workflow is None:
        return None
    workflow = load_workflow(path.parent / file.workflow)
    agents = {node.id: node for node in workflow.nodes.values() if node.tool == AGENT}
    if file.node is None and len(agents) == 1:
        return MeasuredAgent(workflow, *agents.values())
    if file.node not in agents:
        what = "name one of its agents" if agents else "no node of this workflow is an agent"
        known = f": {', '.join(agents)}" if agents else ""
        raise DefinitionError(what + known, where="node", value=file.node)
    return MeasuredAgent(workflow, agents[file.node])


def _complete(file: CaseFile, agent: MeasuredAgent | None) -> list[Case]:
    """The cases with what the file says for all of them; no two have the same name."""
    taken = {case.name for case in file.cases if "name" in case.model_fields_set}
    language = agent.node.config.get("language") if agent else None
    cases = []
    for case in file.cases:
        name, number = case.name, 1
        while "name" not in case.model_fields_set and name in taken:
            number += 1
            name = f"{case.name}-{number}"
        taken.add(name)
        changes: dict[str, Any] = {"name": name, "canned": {**file.canned, **case.canned}}
        if case.tools is None:
            changes["tools"] = file.tools
        if language in ("en", "zh") and "language" not in case.model_fields_set:
            changes["language"] = language
        cases.append(case.model_copy(update=changes))
    return cases
