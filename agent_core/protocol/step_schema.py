"""The JSON Schema of the legal next step, made from the tools that the model may call. Pure."""

from collections.abc import Sequence
from typing import Any

from agent_core.outputs import JsonValue
from agent_core.protocol.alternatives import split_alternatives

Schema = dict[str, Any]

_SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_DATA = ("const", "enum", "default", "examples")
LONGEST_THOUGHT = 500
"""Characters, so that a small model does not think without end; llama.cpp takes bounds below 2000. Only a thought is
bound: in an answer or an argument it would cut off what is right, unseen.
"""


def step_schema(
    tools: Sequence[tuple[str, Schema]], *, answer_schema: Schema | None = None, final_only: bool = False
) -> Schema:
    """JSON Schema 2020-12 of one reply: an action for each (code, schema of its args), or the final.

    A schema without references is used as it is. One with local references is moved to the root's
    `$defs`, so that they still point into it. `final_only` is for the step in which the model must answer.
    Its own part is made of `type`, `enum` and the like, which every vendor takes; it has the order in which a
    grammar makes a model write: what it does first, and why, which it may leave out, last.
    """
    definitions: dict[str, Schema] = {}
    steps = [] if final_only else [_action(code, schema, definitions) for code, schema in tools]
    answer = {"type": "string"} if answer_schema is None else place_schema("answer", answer_schema, definitions)
    schema: Schema = {"anyOf": [*steps, _step("final", {"answer": answer})]}
    return schema | {"$defs": definitions} if definitions else schema


def plan_schema(codes: Sequence[str], *, answer_schema: Schema | None = None) -> Schema:
    """Return the schema of a reply in plan mode: a plan of calls of these tools, or the final where no tool is needed.

    A parameter may be a reference to an earlier step, so that the tools' own schemas do not bind it here.
    """
    schema = step_schema((), answer_schema=answer_schema, final_only=True)
    if not codes:
        return schema
    fields = {
        "step": {"type": "integer"},
        "description": {"type": "string"},
        "tool": {"type": "string", "enum": list(codes)},
        "parameters": {"type": "object"},
    }
    step = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    plan = _step("plan", {"steps": {"type": "array", "items": step, "minItems": 1}})
    return {**schema, "anyOf": [plan, *schema["anyOf"]]}


def with_action(steps: Schema, code: str, schema: Schema) -> Schema:
    """Return the schema of the next step with one more action, whose arguments refer to nothing."""
    *actions, final = steps["anyOf"]
    return {**steps, "anyOf": [*actions, _action(code, schema, {}), final]}


def _action(code: str, schema: Schema, definitions: dict[str, Schema]) -> Schema:
    args = place_schema(f"args.{code}", {"type": "object"} | split_alternatives(schema), definitions)
    return _step("action", {"tool": _word(code), "args": args})


def _step(kind: str, fields: dict[str, Schema]) -> Schema:
    thought = {"type": "string", "maxLength": LONGEST_THOUGHT}
    return {
        "type": "object",
        "properties": {"type": _word(kind), **fields, "thought": thought},
        "required": ["type", *fields],
        "additionalProperties": False,
    }


def _word(word: str) -> Schema:
    return {"type": "string", "enum": [word]}


def place_schema(name: str, schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the schema as it can stand inside another document; `definitions` takes it if it refers to itself."""
    bare = {key: value for key, value in schema.items() if key not in ("$id", "$schema")}
    home = f"#/$defs/{name}"
    moved: Schema = _moved(bare, home)
    if moved == bare:
        return bare
    definitions[name] = moved
    return {"$ref": home}


def _moved(schema: JsonValue, home: str) -> Any:
    """Return a copy whose local references start from `home` instead of from the root of the document."""
    if isinstance(schema, list):
        return [_moved(item, home) for item in schema]
    if not isinstance(schema, dict) or "$id" in schema:  # a schema with its own $id is its own root
        return schema
    return {key: _moved_keyword(key, value, home) for key, value in schema.items()}


def _moved_keyword(key: str, value: JsonValue, home: str) -> Any:
    if key in ("$ref", "$dynamicRef") and isinstance(value, str):
        return home + value[1:] if value == "#" or value.startswith("#/") else value
    if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
        return {name: _moved(item, home) for name, item in value.items()}
    return value if key in _DATA else _moved(value, home)
