"""What the outputs of a definition's nodes can hold, by the schemas of their tools. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine_shim.definition.inputs import lists_inputs
from engine_shim.definition.model import AGENT, INVOKE, SET, Definition, Node
from engine_shim.definition.model_refs import known_config
from engine_shim.definition.template import BRACES, read_whole
from engine_shim.errors import DefinitionError
from utools.schema.compiled import compile_schema
from utools.schema.value_shape import ANYTHING, Shape, list_of, record, shape_of

SchemaOf = Callable[[str], Any]
"""The output schema of a tool by its code; None for one without."""
Below = Callable[[Node], "NodeOutputs | None"]
"""The outputs of the workflow that a node invokes, as far as that is known before a run."""
TEXT, NULL = shape_of({"type": "string"}), shape_of({"type": "null"})
FAILED = record({"error": record({"kind": TEXT, "message": TEXT}), "output": ANYTHING})
"""What a plain node leaves that has failed, or a nested run that could not start."""

SKIPPED = {
    "type": "object",
    "properties": {"skipped": {"const": True}, "note": {"type": "string"}},
    "additionalProperties": False,
}
"""What a write gives that was in doubt, and that a person skipped."""

ITEM_ERRORS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"index": {"type": "integer"}, "kind": {"type": "string"}, "message": {"type": "string"}},
        "additionalProperties": False,
    },
}
"""What went wrong with the items of a node with `foreach`."""


class NodeOutputs:
    """The shapes of the outputs of one definition's nodes."""

    def __init__(
        self, definition: Definition, schema_of: SchemaOf, below: Below, may_be_skipped: Callable[[str], bool]
    ) -> None:
        self._definition, self.schema_of, self._below = definition, schema_of, below
        self._may_be_skipped = may_be_skipped
        self._nodes = {node.id: node for node in definition.nodes}
        self._handled = {edge.source for edge in definition.edges or () if edge.on == "error"}
        self._succeeded: dict[str, Shape] = {}
        self._failed: dict[str, Shape] = {}

    def succeeded(self, name: str) -> Shape:
        """Return what a node gives that has done its work."""
        if name not in self._succeeded:
            self._succeeded[name] = ANYTHING  # workflows may invoke each other in a circle
            self._succeeded[name] = self._shape_of(self._nodes[name])
        return self._succeeded[name]

    def failed(self, name: str) -> Shape:
        """Return what a node leaves that has failed; a run of its own leaves what it has."""
        if name not in self._failed:
            self._failed[name] = ANYTHING
            self._failed[name] = FAILED | self._left_by(self._nodes[name])
        return self._failed[name]

    def _left_by(self, node: Node) -> Shape:
        """Return what the run of its own leaves that a node has begun."""
        if node.foreach is not None:
            return FAILED
        schema = self.schema_of(node.tool)
        if node.tool == INVOKE and schema is not None and (invoked := self._below(node)):
            return _with(shape_of(schema), schema["properties"], outputs=invoked.left())
        return self.succeeded(node.id) if node.tool in (AGENT, INVOKE) else FAILED

    def goes_on(self, name: str) -> bool:
        """Return whether the run may continue after the node has failed."""
        return name in self._handled or self._nodes[name].on_error != "fail"

    def read(self, name: str) -> Shape:
        """Return what a later node, or the end of the run, may find of a node."""
        return self.succeeded(name) | self.failed(name) if self.goes_on(name) else self.succeeded(name)

    def all(self) -> Shape:
        """Return the outputs of all nodes, by node."""
        return record({name: self.read(name) for name in self._nodes})

    def result(self) -> Shape:
        """Return the `outputs` of the whole workflow: those that it declares, where it does."""
        declared = {name: self.shape_of_value(value) for name, value in self._definition.outputs.items()}
        return record(declared) if declared else self.all()

    def left(self) -> Shape:
        """Return the `outputs` of the whole workflow when it has failed: none of those that it declares, and where it
        declares none, those of its nodes, any of which may have."""
        if self._definition.outputs:
            return record({})
        return record({name: self.succeeded(name) | self.failed(name) for name in self._nodes})

    def _shape_of(self, node: Node) -> Shape:
        if node.foreach is None:
            return self._shape_of_call(node)
        results = list_of(self._shape_of_call(node) | NULL)
        return record({"results": results, "errors": shape_of(ITEM_ERRORS)})

    def _shape_of_call(self, node: Node) -> Shape:
        schema = self.schema_of(node.tool)
        usual = ANYTHING if schema is None else shape_of(schema)
        if node.tool == AGENT and schema is not None:
            return _with(usual, _agent_keys(schema, node), final_answer=_answer_shape(node) | NULL)
        if node.tool == INVOKE and schema is not None and (invoked := self._below(node)):
            return _with(usual, schema["properties"], outputs=invoked.result())
        if node.tool == SET and schema is not None:
            return record({name: self.shape_of_value(value) for name, value in node.config.items()})
        return usual | shape_of(SKIPPED) if schema is not None and self._may_be_skipped(node.tool) else usual

    def shape_of_value(self, value: Any) -> Shape:
        """Return the shape of what a template is filled to."""
        if not isinstance(value, str):
            return ANYTHING
        try:
            placeholder = read_whole(value)
        except DefinitionError:  # reported where placeholders are checked
            return ANYTHING
        if placeholder is None:
            return TEXT
        root, *path = placeholder.path
        if root == "external":
            shape = inputs_shape(self._definition)
        elif root == "nodes" and path[0] in self._nodes:
            shape = record({path[0]: self.read(path[0])})
        else:
            return ANYTHING
        for part in path:
            shape = shape.at(part)
        if shape.is_empty:  # a fault of this definition, which is reported there
            return ANYTHING
        return shape | NULL if placeholder.optional else shape


def inputs_shape(definition: Definition) -> Shape:
    """Return what a run is given: the inputs that are listed alone, where no others are meant."""
    if definition.inputs is None:
        return ANYTHING
    try:
        whole = shape_of(compile_schema({"type": "object", **definition.inputs}, where="inputs").schema)
    except DefinitionError:  # reported as a fault of the inputs
        return ANYTHING
    if not lists_inputs(definition):
        return whole
    return record({name: whole.at(name) for name in whole.keys()})  # noqa: SIM118 - a method of shapes


def _answer_shape(node: Node) -> Shape:
    """Return what an agent answers: a text, unless its config has a schema."""
    if "answer_schema" not in node.config or node.config["answer_schema"] is None:
        return TEXT
    schema = known_config(node.config).get("answer_schema")
    try:
        return ANYTHING if schema is None else shape_of(compile_schema(schema, where=AGENT).schema)
    except DefinitionError:  # reported as a fault of the config
        return ANYTHING


def _agent_keys(schema: Mapping[str, Any], node: Node) -> list[str]:
    """Return the keys of what an agent gives; a plan in plan mode alone."""
    mode = node.config.get("mode", "react")
    may_plan = mode == "plan" or (isinstance(mode, str) and BRACES in mode)
    return [key for key in schema["properties"] if key != "plan" or may_plan]


def _with(usual: Shape, keys: Iterable[str], **known: Shape) -> Shape:
    """Return the shape of an object with these keys alone, with more known of some of them."""
    return record({**{key: usual.at(key) for key in keys}, **known})
