"""Definition: the keys of a workflow definition, read from JSON; every fault has its place. Pure."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent_core.records import TURN_TOOL
from engine_shim.definition.errors import Problem, problems_of, refuse
from engine_shim.definition.template import Placeholder, read_placeholders
from engine_shim.errors import DefinitionError
from utools.query import QueryError, parse
from utools.schema.faults import hint
from utools.schema.json_value import NotJson, as_json
from utools.schema.model_faults import keys_of

AGENT, INVOKE = "agent_core", "invoke_workflow"
"""The codes of the tools that are runs of their own: agents, and other workflows."""
SET = "set"
"""The code of the tool that gives what its config is."""
RESPOND = "respond"
"""The code of the tool whose output a caller gets who waits for the run over HTTP."""
KEEPS_ROLES = ("context_manager", TURN_TOOL)
"""The codes of the tools whose messages say by their roles who wrote them."""
ROOT = "flow"
"""The strand of a workflow's run."""
IDENTIFIER = r"^[A-Za-z0-9_][A-Za-z0-9_\-]*$"
Identifier = Annotated[str, Field(pattern=IDENTIFIER, max_length=128)]
PATTERNS = {IDENTIFIER: "must be letters, digits, _ and -, not starting with -"}
"""What our patterns ask for."""


def _refuse_bool(value: Any) -> Any:
    """Return what may be a number. ValueError for true and false, which pydantic takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Number = Annotated[float, BeforeValidator(_refuse_bool)]
Seconds = Annotated[Number, Field(ge=0, le=10_000_000, allow_inf_nan=False)]
Names = Annotated[
    list[str],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value, json_schema_input_type=str | list[str]),
]


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class EnvName(_Strict):
    """An environment variable that a definition may use. Unless it is plain, only the tool itself gets its value."""

    name: str
    plain: bool = False


class Retry(_Strict):
    """How often a node is tried in all, and the seconds before each further try: `delay`, then `backoff` times more."""

    max_attempts: Whole = Field(ge=1, le=100)
    delay: Seconds = 0.0
    backoff: Number = Field(default=2.0, ge=1, le=100)


class Node(_Strict):
    """One use of a tool; without an `id` it takes its tool's code."""

    id: Identifier = Field(default="", description="Absent: its tool's code", json_schema_extra=_without_default)
    description: str | None = Field(default=None, description="For readers of the definition")
    tool: str = Field(min_length=1)
    config: dict[str, Any] = {}
    foreach: str | list[Any] | None = Field(
        default=None, description="A list, or the placeholder of one: the tool is called once for each {{item}}"
    )
    max_parallel: Whole = Field(default=4, ge=1, le=64, description="How many items are under way at once")
    on_item_error: Literal["fail", "continue"] = "fail"
    retry: Retry | None = None
    on_error: Literal["fail", "continue", "fail_at_end"] = Field(
        default="fail",
        description="Whether the run goes on when this node has failed; fail_at_end: to its end, and fails there",
    )
    approval: Literal["always", "on_write", "never"] = Field(
        default="never", description="Whether a person has to let the call through before it is made"
    )
    timeout: Seconds | None = Field(default=None, description="Active seconds for all its attempts; 0: unlimited")

    def templates(self, where: str) -> Iterator[tuple[str, Any]]:
        """Yield what may hold placeholders, each with its place; `where` is the node's."""
        yield f"{where}/config", self.config
        if self.foreach is not None:
            yield f"{where}/foreach", self.foreach

    @model_validator(mode="before")
    @classmethod
    def _id_from_tool(cls, data: Any) -> Any:
        if isinstance(data, dict) and "id" not in data and isinstance(data.get("tool"), str):
            return {**data, "id": data["tool"].replace(".", "_").replace(":", "_")}
        return data


class Edge(_Strict):
    """`to` runs after `from`: with `when`, a JMESPath over {output, nodes, external}, only if that holds, with `ask`,
    only if a model says that the sentence is true of the output."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    when: str | None = None
    ask: str | None = Field(default=None, min_length=1)
    model: str | None = Field(default=None, description="Judges the sentence; absent: the definition's model")
    on: Literal["error"] | None = Field(default=None, description="error: taken when the node has failed")


class PlacedPlaceholder(NamedTuple):
    """A placeholder at its place in a definition; or, at the place of one that cannot be read, why.

    `value` is the place of the value that holds it: the config or the list of a `node`, or the outputs.
    """

    where: str
    value: str
    node: Node | None
    read: Placeholder | DefinitionError

    def require(self) -> Placeholder:
        """Return the placeholder; DefinitionError for one that cannot be read."""
        if isinstance(self.read, DefinitionError):
            raise self.read
        return self.read


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
    entry: Names | None = Field(default=None, min_length=1, description="Absent: the nodes without incoming edges")
    ends: Names | None = Field(default=None, description="Absent: the nodes without outgoing edges")
    model: str | None = Field(default=None, description="Judges the `ask` edges that name no model")
    max_iterations: Whole = Field(default=50, ge=1, description="How often each loop may be gone round again")
    max_visits: Whole | None = Field(
        default=None, ge=1, description="How many visits all nodes together may have; absent: unlimited"
    )
    timeout: Seconds | None = Field(default=None, description="Active seconds of a run; 0: unlimited")

    @cached_property
    def placeholders(self) -> tuple[PlacedPlaceholder, ...]:
        """All placeholders of the nodes, in their order, and of the outputs."""
        return tuple(
            PlacedPlaceholder(where, place, node, read)
            for node, place, value in self._find_templates()
            for where, read in read_placeholders(value, place)
        )

    @cached_property
    def placeholders_by_value(self) -> Mapping[str, Sequence[PlacedPlaceholder]]:
        """The same by the place of the value that holds them, such as nodes/0/config."""
        found: dict[str, list[PlacedPlaceholder]] = {place: [] for place, _ in self.templates()}
        for each in self.placeholders:
            found[each.value].append(each)
        return found

    def templates(self) -> Iterator[tuple[str, Any]]:
        """Yield each value that may hold placeholders, with its place."""
        return ((place, value) for _, place, value in self._find_templates())

    def _find_templates(self) -> Iterator[tuple[Node | None, str, Any]]:
        for index, node in enumerate(self.nodes):
            for place, value in node.templates(f"nodes/{index}"):
                yield node, place, value
        yield None, "outputs", self.outputs

    def __copy__(self) -> Self:
        copied = super().__copy__()
        for name in ("placeholders", "placeholders_by_value", "secrets", "plain"):
            vars(copied).pop(name, None)  # a copy may get other nodes
        return copied

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The variables whose values only tools get."""
        return frozenset(entry if isinstance(entry, str) else entry.name for entry in self.env) - self.plain

    @cached_property
    def plain(self) -> frozenset[str]:
        """The variables whose values are written into records."""
        return frozenset(entry.name for entry in self.env if isinstance(entry, EnvName) and entry.plain)


