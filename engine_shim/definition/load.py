"""Workflow: a definition and its directory, loaded from a JSON or YAML file or from its parsed form."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine_shim.definition.errors import DefinitionErrors, Problem
from engine_shim.definition.model import Definition, Node, read_definition
from engine_shim.errors import DefinitionError
from utools.document import Document, read_document


@dataclass(frozen=True, slots=True)
class Workflow:
    """A definition that can be read, and the directory that its relative paths start from; its file, if it has one."""

    definition: Definition
    base: Path = field(default_factory=Path)
    document: Document | None = field(default=None, repr=False, compare=False)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.definition.nodes}

    def as_json(self) -> dict[str, Any]:
        """The definition as a journal records it."""
        return self.definition.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def locate(self, problem: Problem) -> Problem:
        """The problem with the file, the line and the node that it is in."""
        return problem if self.document is None else _locate(problem, self.document)


def load_workflow(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    base: str | os.PathLike[str] | None = None,
    shown: str | None = None,
) -> Workflow:
    """A workflow from a JSON or YAML file, or from its parsed form. DefinitionError names each place at fault.

    `shown` is the file's name in errors, where its path is not for the reader.
    """
    if isinstance(source, Mapping):
        return Workflow(read_definition(source), Path(base or ""))
    if not isinstance(source, str | os.PathLike):
        message = "must be a Workflow, a definition, or the path of its file"
        raise DefinitionError(message, where="workflow", value=source)
    path = Path(source)
    document = read_document(path, "the definition")
    document = replace(document, path=Path(shown or path))
    if not isinstance(document.data, Mapping):
        message = "a definition is an object with id and nodes"
        raise DefinitionError(message, where=str(document.path), value=document.data)
    try:
        definition = read_definition(document.data, str(document.path))
    except DefinitionErrors as error:
        raise DefinitionErrors([_locate(each, document) for each in error.problems]) from None
    return Workflow(definition, Path(base or path.parent), document)


def _locate(problem: Problem, document: Document) -> Problem:
    if problem.file:
        return problem
    position = document.position(problem.where)
    node = document.data["nodes"][position[1]] if position[:1] == ("nodes",) and len(position) > 1 else None
    name = (node.get("id") or node.get("tool")) if isinstance(node, Mapping) else None
    line = document.line(position)
    return replace(problem, file=str(document.path), line=line, node=name if isinstance(name, str) else "")
