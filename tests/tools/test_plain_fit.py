"""The quick yes of a schema, and its quick faults: jsonschema says the same of every value that gets them."""

import copy
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from utools.schema.config_schema import ConfigSchema
from utools.schema.faults import word_faults
from utools.schema.plain_faults import Unclear, find_plain_faults
from utools.schema.plain_fit import plain_fit
from utools.schema.shape import resolver, spell_out
from utools.schema.validation import jsonschema_validation
from utools.words.catalogue import ENGLISH

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.0, 1.0, 1.5, "", "a", "ab", "é"])
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(NAMES, each, max_size=3), max_leaves=6
)
TYPE = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    small, maps = st.integers(0, 2), st.dictionaries(NAMES, inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPE | st.lists(TYPE, min_size=1, max_size=2, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "properties": maps,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "dependentSchemas": maps,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": small,
            "maxItems": small,
            "minLength": small,
            "maxLength": small,
            "minimum": st.integers(-1, 2) | st.just(0.5),
            "maximum": st.integers(-1, 2),
            "exclusiveMinimum": st.integers(-1, 2),
            "exclusiveMaximum": st.integers(-1, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "title": st.just("A title"),
        },
    )


SCHEMAS = _schemas(st.recursive(st.booleans() | st.just({}), lambda each: st.booleans() | _schemas(each), max_leaves=4))


def nested(levels: int) -> Any:
    """Return a value with so many lists in each other."""
    return [nested(levels - 1)] if levels else "x"


@given(SCHEMAS, VALUES)
def test_a_value_that_gets_a_yes_is_valid(schema: Any, value: Any) -> None:
    if plain_fit(schema)(value):
        assert Draft202012Validator(schema).is_valid(value)


SEARCH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for."},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 50}, {"type": "null"}], "default": 5},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}},
        "more": {"type": "object"},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "value",
    [
        {"query": "harbour"},
        {"query": "harbour", "limit": 5, "tags": ["new", "old"], "more": {"exact": True}},
        {"query": "harbour", "limit": None, "tags": [], "more": {}},
    ],
)
def test_ordinary_arguments_get_a_yes(value: Any) -> None:
    assert plain_fit(SEARCH)(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"type": "integer"}, 1.0, id="a float that is an integer"),
        pytest.param({"enum": [1]}, True, id="true is not 1"),
        pytest.param({"enum": [1]}, 1, id="a number among a few"),
        pytest.param({"pattern": "^a"}, "a", id="a pattern"),
        pytest.param({"$ref": "#/$defs/a", "$defs": {"a": {}}}, 1, id="a reference"),
        pytest.param({"anyOf": [{"$ref": "#/$defs/a"}, {}], "$defs": {"a": False}}, 1, id="behind a reference"),
        pytest.param(
            {"properties": {"a": {"$schema": "urn:other", "type": "string"}}}, {"a": ""}, id="another dialect"
        ),
        pytest.param({"type": "object"}, {"a": nested(40)}, id="values that nothing looks into"),
        pytest.param({"anyOf": [{}, {"type": "null"}]}, nested(40), id="nor do branches"),
    ],
)
def test_what_is_in_doubt_gets_none(schema: Any, value: Any) -> None:
    assert not plain_fit(schema)(value)


def test_a_value_that_is_too_deep_gets_none() -> None:
    value: Any = {"a": 1}
    for _ in range(70):
        value = {"a": value}
    schema: Any = {}
    for _ in range(80):
        schema = {"properties": {"a": schema}}
    (fault,) = ConfigSchema(schema, foreign=True).faults(value)
    assert "64 levels" in fault.message


DEFINED = {"small": {"type": "integer", "maximum": 2}, "list": {"type": "array", "items": {"$ref": "#/$defs/small"}}}
REFERRED = {**DEFINED, "tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}}


@given(st.sampled_from([*REFERRED, "none"]), VALUES)
def test_a_value_that_gets_a_yes_by_references_is_valid(name: str, value: Any) -> None:
    schema = {"properties": {"a": {"$ref": f"#/$defs/{name}"}}, "$defs": REFERRED}
    if plain_fit(schema, resolver(schema))(value):
        assert Draft202012Validator(schema).is_valid(value)


def test_references_get_a_yes_as_long_as_they_are_few() -> None:
    schema = {"$ref": "#/$defs/list", "$defs": REFERRED}
    assert plain_fit(schema, resolver(schema))([1, 2])
    assert not plain_fit(schema, resolver(schema))([3])
    endless = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
    assert not plain_fit(endless, resolver(endless))(1)


def test_a_value_gets_a_yes_up_to_a_depth() -> None:
    fits = plain_fit({"type": "array", "items": {"type": "array"}})
    assert fits(nested(30))
    assert not fits(nested(40))


@given(SCHEMAS, VALUES)
def test_plain_faults_are_those_that_jsonschema_finds(schema: Any, value: Any) -> None:
    spelled: Any = copy.deepcopy(schema)
    spell_out(spelled, resolver(spelled))
    follow = resolver(spelled)
    try:
        plain = word_faults(find_plain_faults(spelled, value, (), follow, ENGLISH), value, ENGLISH)
    except Unclear:
        return
    assert plain == jsonschema_validation(spelled, follow, "usual")(value, 100, ENGLISH)


MISTAKES: list[tuple[Any, Any]] = [
    ({"type": "string"}, 1),
    ({"type": ["string", "null"]}, True),
    ({"enum": ["a", "b"]}, "c"),
    ({"enum": ["a", None]}, 3),
    ({"const": "a"}, {}),
    ({"properties": {"a": {"minLength": 2}, "b": {"maximum": 1}}}, {"b": 2, "a": "x"}),
    ({"required": ["a", "b"]}, {}),
    ({"properties": {"about": {}}, "additionalProperties": False}, {"abuot": 1, "c'\"": 2}),
    ({"additionalProperties": {"type": "null"}}, {"a": 1, "b": None}),
    ({"items": {"minimum": 1}, "maxItems": 1}, [0, 1, True]),
    ({"allOf": [{"type": "string"}, {"minimum": 3}], "type": "string"}, 1),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}], "minimum": 3}, 1),
    ({"dependentSchemas": {"a": {"required": ["b"]}, "c": {"required": ["d"]}}}, {"a": 1}),
    ({"items": {"type": "string"}}, list(range(150))),
]


@pytest.mark.parametrize(("schema", "value"), MISTAKES, ids=str)
def test_plain_mistakes_are_found_without_jsonschema(schema: Any, value: Any) -> None:
    follow = resolver(schema)
    plain = word_faults(find_plain_faults(schema, value, (), follow, ENGLISH), value, ENGLISH)
    assert plain
    assert plain == jsonschema_validation(schema, follow, "usual")(value, 1000, ENGLISH)


def test_a_mistake_is_explained_without_jsonschema() -> None:
    code = (
        "import sys; from utools.schema.config_schema import ConfigSchema as S\n"
        "s = S({'properties': {'a': {'enum': ['x']}}, 'required': ['a']})\n"
        "print(s.faults({'a': 'y'})[0].message, 'jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == '/a must be one of ["x"], got "y". False\n'
