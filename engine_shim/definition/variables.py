"""list_variables(): the placeholders that a definition can use, for those who write one. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from engine_shim.definition.inputs import input_schema
from engine_shim.definition.model import Definition
from engine_shim.definition.outputs import NodeOutputs
from engine_shim.definition.template import write_path
from engine_shim.errors import DefinitionError
from utools.schema.value_shape import Shape, record, shape_of

ANY = "any"
DEEP = 2
"""How deep into the objects of an output names are listed."""
MOST_KEYS, MOST = 100, 5000
"""How many keys of one object are listed, and how many variables."""


class Variable(NamedTuple):
    """What a placeholder can name. `node` is the one whose output it is of, empty for any other.

    `type` has the JSON types that the value may have, such as `string|null`, or `any`. It is `certain` that the value
    is there, once the node has run.
    """

    node: str
    path: str
    type: str
    certain: bool

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def list_variables(definition: Definition, outputs: NodeOutputs) -> list[Variable]:
    """Return all variables: the inputs, the environment, the run, and what each node gives."""
    found = [*_walk("", ("external",), _inputs_of(definition), DEEP)][1:]
    found += [Variable("", write_path(("env", name)), "string", True) for name in _environment(definition)]
    found += [Variable("", "run.id", "string", True), Variable("", "run.messages", "array", True)]
    for node in definition.nodes:
        found += _walk(node.id, ("nodes", node.id), outputs.read(node.id), DEEP)
        if len(found) > MOST:
            break
    return found[:MOST]


def _walk(node: str, path: tuple[str, ...], shape: Shape, deep: int, certain: bool = True) -> Iterator[Variable]:
    """Yield a value, and what it has below it."""
    yield Variable(node, write_path(path), "|".join(shape.kinds()) or ANY, certain)
    for key in shape.keys()[:MOST_KEYS] if deep else ():
        if "{" not in key and "}" not in key:  # no placeholder can name such a key
            yield from _walk(node, (*path, key), shape.at(key), deep - 1, certain and shape.always_has(key))


def _inputs_of(definition: Definition) -> Shape:
    """Return what a run is started with; an input with a default is always there."""
    try:
        checked = input_schema(definition)
    except DefinitionError:  # reported as a fault of the definition
        checked = None
    if checked is None:
        return record({})
    schema = checked.schema
    properties = schema.get("properties", {})
    given = [name for name, each in properties.items() if isinstance(each, dict) and "default" in each]
    return shape_of({"type": "object", **schema, "required": [*schema.get("required", ()), *given]})


def _environment(definition: Definition) -> list[str]:
    return sorted(definition.secrets | definition.plain)
