"""The quick yes that a schema is valid: jsonschema says the same of every schema that gets one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from agent_core.run.agent_tool import agent_tool
from engine_shim.definition.invoke import invoke_tool
from utools.builtin import builtin_tools
from utools.schema.plainly_sound import KEYWORDS, is_plainly_sound, plain_pointer
from utools.schema.shape import resolver

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([0.0, 1.0, 1.5, "", "a", "string", "[", "#/$defs/a", "#x", "https://example.org"]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "type", "items", "x-own", "pattern"]), each, max_size=3)
    ),
    max_leaves=6,
)
SCHEMAS = VALUES | st.dictionaries(st.sampled_from([*KEYWORDS, "$id", "x-narrow", "unknown"]), VALUES, max_size=4)


def is_valid(schema: Any) -> bool:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return False
    return True


@given(SCHEMAS)
def test_a_schema_that_gets_a_yes_is_valid(schema: Any) -> None:
    if is_plainly_sound(schema):
        assert is_valid(schema)


@pytest.mark.parametrize("keyword", KEYWORDS)
@given(value=VALUES)
def test_a_keyword_that_gets_a_yes_is_valid(keyword: str, value: Any) -> None:
    if is_plainly_sound({keyword: value}):
        assert is_valid({keyword: value})


def test_the_schemas_of_our_own_tools_get_a_yes() -> None:
    tools = [*builtin_tools(), agent_tool([]), invoke_tool()]
    assert [tool.code for tool in tools if not is_plainly_sound(tool.config_schema)] == []


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"pattern": "["}, id="no regex"),
        pytest.param({"type": ["string", "string"]}, id="a type twice"),
        pytest.param({"type": []}, id="no type"),
        pytest.param({"required": ["a", "a"]}, id="a name twice"),
        pytest.param({"minLength": True}, id="true is no number"),
        pytest.param({"anyOf": []}, id="no form"),
        pytest.param({"properties": {"a": {"items": 1}}}, id="within"),
        pytest.param({"$id": "urn:a"}, id="an identity"),
        pytest.param({"$ref": "https://example.org"}, id="a reference elsewhere"),
        pytest.param({"dependencies": 1}, id="a keyword of old"),
    ],
)
def test_what_is_in_doubt_gets_none(schema: Any) -> None:
    assert not is_plainly_sound(schema)


def test_a_plain_reference_is_followed_as_any_other() -> None:
    schema: dict[str, Any] = {"$defs": {"a": {"properties": {"b": {"type": "string"}}}, "c~d": {"type": "null"}}}
    follow = resolver(schema)
    assert follow("#/$defs/a/properties/b") is schema["$defs"]["a"]["properties"]["b"]
    assert follow("#/$defs/c~0d") == {"type": "null"}
    assert follow("#/$defs/missing") is None
    assert follow("#") is schema
    assert plain_pointer("#/$defs/c~0d") is None
