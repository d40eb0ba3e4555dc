"""A workflow definition: JSON or YAML, checked, every fault with its path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine_shim.errors import DefinitionError

IDENTIFIER = r"^[A-Za-z0-9_][A-Za-z0-9_\-]*$"
Identifier = Annotated[str, Field(pattern=IDENTIFIER, max_length=128)]


def _later(what: str, usual: Any = None) -> AfterValidator:
    """A key that the format knows and this version cannot run yet: only its usual value is taken."""

    def refuse(value: Any) -> Any:
        if value != usual:
            raise ValueError(f"{what} is not built yet; leave it out")
        return value

    return AfterValidator(refuse)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class EnvName(_Strict):
    """An environment variable that a definition may use. Only plain values can be used so far."""

    name: str
    plain: bool = False


class Node(_Strict):
    """One use of a tool; without an `id` it takes its tool's code."""

    id: Identifier
    tool: str = Field(min_length=1)
    config: dict[str, Any] = {}
    retry: Annotated[dict[str, Any] | None, _later("retry")] = None
    on_error: Annotated[Literal["fail", "continue"], _later("on_error: continue", "fail")] = "fail"
    timeout: Annotated[float | None, _later("a node's timeout")] = None

    @model_validator(mode="before")
    @classmethod
    def _id_from_tool(cls, data: Any) -> Any:
        if isinstance(data, dict) and "id" not in data and isinstance(data.get("tool"), str):
            return {**data, "id": data["tool"].replace(".", "_").replace(":", "_")}
        return data


class Edge(_Strict):
    """`to` runs after `from`."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    when: Annotated[str | None, _later("when")] = None
    ask: Annotated[str | None, _later("ask")] = None
    on: Annotated[str | None, _later("on: error")] = None


class Definition(_Strict):
    """A workflow. Without edges the order follows from the placeholders."""

    id: Identifier
    version: str = "1"
    name: str | None = None
    description: str | None = None
    inputs: dict[str, Any] | None = Field(default=None, description="The JSON Schema of what it is started with")
    env: list[str | EnvName] = []
    nodes: list[Node] = Field(min_length=1)
    edges: list[Edge] | None = None
    outputs: dict[str, Any] = {}
    entry: list[str] | None = None
    ends: list[str] | None = None
    model: str | None = None
    max_iterations: int = Field(default=50, ge=1)
    timeout: Annotated[float | None, _later("a run's timeout")] = None


@dataclass(frozen=True, slots=True)
class Workflow:
    """A checked definition, and the directory that its relative paths start from."""

    definition: Definition
    base: Path = field(default_factory=Path)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return {node.id: node for node in self.definition.nodes}

    def as_json(self) -> dict[str, Any]:
        """The definition as a journal keeps it."""
        return self.definition.model_dump(mode="json", by_alias=True, exclude_unset=True)


def load_workflow(source: str | Path | Mapping[str, Any], *, base: Path | None = None) -> Workflow:
    """A workflow from a JSON or YAML file, or from its parsed form. DefinitionError names the place at fault."""
    if isinstance(source, Mapping):
        return Workflow(_read(source), base or Path())
    path = Path(source)
    return Workflow(_read(_parsed(path)), base or path.parent)


def _parsed(path: Path) -> Any:
    import yaml

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise DefinitionError(f"the definition cannot be read: {reason}", where=str(path)) from None
    try:
        return yaml.safe_load(text)  # JSON is YAML
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise DefinitionError(f"not valid JSON or YAML: {error.problem or error.context}", where=place) from None
    except yaml.YAMLError as error:
        raise DefinitionError(f"not valid JSON or YAML: {error}", where=str(path)) from None


def _read(data: Any) -> Definition:
    if not isinstance(data, Mapping):
        raise DefinitionError("a definition is an object with id and nodes", value=data)
    try:
        definition = Definition.model_validate(dict(data))
    except ValidationError as error:
        raise _definition_error(error) from None
    _check_names(definition)
    return definition


def _definition_error(error: ValidationError) -> DefinitionError:
    first, *others = error.errors(include_url=False, include_context=False)
    place = "/".join(str(part) for part in first["loc"] if part not in ("str", "EnvName"))
    more = f" (and {len(others)} more)" if others else ""
    match first["type"]:
        case "extra_forbidden":
            return DefinitionError(f"unknown key{more}", where=place)
        case "missing":
            return DefinitionError(f"this key is required{more}", where=place)
        case _:
            return DefinitionError(first["msg"].removeprefix("Value error, ") + more, where=place, value=first["input"])


def _check_names(definition: Definition) -> None:
    """Ids are unique, and edges, entry and ends name nodes; an output hides no node's."""
    known: set[str] = set()
    for index, node in enumerate(definition.nodes):
        if node.id in known:
            raise DefinitionError("another node already has this id", where=f"nodes/{index}/id", value=node.id)
        known.add(node.id)
    named = [(f"entry/{i}", name) for i, name in enumerate(definition.entry or ())]
    named += [(f"ends/{i}", name) for i, name in enumerate(definition.ends or ())]
    for index, edge in enumerate(definition.edges or ()):
        named += [(f"edges/{index}/from", edge.source), (f"edges/{index}/to", edge.target)]
    for where, name in named:
        if name not in known:
            raise DefinitionError(f"no such node; there are {', '.join(sorted(known))}", where=where, value=name)
    for name in definition.outputs:
        if name in known:
            raise DefinitionError("a node has this name already; an output may hide none", where=f"outputs/{name}")
