"""The inputs of a run: checked against `inputs`, with its defaults, and enough for every placeholder. Pure."""

from collections.abc import Mapping, Set
from typing import Any

from engine_shim.definition.errors import problem_of, refuse
from engine_shim.definition.model import Definition
from engine_shim.definition.template import look_up, placeholders
from engine_shim.errors import DefinitionError
from utools.schema.compiled import compile_schema
from utools.schema.config_schema import ConfigSchema
from utools.schema.json_value import NotJson, as_json


def external_of(definition: Definition, inputs: Mapping[str, Any], always_run: Set[str]) -> dict[str, Any]:
    """The run's `external`: the inputs, and the `default` of each declared one that is missing.

    DefinitionError for what is not JSON, does not fit `inputs`, or lacks a name that a placeholder in a node that is
    `always_run` reads.
    """
    try:
        external = as_json(dict(inputs))
    except NotJson as error:
        raise DefinitionError(f"an input is not JSON: {error}", where="external") from None
    declared = (definition.inputs or {}).get("properties", {})
    defaults = {
        name: each["default"] for name, each in declared.items() if isinstance(each, dict) and "default" in each
    }
    external = {**as_json(defaults), **external}
    _check_schema(definition, external, sorted(declared))
    _check_references(definition, external, always_run)
    return external


def input_schema(definition: Definition) -> ConfigSchema | None:
    """The validator of `inputs`; None when there are none. DefinitionError when they are not a JSON Schema."""
    return None if definition.inputs is None else compile_schema(definition.inputs, where="inputs")


def _check_schema(definition: Definition, external: Mapping[str, Any], declared: list[str]) -> None:
    schema = input_schema(definition)
    if schema is None:
        return
    known = f"; the inputs are {', '.join(declared)}" if declared else ""
    refuse(problem_of(fault, "external", known) for fault in schema.faults(external))


def _check_references(definition: Definition, external: Mapping[str, Any], always_run: Set[str]) -> None:
    """No run starts that would certainly fail later for want of an input."""
    nodes = enumerate(definition.nodes)
    configs = [(f"nodes/{index}/config", node.config) for index, node in nodes if node.id in always_run]
    for start, value in (*configs, ("outputs", definition.outputs)):
        for where, each in placeholders(value, start):
            if each.path[0] == "external":
                look_up(each, {"external": external}, where)
