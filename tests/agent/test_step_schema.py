"""The schema of the legal next step: it lets through what parse and the tools' schemas would, and nothing else."""

import copy
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_core.protocol.parse import Action, Final, ProtocolError, parse, render
from agent_core.protocol.step_schema import step_schema
from utools.schema.config_schema import visible

SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
    "required": ["query"],
    "additionalProperties": False,
}
TREE = {  # refers to itself, to its own definitions and to one of its own properties
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://tools.example/tree",
    "type": "object",
    "properties": {
        "colour": {"$ref": "#/$defs/colour"},
        "other": {"$ref": "#/properties/colour"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "$defs": {"colour": {"enum": ["red", "green"]}},
    "additionalProperties": False,
}
COLOUR = {  # names its definition as TREE does, and means something else
    "type": "object",
    "properties": {"colour": {"$ref": "#/$defs/colour"}},
    "$defs": {"colour": {"type": "integer"}},
}
TOOLS: list[tuple[str, dict[str, Any]]] = [("search", SEARCH), ("tree.grow", TREE), ("mcp:paint", COLOUR), ("now", {})]
ANSWER = {
    "type": "object",
    "properties": {"sum": {"$ref": "#/$defs/amount"}},
    "required": ["sum"],
    "$defs": {"amount": {"type": "number"}},
}


def allows(schema: dict[str, Any], step: Any) -> bool:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid(step)


LEGAL = {
    "action": Action("search", {"query": "rain"}),
    "action with a thought": Action("search", {"query": "rain", "limit": 3}, "Look."),
    "action whose schema refers to its definitions": Action("tree.grow", {"colour": "red"}),
    "action whose schema refers to a property": Action("tree.grow", {"other": "green"}),
    "action whose schema refers to itself": Action("tree.grow", {"children": [{"children": [{"colour": "red"}]}]}),
    "definition of the same name in another tool": Action("mcp:paint", {"colour": 7}),
    "tool without a schema of its own": Action("now", {"anything": 1}),
    "final": Final("It rains."),
    "final with a thought": Final("It rains.", "Done."),
}


@pytest.mark.parametrize("step", LEGAL.values(), ids=LEGAL)
def test_rendered_legal_step_is_valid(step: Action | Final) -> None:
    assert allows(step_schema(TOOLS), json.loads(render(step)))


ILLEGAL = {
    "argument of the wrong type": render(Action("search", {"query": 7})),
    "argument missing": render(Action("search", {})),
    "argument unknown": render(Action("search", {"query": "x", "page": 2})),
    "tool off the list": render(Action("shell", {"query": "x"})),
    "arguments of another tool": render(Action("search", {"colour": "red"})),
    "definition broken": render(Action("tree.grow", {"colour": "blue"})),
    "referred property broken": render(Action("tree.grow", {"other": "blue"})),
    "broken two levels down": render(Action("tree.grow", {"children": [{"children": [{"colour": "blue"}]}]})),
    "another tool's definition": render(Action("mcp:paint", {"colour": "red"})),
    "args no object": '{"type":"action","tool":"now","args":[]}',
    "args missing": '{"type":"action","tool":"now"}',
    "extra field": '{"type":"action","tool":"now","args":{},"id":1}',
    "thought no string": '{"type":"final","answer":"x","thought":1}',
    "answer no string": '{"type":"final","answer":7}',
    "answer missing": '{"type":"final"}',
    "both action and final": '{"type":"action","tool":"now","args":{},"answer":"x"}',
    "observation": '{"type":"observation","answer":"x"}',
    "type missing": '{"answer":"x"}',
    "no object": '"x"',
}


@pytest.mark.parametrize("text", ILLEGAL.values(), ids=ILLEGAL)
def test_illegal_step_is_not_valid(text: str) -> None:
    assert not allows(step_schema(TOOLS), json.loads(text))


@pytest.mark.parametrize("text", ILLEGAL.values(), ids=ILLEGAL)
def test_what_parse_refuses_the_schema_refuses(text: str) -> None:
    if isinstance(parse(text), ProtocolError):
        assert not allows(step_schema([(code, {}) for code, _ in TOOLS]), json.loads(text))


EITHER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "first": {"type": "string"}, "n": {}},
    "required": ["n"],
    "additionalProperties": False,
    "oneOf": [{"required": ["id"]}, {"required": ["name", "first"]}],
}


def test_alternatives_that_only_require_become_whole_objects() -> None:
    args = step_schema([("find", EITHER)])["anyOf"][0]["properties"]["args"]
    assert args.keys() == {"type", "anyOf"}
    assert [each["required"] for each in args["anyOf"]] == [["n", "id"], ["n", "name", "first"]]
    assert all(each["properties"] == EITHER["properties"] for each in args["anyOf"])
    for found in ({"id": 1, "n": 2}, {"name": "a", "first": "b", "n": 2}, {"id": 1}, {"n": 2}, {"name": "a", "n": 2}):
        step = json.loads(render(Action("find", found)))
        assert allows(step_schema([("find", EITHER)]), step) is Draft202012Validator(EITHER).is_valid(found)


