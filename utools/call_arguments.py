"""The arguments of a call as its tool gets them: a copy of its own, integers as integers; what an `op` takes. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from utools.errors import ToolError
from utools.schema.json_value import LEAVES, NotJson, as_json
from utools.schema.shape import resolver
from utools.tool import Args

IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
DEEPEST: Final = 64
Follow = Callable[[str], Any]
Operations = Mapping[str, tuple[frozenset[str], frozenset[str]]]
"""The arguments that each operation of a tool needs, and those that it may have, too."""


def own_arguments(args: Args, schema: dict[str, Any]) -> Args:
    """Return what a tool may change without changing the record of its call.

    Some models write `2.0`, which is an integer in JSON Schema, and none to most programs.
    """
    if LEAVES.issuperset(map(type, args.values())):
        return dict(args)
    try:
        own: Args = as_json(args)
    except NotJson:  # a program's own call
        return args
    return settle_integers(own, schema) if b".0" in orjson.dumps(own) else own


def settle_integers(args: Args, schema: dict[str, Any]) -> Args:
    """Return arguments with whole numbers as integers where the schema wants those, whatever their size."""
    settled: Args = _settle(args, schema, resolver(schema), 0)
    return settled


def check_operation(args: Args, operations: Operations, always: frozenset[str]) -> None:
    """ToolError for a call that lacks what its `op` needs, or gives what it does not take; each takes `always`."""
    needed, allowed = operations[args["op"]]
    names = args.keys() - always
    if missing := sorted(needed - names):
        raise ToolError("{op} needs {names}", op=args["op"], names=", ".join(missing))
    if extra := sorted(names - needed - allowed):
        raise ToolError("{op} takes no {names}", op=args["op"], names=", ".join(extra))


def _settle(value: Any, schema: Any, follow: Follow, depth: int) -> Any:
    """Return the value with whole numbers as integers where the schema wants those."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return value
    if isinstance(value, float):
        value = int(value) if value.is_integer() and _wants_integer(schema) else value
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        value = {name: _settle(each, properties.get(name, others), follow, depth + 1) for name, each in value.items()}
    elif isinstance(value, list):
        value = [_settle(each, schema.get("items"), follow, depth + 1) for each in value]
    if "$ref" in schema:
        value = _settle(value, follow(schema["$ref"]), follow, depth + 1)
    for branch in (each for keyword in IN_PLACE for each in schema.get(keyword, ())):
        value = _settle(value, branch, follow, depth + 1)
    return value


def _wants_integer(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type")
    return kinds == "integer" or (isinstance(kinds, list) and "integer" in kinds and "number" not in kinds)
