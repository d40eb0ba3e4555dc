"""load_cases(): a case file and what it names, read and checked; every fault has its place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent_core.errors import DefinitionError
from engine_shim.definition.errors import DefinitionErrors, Problem, by_line, refuse
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import AGENT
from engine_shim.evals.cases import Case, CaseFile
from engine_shim.evals.checks import find_problems
from engine_shim.evals.read import Label, case_at, read_cases
from engine_shim.evals.suite import MeasuredAgent, Suite
from engine_shim.host.find import find_host_config, open_host
from engine_shim.host.registry import build_registry
from engine_shim.store.open import check_encryption, cipher_of, shared_database, store_of
from utools.document import read_document

SHIPPED = Path(__file__).with_name("case_files")


def find_case_file(name: Path) -> Path:
    """Return the file of this path, or the one of this name that ships with the package."""
    shipped = {file.stem: file for file in sorted(SHIPPED.glob("*.yaml"))}
    if name.is_file() or str(name) not in shipped:
        if not name.exists() and len(name.parts) == 1 and not name.suffix:
            message = f"there is no such file, and what ships with the package is {', '.join(shipped)}"
            raise DefinitionError(message, where=str(name))
        return name
    return shipped[str(name)]


@dataclass(frozen=True, slots=True)
class OpenedCases:
    """A case file with its host and workflow. The suite has the cases without a fault, `problems` are in the others.

    `labels` are those of all cases that are written, `indexes` the places of the suite's among them.
    """

    suite: Suite
    indexes: Sequence[int]
    labels: Sequence[Label]
    problems: Sequence[Problem]

    def choose(self, wanted: Sequence[str]) -> Suite:
        """Return the suite of the cases whose category or name is wanted, or fits a pattern; all without any.

        DefinitionErrors for each fault of these cases, DefinitionError for a word that fits none.
        """
        for word in wanted:
            if not any(_fits(label, word) for label in self.labels):
                known = ", ".join(sorted({label.category for label in self.labels}))
                message = f"no case has this category or name; the categories are {known}"
                raise DefinitionError(message, where="--only", value=word)
        chosen = {n for n, label in enumerate(self.labels) if not wanted or any(_fits(label, word) for word in wanted)}
        refuse(each for each in self.problems if case_at(each.where) in chosen)
        cases = [case for n, case in zip(self.indexes, self.suite.cases, strict=True) if n in chosen]
        return replace(self.suite, cases=cases)


def load_cases(path: Path, config: Path | None = None, only: Sequence[str] = ()) -> Suite:
    """Return the cases of a file, or `only` some, with the host and the workflow that it names.

    A file that names no host has that of `config`, or the one that is found. DefinitionErrors names every fault of the
    file and of the cases that are wanted, each with its line.
    """
    opened = open_cases(path, config)
    if not opened.labels:
        raise DefinitionErrors([Problem("cases", "must not be empty", file=str(path))])
    return opened.choose(only)


def open_cases(path: Path, config: Path | None = None, *, shown: Path | None = None) -> OpenedCases:
    """Return the cases of a file, if it has any. DefinitionErrors for each fault that is not in one of its cases.

    `shown` is the file's name in errors.
    """
    written = read_cases(replace(read_document(path, "the case file"), path=shown or path))
    _refuse_outside(written.problems)
    file = written.file
    agent = _find_agent(file, path)
    definition = None if agent is None else path.parent / str(file.workflow)
    named = path.parent / file.host if file.host else find_host_config(config, definition)
    host = open_host(named)
    store = store_of(None, host.store_address)
    database = shared_database(store)  # as a run of this host, what it remembers is there
    if file.host or agent:
        check_encryption(store, wanted=host.encrypt, where=host.at("encrypt"), temporal=False)
    tools = build_registry(host, database, cipher_of(store)) if file.host or agent else None
    names = [written.labels[n].name for n in written.indexes]
    lines = {name: written.place(n) for n, name in zip(written.indexes, names, strict=True)}
    suite = Suite(_complete(file, agent, names), file.world, host, tools, agent, lines)
    found = [written.locate(each) for each in find_problems(file, suite, written.indexes)]
    _refuse_outside(found)
    problems = [*written.problems, *found]
    faulty = {case_at(each.where) for each in problems}
    whole = {n: case for n, case in zip(written.indexes, suite.cases, strict=True) if n not in faulty}
    suite = replace(suite, cases=list(whole.values()))
    return OpenedCases(suite, list(whole), written.labels, by_line(problems))


def _refuse_outside(problems: Sequence[Problem]) -> None:
    """A fault of the file is in all cases; then those of the cases are named, too."""
    if any(case_at(each.where) is None for each in problems):
        refuse(problems)


def _fits(label: Label, word: str) -> bool:
    return fnmatchcase(label.category, word) or fnmatchcase(label.name, word)


def _find_agent(file: CaseFile, path: Path) -> MeasuredAgent | None:
    """Return the agent that the file's workflow has, or the one that it names."""
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


def _complete(file: CaseFile, agent: MeasuredAgent | None, names: Sequence[str]) -> list[Case]:
    """Return the cases by these names, with what the file says for all of them."""
    language = agent.node.config.get("language") if agent else None
    cases = []
    for case, name in zip(file.cases, names, strict=True):
        changes: dict[str, Any] = {"name": name, "canned": {**file.canned, **case.canned}}
        if case.tools is None:
            changes["tools"] = file.tools
        if language in ("en", "zh") and "language" not in case.model_fields_set:
            changes["language"] = language
        cases.append(case.model_copy(update=changes))
    return cases