def test_what_an_author_has_set_is_not_required_of_the_model() -> None:
    shown = visible(EITHER, ["first"])
    args = step_schema([("find", shown)])["anyOf"][0]["properties"]["args"]
    assert [each["required"] for each in args["anyOf"]] == [["n", "id"], ["n", "name"]]


UNSPLIT: dict[str, dict[str, Any]] = {
    "alternatives with schemas of their own": {**EITHER, "oneOf": [{"required": ["id"], "properties": {"n": {}}}]},
    "no properties beside": {"oneOf": EITHER["oneOf"]},
    "none": {key: value for key, value in EITHER.items() if key != "oneOf"},
}


@pytest.mark.parametrize("schema", UNSPLIT.values(), ids=UNSPLIT)
def test_any_other_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert step_schema([("find", schema)])["anyOf"][0]["properties"]["args"] == {"type": "object"} | schema


def test_dependent_schemas_that_say_more_are_kept() -> None:
    more = {"id": {"properties": {"n": {"type": "integer"}}}}
    args = step_schema([("find", EITHER | {"dependentSchemas": more})])["anyOf"][0]["properties"]["args"]
    assert args["dependentSchemas"] == more


def test_schema_without_references_stands_as_given() -> None:
    action = step_schema([("search", SEARCH)])["anyOf"][0]
    assert action["properties"]["args"] == SEARCH
    assert action["properties"]["tool"] == {"type": "string", "enum": ["search"]}
    assert list(action["properties"]) == ["type", "tool", "args", "thought"]


def test_only_a_thought_is_bound() -> None:
    schema = step_schema(TOOLS)
    assert allows(schema, json.loads(render(Final("x" * 100_000, "y" * 500))))
    assert allows(schema, json.loads(render(Action("search", {"query": "x" * 100_000}))))
    assert not allows(schema, json.loads(render(Final("x", "y" * 501))))


def test_its_own_part_has_only_words_that_every_vendor_takes() -> None:
    text = json.dumps(step_schema([("now", {"type": "object"})]))
    words = set(re.findall(r'"([$\w]+)": ', text))
    assert words <= {"anyOf", "type", "properties", "required", "additionalProperties", "enum", "maxLength"} | {
        "tool",
        "args",
        "answer",
        "thought",
    }


def test_references_only_lead_into_the_roots_definitions() -> None:
    text = json.dumps(step_schema(TOOLS, answer_schema=ANSWER))
    references = [part.partition('"')[0] for part in text.split('"$ref": "')[1:]]
    assert references
    assert all(reference.startswith("#/$defs/") for reference in references)


def test_given_schemas_are_left_as_they_were() -> None:
    before = copy.deepcopy((TOOLS, ANSWER))
    step_schema(TOOLS, answer_schema=ANSWER)
    assert before == (TOOLS, ANSWER)


def test_reference_inside_data_or_a_property_name_is_left_alone() -> None:
    odd = {
        "type": "object",
        "properties": {
            "$ref": {"type": "string"},
            "const": {"$ref": "#/$defs/n"},
            "how": {"const": {"$ref": "#/$defs/n"}},
        },
        "$defs": {"n": {"type": "integer"}},
    }
    schema = step_schema([("odd", odd)])
    legal = {"$ref": "#/x", "const": 1, "how": {"$ref": "#/$defs/n"}}
    assert allows(schema, json.loads(render(Action("odd", legal))))
    assert not allows(schema, json.loads(render(Action("odd", legal | {"const": "x"}))))
    assert not allows(schema, json.loads(render(Action("odd", legal | {"how": 1}))))


def test_part_with_its_own_id_keeps_its_own_references() -> None:
    part = {"$id": "https://tools.example/part", "$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    whole = {
        "type": "object",
        "properties": {"part": part, "text": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "string"}},
    }
    schema = step_schema([("whole", whole)])
    assert allows(schema, json.loads(render(Action("whole", {"part": 1, "text": "x"}))))
    assert not allows(schema, json.loads(render(Action("whole", {"part": "x"}))))


def test_answer_schema_replaces_the_string() -> None:
    schema = step_schema(TOOLS, answer_schema=ANSWER)
    assert allows(schema, {"type": "final", "answer": {"sum": 125.5}})
    assert not allows(schema, {"type": "final", "answer": {"sum": "125.5"}})
    assert not allows(schema, {"type": "final", "answer": "125.5"})


def test_tool_called_answer_does_not_take_the_answers_definitions() -> None:
    schema = step_schema([("answer", COLOUR)], answer_schema=ANSWER)
    assert allows(schema, json.loads(render(Action("answer", {"colour": 7}))))
    assert allows(schema, {"type": "final", "answer": {"sum": 1}})


@pytest.mark.parametrize(
    "schema", [step_schema(TOOLS, final_only=True), step_schema([])], ids=["last step", "no tools"]
)
def test_where_no_tool_may_be_called_only_a_final_is_legal(schema: dict[str, Any]) -> None:
    assert allows(schema, json.loads(render(Final("It rains."))))
    assert not allows(schema, json.loads(render(Action("now", {}))))
    assert "$defs" not in schema
