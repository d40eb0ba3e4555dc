"""Faults that a run would meet only when it came to them, told before it begins. Pure.

A run that began under an older version is not refused for them: it may never come there.
"""

from collections.abc import Iterator

from engine_shim.definition.conditions import absent_names
from engine_shim.definition.errors import Problem
from engine_shim.definition.inputs import closed_inputs
from engine_shim.definition.model import AGENT, Definition, Edge
from engine_shim.definition.outputs import NodeOutputs, inputs_shape
from engine_shim.definition.template import PATH_ONLY, Placeholder
from engine_shim.definition.uses import ToolUse, uses_of
from engine_shim.errors import DefinitionError
from utools.query import QueryError, find_query_faults, parse
from utools.schema.faults import hint
from utools.schema.value_shape import ANYTHING, Shape, record

PRIMARY = "primary_output"


def check_output_types(definition: Definition, outputs: NodeOutputs) -> Iterator[Problem]:
    """Names that no output can have, and conditions that cannot be evaluated."""
    for index, node in enumerate(definition.nodes):
        if isinstance(node.foreach, str) and (shape := outputs.shape_of_value(node.foreach)).items().is_empty:
            yield Problem(f"nodes/{index}/foreach", f"{node.foreach} gives no list{shape.describe()}")
    yield from _absent_outputs(outputs, definition)
    for index, edge in enumerate(definition.edges or ()):
        if edge.when is not None:
            yield from _condition_faults(edge, edge.when, f"edges/{index}/when", outputs, definition)
    for use in uses_of(definition, (AGENT,)):
        yield from _primary_faults(use, outputs)


def _absent_outputs(outputs: NodeOutputs, definition: Definition) -> Iterator[Problem]:
    """Placeholders that lead to what a node cannot have, optional ones too: they would always be null."""
    nodes = {node.id for node in definition.nodes}
    closed = closed_inputs(definition)  # names beyond these are reported where all placeholders are checked
    for placed in definition.placeholders:
        location, each = placed.where, placed.read
        if isinstance(each, DefinitionError):  # it is reported with all of them
            continue
        fault = None
        if each.is_projection:
            fault = PATH_ONLY
        elif each.path[0] == "nodes" and each.path[1] in nodes:
            fault = _absent_part(each, outputs.read(each.path[1]), 2)
        elif each.path[0] == "item" and placed.node is not None:
            items = outputs.shape_of_value(placed.node.foreach).items()
            fault = None if items.is_empty else _absent_part(each, items, 1)  # what is no list is told above
        elif each.path[0] == "external" and not each.optional and (closed is None or each.path[1] in closed):
            fault = _absent_part(each, inputs_shape(definition), 1)
        if fault:
            yield Problem(location, f"{each}: {fault}")


def _absent_part(each: Placeholder, shape: Shape, start: int) -> str | None:
    """Return what a placeholder leads to that is not there: `shape` is that of its first `start` parts."""
    for depth, part in enumerate(each.path[start:], start=start):
        inner = shape.at(part)
        if inner.is_empty:
            return f"there is no {part!r} in {'.'.join(each.path[:depth])}{shape.describe(part)}"
        shape = inner
    return None


def _condition_faults(
    edge: Edge, when: str, where: str, outputs: NodeOutputs, definition: Definition
) -> Iterator[Problem]:
    try:
        tree = parse(when)
    except QueryError:  # reported where the definition is read
        return
    failed = outputs.failed(edge.source) if edge.on == "error" else None
    data = record(
        {
            "output": failed or outputs.read(edge.source),
            "nodes": outputs.all(),
            "external": _external_shape(definition),
        }
    )
    for message in (*find_query_faults(tree), *absent_names(tree, data)):
        yield Problem(where, message)


def _external_shape(definition: Definition) -> Shape:
    """Return the inputs, by their names alone, where no others may be given."""
    closed = closed_inputs(definition)
    return ANYTHING if closed is None else record(dict.fromkeys(closed, ANYTHING))


def _primary_faults(use: ToolUse, outputs: NodeOutputs) -> Iterator[Problem]:
    """Yield an output of the agent that is to be shown first, and that it does not have."""
    name, schema = use.known().get(PRIMARY), outputs.schema_of(AGENT)
    if isinstance(name, str) and schema is not None and name not in schema["properties"]:
        yield Problem(f"{use.where}/{PRIMARY}", f"there is no output {name!r}; {hint(name, schema['properties'])}")
