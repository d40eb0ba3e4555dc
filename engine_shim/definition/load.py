"""Workflow: a definition and its directory, loaded from a JSON or YAML file or from its parsed form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine_shim.definition.model import Definition, Node, read_definition
from engine_shim.errors import DefinitionError
from utools.document import read_document


@dataclass(frozen=True, slots=True)
class Workflow:
    """A definition that can be read, and the directory that its relative paths start from."""

    definition: Definition
    base: Path = field(default_factory=Path)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.definition.nodes}

    def as_json(self) -> dict[str, Any]:
        """The definition as a journal records it."""
        return self.definition.model_dump(mode="json", by_alias=True, exclude_unset=True)


def load_workflow(source: str | Path | Mapping[str, Any], *, base: Path | None = None) -> Workflow:
    """A workflow from a JSON or YAML file, or from its parsed form. DefinitionError names each place at fault."""
    if isinstance(source, Mapping):
        return Workflow(read_definition(source), base or Path())
    path = Path(source)
    data = read_document(path, "the definition").data
    if not isinstance(data, Mapping):
        raise DefinitionError("a definition is an object with id and nodes", where=str(path), value=data)
    return Workflow(read_definition(data, str(path)), base or path.parent)
