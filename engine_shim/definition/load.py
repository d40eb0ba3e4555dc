"""Workflow: a definition and its directory, loaded from a JSON or YAML file or from its parsed form."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from engine_shim.definition.errors import Problem, by_line, refuse
from engine_shim.definition.model import Definition, Node, read_parts
from engine_shim.errors import DefinitionError
from utools.document import Document, read_document


@dataclass(frozen=True, slots=True)
class Bounds:
    """`from_http` says that a definition came over HTTP. What it invokes lies in a directory `within`, unless that is
    None, and in none `without`; it is no file that `is_foreign` to a definition."""

    from_http: bool = False
    within: Sequence[Path] | None = None
    without: Sequence[Path] = ()
    is_foreign: Callable[[Path], bool] = lambda file: False


UNBOUND: Final = Bounds()
HOST_STEMS: Final = ("agent-core", "agent_core")
"""How the files of host configurations are called, without their suffix."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A definition that can be read, and the directory that its relative paths start from; its file, if it has one."""

    definition: Definition
    base: Path = field(default_factory=Path)
    document: Document | None = field(default=None, repr=False, compare=False)
    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The places whose values the caller gave in place of the file's, each with what to call it: --model."""
    bounds: Bounds = field(default=UNBOUND, repr=False, compare=False)
    agent: str | None = None
    """The agent of the host's catalogue whose turn it is; None for any other workflow."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by their ids."""
        return {node.id: node for node in self.definition.nodes}

    def as_json(self) -> dict[str, Any]:
        """Return the definition as a journal records it."""
        return self.definition.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with the file, the line and the node that it is in; or with the option that gave the
        value."""
        place = problem.where if self.given else ""
        while place:
            if place in self.given:
                return Problem(f"{self.given[place]}{problem.where.removeprefix(place)}", problem.message)
            place = place.rpartition("/")[0]
        return problem if self.document is None else _locate(problem, self.document)


def load_workflow(
    source: str | os.PathLike[str] | Document | Mapping[str, Any],
    *,
    base: str | os.PathLike[str] | None = None,
    shown: str | None = None,
) -> Workflow:
    """Load a workflow from a JSON or YAML file, or from its parsed form.

    Args:
        source: The file's path, the file as it was read, or the definition as a mapping.
        base: The directory that relative paths of the definition start from; by default that of the file.
        shown: The file's name in errors, where its path is not for the reader.

    Returns:
        The workflow, for `Engine.run`.

    Raises:
        DefinitionErrors: Each place at fault, with its line.

    Example:
        ```python
        from engine_shim import load_workflow

        flow = load_workflow({"id": "sum", "nodes": [{"id": "add", "tool": "calculator", "config": {}}]})
        assert list(flow.nodes) == ["add"]
        ```
    """
    workflow, problems = load_parts(source, base=base, shown=shown)
    refuse(problems)
    assert workflow is not None  # nothing is wrong with it
    return workflow


def load_parts(
    source: str | os.PathLike[str] | Document | Mapping[str, Any],
    *,
    base: str | os.PathLike[str] | None = None,
    shown: str | None = None,
) -> tuple[Workflow | None, list[Problem]]:
    """Return the workflow without the parts of its definition that have a wrong form, and what is wrong with them.

    None where too little is left. DefinitionError for a file that cannot be read.
    """
    if isinstance(source, Mapping):
        definition, problems = read_parts(source)
        return (None if definition is None else Workflow(definition, Path(base or ""))), problems
    if not isinstance(source, str | os.PathLike | Document):
        message = "must be a Workflow, a definition, or the path of its file"
        raise DefinitionError(message, where="workflow", value=source)
    document = source if isinstance(source, Document) else read_document(Path(source), "the definition")
    path = document.path
    document = replace(document, path=Path(shown or path))
    if not isinstance(document.data, Mapping):
        message = "a definition is an object with id and nodes"
        raise DefinitionError(message, where=str(document.path), value=document.data)
    if (other := _find_other_purpose(document)) is not None:
        raise DefinitionError(other, where=str(document.path))
    definition, problems = read_parts(document.data, str(document.path))
    located = by_line(_locate(each, document) for each in problems)
    return (None if definition is None else Workflow(definition, Path(base or path.parent), document)), located


_OTHER_FILES: Final = {
    "cases": (
        "these are cases, not a workflow; `agent-core eval` measures by them, `agent-core test` runs FLOW.test.yaml"
    ),
    **dict.fromkeys(
        ("skill_policy", "runtime_policy", "mcp_policy", "system_prompt"),
        "this is an agent, not a workflow; in the directory of the host's agents, `agent-core agents` checks it",
    ),
    **dict.fromkeys(
        ("cron", "webhook"), "this is a trigger, not a workflow; `agent-core doctor` checks those of the host"
    ),
    **dict.fromkeys(
        ("openapi", "swagger"), "this is an OpenAPI document, not a workflow; agent-core.yaml names it under `openapi`"
    ),
}
"""What a file is that lies beside workflows, by a key of it."""


def _find_other_purpose(document: Document) -> str | None:
    """Return what a file is that lies beside workflows and is none; None for one that should be a workflow."""
    if not {"id", "nodes"}.isdisjoint(document.data):
        return None
    if document.path.stem in HOST_STEMS:
        return "this is a host's configuration, not a workflow; `agent-core doctor --config FILE` checks it"
    return next((told for key, told in _OTHER_FILES.items() if key in document.data), None)


def _locate(problem: Problem, document: Document) -> Problem:
    if problem.file:
        return problem
    position = document.position(problem.where)
    node = document.data["nodes"][position[1]] if position[:1] == ("nodes",) and len(position) > 1 else None
    name = (node.get("id") or node.get("tool")) if isinstance(node, Mapping) else None
    return replace(document.locate(problem), node=name if isinstance(name, str) else "")
