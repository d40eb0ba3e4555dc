"""TestModel: it calls every allowed tool once, with arguments that the tool's own schema and the policy take."""

from typing import Any

import pytest

from agent_core import MemoryJournal, run_agent, verify
from agent_core.testing import TestModel, assert_called, assert_finish, assert_not_called
from agent_core.testing.legal_args import NoLegalValue, make_answer
from agent_core.testing.values import make_values
from utools import Tool, ToolContext, tool
from utools.schema.config_schema import ConfigSchema

CONFIG = {"model": "test", "max_steps": 9, "prompt": "Try them."}
BOTH = pytest.mark.parametrize("protocol", ["json", "tools"])


def made(code: str, schema: dict[str, Any], **about: Any) -> Tool:
    return Tool(code, "Does.", schema, lambda args, context: args, effect="read", foreign=True, **about)


async def run(tools: list[Tool], model: TestModel | None = None, **config: Any) -> Any:
    journal = MemoryJournal()
    given = {"allowed_tools": [each.code for each in tools], **CONFIG, **config}
    output = await run_agent(given, registry=tools, model=model or TestModel(), journal=journal, run_id="r")
    assert verify(journal, run_id="r").ok
    return output


@tool(effect="read")
async def stock(article: str, context: ToolContext, warehouse: str = "main") -> int:
    """Count the pieces of an article."""
    return 12


@tool
def order(article: str, pieces: int) -> str:
    """Order pieces."""
    return "ordered"


@BOTH
async def test_each_tool_is_called_once_and_then_there_is_an_answer(protocol: str) -> None:
    output = await run([stock, order], protocol=protocol)
    assert_finish(output, answer="The test model has called stock, order.")
    assert_called(output, "stock", args={"article": "a"}, times=1)
    assert_called(output, "order", args={"article": "a", "pieces": 0}, times=1)
    assert "warehouse" not in output.trace[0]["action"]["args"]


@BOTH
@pytest.mark.parametrize("form", ["auto", "text"])
async def test_the_narrowing_of_the_node_is_kept(protocol: str, form: str) -> None:
    narrowed = {
        "tool": "order",
        "args": {"properties": {"article": {"pattern": "[A-Z]-[0-9]{2}"}, "pieces": {"minimum": 3, "maximum": 50}}},
    }
    output = await run([order], allowed_tools=[narrowed], protocol=protocol, response_format=form)
    assert_called(output, "order", args={"article": "A-00", "pieces": 3}, times=1)
    assert_finish(output)


async def test_what_the_author_presets_is_not_sent() -> None:
    output = await run([order], allowed_tools=[{"tool": "order", "preset": {"article": "A-17"}}])
    assert output.trace[0]["action"] == {"tool": "order", "args": {"pieces": 0}}
    assert_finish(output)


@BOTH
async def test_alternatives_that_functions_are_not_shown_are_kept(protocol: str) -> None:
    either = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["name"]}, {"required": ["id"]}],
    }
    output = await run([made("find", either)], protocol=protocol)
    assert_called(output, "find", args={"name": "a"}, times=1)
    assert_finish(output)


@BOTH
async def test_an_answer_fits_its_schema(protocol: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "total": {"type": "number", "exclusiveMinimum": 0},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["total", "when"],
    }
    output = await run([stock], protocol=protocol, answer_schema=schema)
    assert_finish(output, answer={"total": 1, "when": "2025-01-01"})
    assert_finish(await run([stock], TestModel(answer=7), protocol=protocol, answer_schema={}), answer=7)


async def test_the_last_step_is_left_to_the_answer() -> None:
    output = await run([stock, order], max_steps=2)
    assert_called(output, "stock", times=1)
    assert_not_called(output, "order")
    assert_finish(output)


async def test_in_plan_mode_the_calls_are_one_plan() -> None:
    output = await run([stock, order], mode="plan")
    assert [each["status"] for each in output.plan] == ["done", "done"]
    assert_finish(output, answer="The test model has called stock, order.")


async def test_given_arguments_are_sent_and_checked_first() -> None:
    output = await run([stock, order], TestModel(args={"order": {"article": "B-2", "pieces": 4}}))
    assert_called(output, "order", args={"article": "B-2", "pieces": 4})
    output = await run([order], TestModel(args={"order": {"article": "B-2"}}))
    assert_finish(output, "model_error", error="TestModel has args for 'order' that it does not take: /pieces")
    output = await run([stock], TestModel(args={"stok": {}}))
    assert_finish(output, "model_error", error="has args for 'stok', which the run does not allow; it allows stock")


async def test_a_tool_without_legal_arguments_is_named_with_what_to_do() -> None:
    output = await run([made("odd", {"type": "object", "properties": {"a": False}, "required": ["a"]})])
    assert_finish(output, "model_error", error="TestModel can make no arguments of the tool 'odd'")
    assert_finish(output, "model_error", error="give them by TestModel(args={'odd': {…}})")


SCHEMAS: dict[str, Any] = {
    "const": {"const": {"a": [1]}},
    "enum": {"enum": ["x", "y"]},
    "enum that a part of it excludes": {"enum": ["x", "y"], "not": {"const": "x"}},
    "nothing": {},
    "no text": {"not": {"type": "string"}},
    "bounds": {"type": "integer", "minimum": 3, "maximum": 10, "multipleOf": 4},
    "between two numbers": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "below zero": {"type": "integer", "exclusiveMaximum": -7},
    "length": {"type": "string", "minLength": 20, "maxLength": 21},
    "empty text": {"type": "string", "maxLength": 0},
    "pattern": {"type": "string", "pattern": r"^[A-Z]{2}\d{3,}-x?(foo|bar)$"},
    "pattern with a length": {"type": "string", "pattern": r"^[\w.]+@[\w.]+$", "minLength": 12},
    "pattern that looks ahead": {"type": "string", "pattern": "^(?!a)[a-z]+$"},
    "pattern of what is not": {"type": "string", "pattern": r"^[^a0]\S\D$"},
    "format": {"type": "string", "format": "date-time"},
    "items": {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True},
    "prefix": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 3},
    "contains": {"type": "array", "contains": {"const": 5}, "minItems": 2},
    "keys": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    "named keys": {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^x_"}},
    "pattern of keys": {"type": "object", "patternProperties": {"^n": {"const": 1}}, "minProperties": 1},
    "together": {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}},
    "condition": {
        "type": "object",
        "properties": {"k": {"enum": ["x", "y"]}},
        "required": ["k"],
        "if": {"properties": {"k": {"const": "x"}}},
        "then": {"required": ["z"]},
    },
    "parts": {"allOf": [{"type": "number", "minimum": 2}, {"type": "integer", "maximum": 2}]},
    "one of": {"oneOf": [{"type": "number"}, {"type": "integer", "minimum": -1}, {"type": "string"}]},
    "several types": {"type": ["null", "string"], "minLength": 3},
    "examples": {"type": "string", "pattern": "^never-made-.*x$", "examples": ["never-made-x"]},
    "recursion": {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                    "value": {"type": "integer", "exclusiveMinimum": 0},
                },
                "required": ["next", "value"],
            }
        },
    },
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_value_is_made_for(schema: Any) -> None:
    compiled = ConfigSchema(schema, foreign=True)
    assert compiled.faults(make_answer(schema)) == []


def test_a_schema_that_nothing_fits_has_no_value_and_ends() -> None:
    endless = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}},
    }
    assert list(make_values(endless)) == []
    with pytest.raises(NoLegalValue, match="a string"):
        make_answer({"const": 1, "type": "string"})