def read_definition(data: Mapping[str, Any]) -> Definition:
    """Return the definition in a JSON object. DefinitionErrors names each place at fault."""
    definition, problems = read_parts(data)
    refuse(problems)
    assert definition is not None  # nothing is wrong with it
    return definition


def read_parts(data: Mapping[str, Any], where: str = "") -> tuple[Definition | None, list[Problem]]:
    """Return the definition without its parts of a wrong form, and what is wrong; None where too little is left of it.
    `where` is the file, if any."""
    problems: list[Problem] = []
    try:
        value = as_json(dict(data))
    except NotJson as error:
        raise DefinitionError(f"a value is not JSON: {error}", where=where) from None
    try:
        definition: Definition | None = Definition.model_validate(value)
    except ValidationError as error:
        problems += problems_of(error, keys_of(Definition), PATTERNS)
        definition = _read_sound(value, [each.where.split("/") for each in problems])
    if definition is not None:
        problems += _name_problems(definition)
        problems += _reference_problems(definition)
        problems += _condition_problems(definition)
    return definition, problems


def _read_sound(value: dict[str, Any], faulty: Iterable[list[str]]) -> Definition | None:
    """Return the definition without the keys at these places; None where others cannot be judged without them."""
    sound = copy.deepcopy(value)
    for key, *rest in faulty:
        if key == "id":
            sound["id"] = "unnamed"
        elif key == "nodes" and len(rest) > 1 and rest[1] not in ("id", "tool"):
            sound["nodes"][int(rest[0])].pop(rest[1], None)
        elif key in ("nodes", "env"):
            return None
        else:
            sound.pop(key, None)
    try:
        return Definition.model_validate(sound)
    except ValidationError:
        return None


def _name_problems(definition: Definition) -> Iterator[Problem]:
    """Ids must be unique."""
    known: dict[str, None] = {}
    for index, node in enumerate(definition.nodes):
        if node.id in known:
            yield Problem(
                f"nodes/{index}/id", f"another node is called {node.id!r} already; give one of them another id"
            )
        known[node.id] = None


def _condition_problems(definition: Definition) -> Iterator[Problem]:
    """Yield conditions that cannot be read, sentences without a model that judges them, and edges that stand twice."""
    seen: set[object] = set()
    for index, edge in enumerate(definition.edges or ()):
        same = (edge.source, edge.target, edge.when if edge.ask is None else "ask", edge.on)
        if same in seen:
            yield Problem(f"edges/{index}", f"this edge from {edge.source!r} to {edge.target!r} is given twice")
        seen.add(same)
        if edge.ask is not None and edge.when is not None:
            yield Problem(f"edges/{index}", "takes `when` or `ask`, not both")
        if edge.ask is not None and edge.model is None and definition.model is None:
            yield Problem("model", f"name the model that judges what edges/{index} asks")
        if edge.ask is None and edge.model is not None:
            yield Problem(f"edges/{index}/model", "belongs to `ask`: nothing else of an edge is judged by a model")
        try:
            parse("@" if edge.when is None else edge.when)
        except QueryError as error:
            advice = "; a number stands in backquotes: total > `100`" if "(NUMBER)" in str(error) else ""
            if "{{" in (edge.when or ""):
                advice = "; it is no placeholder: write nodes.ID.x, external.x or output.x without braces"
            yield Problem(f"edges/{index}/when", f"not a JMESPath: {error}{advice}")


def _reference_problems(definition: Definition) -> Iterator[Problem]:
    """Edges, entry and ends must name nodes."""
    known = dict.fromkeys(node.id for node in definition.nodes)
    edges = enumerate(definition.edges or ())
    locations = [(f"edges/{i}/{key}", name) for i, e in edges for key, name in (("from", e.source), ("to", e.target))]
    for key, names in (("entry", definition.entry), ("ends", definition.ends)):
        locations += [(f"{key}/{index}", name) for index, name in enumerate(names or ())]
    for where, name in locations:
        if name not in known:
            yield Problem(where, f"there is no node {name!r}; {hint(name, known)}")
