"""What a draft defines and what is wrong with it, as an editor shows it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_core.outputs import Json
from agent_core.run.secrets import Secrets
from engine_shim.definition.drawing import describe_graph
from engine_shim.definition.errors import Problem
from engine_shim.definition.graph import graph_of
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import Definition
from engine_shim.definition.validate import Examination
from engine_shim.definition.variables import list_variables
from engine_shim.errors import DefinitionError
from utools.document import Document
from utools.lazy_pattern import lazy_compile

UNREAD: Final = lazy_compile(r"[\w-]+\.(?:yaml|json)(?::(\d+))?(?::\d+)?")
"""The place of what is wrong with a text that cannot be read."""


def describe_parts(
    document: Document | None, workflow: Workflow | None, faults: Sequence[Problem], found: Examination | None
) -> Json:
    """Return what a text defines; `faults` are those of its form."""
    data = document.data if document is not None and isinstance(document.data, dict) else {}
    identity, version = data.get("id"), data.get("version")
    definition = None if workflow is None else workflow.definition
    variables = [] if definition is None or found is None else list_variables(definition, found.outputs)
    return {
        "id": identity if isinstance(identity, str) else None,
        "version": definition.version if definition is not None else version if isinstance(version, str) else None,
        "graph": None if definition is None else _find_graph(definition, faults),
        "variables": [each.as_json() for each in variables],
    }


def describe_problem(problem: Problem, document: Document | None, directory: Path) -> Json:
    """Return a problem with its path in the text, and the line of that."""
    message = clean_message(problem.message, directory)
    if unread := UNREAD.fullmatch(problem.where):
        line = None if unread[1] is None else int(unread[1])
        return {"path": [], "line": line, "node": "", "message": message}
    known = document.position(problem.where) if document is not None else ()
    rest = [part for part in problem.where.split("/") if part][len(known) :]
    line = problem.line or (None if document is None else document.line(known))
    return {"path": [*known, *rest], "line": line, "node": problem.node, "message": message}


def clean_message(message: str, directory: Path) -> str:
    """Return a message without keys of the environment, and without the place of the workflows' directory."""
    for place in {str(directory), str(directory.resolve())}:
        message = message.replace(f"{place}{os.sep}", "")
    return Secrets().redactor().text(message)


def clean_problem(problem: Problem, directory: Path) -> Problem:
    """Return a problem that says nothing of where this host keeps its files."""
    where, message, file = (clean_message(each, directory) for each in (problem.where, problem.message, problem.file))
    return replace(problem, where=where, message=message, file=file)


def _find_graph(definition: Definition, faults: Sequence[Problem]) -> Json | None:
    """Return the graph of a definition; None where its edges have a fault, or parts that they depend on."""
    for each in faults:
        key, *rest = each.where.split("/")
        is_implied = key == "nodes" and definition.edges is None and rest[1:2] in (["config"], ["foreach"])
        if key in ("edges", "entry", "ends") or is_implied:
            return None
    try:
        return describe_graph(definition, graph_of(definition))
    except DefinitionError:  # reported as a fault of the definition
        return None
