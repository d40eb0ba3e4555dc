"""Schemas of elsewhere: older drafts are translated, patterns of JavaScript read, and good arguments pass."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utools import DefinitionError
from utools.schema.config_schema import ConfigSchema
from utools.schema.ecma_pattern import translate_pattern
from utools.schema.json_value import as_json
from utools.schema.linear_pattern import is_linear
from utools.schema.older_drafts import read_arguments_schema, translate_schema

DRAFT4 = "http://json-schema.org/draft-04/schema#"
DRAFT7 = "http://json-schema.org/draft-07/schema#"


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def schema_of(written: Any) -> ConfigSchema:
    schema, _ = read_arguments_schema(written, is_linear)
    return ConfigSchema(schema, foreign=True)


NULL = {"type": "null"}
PAIR = {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "additionalItems": False}
FORMS: dict[str, tuple[Any, Any, Any]] = {
    # written, arguments that fit, arguments that do not
    "exclusive_bound": (of(n={"type": "number", "minimum": 0, "exclusiveMinimum": True}), {"n": 1}, {"n": 0}),
    "inclusive_bound": (of(n={"type": "number", "maximum": 3, "exclusiveMaximum": False}), {"n": 3}, {"n": 4}),
    "tuple": ({"$schema": DRAFT7, **of(p=PAIR)}, {"p": [1, "a"]}, {"p": [1, "a", 2]}),
    "tuple_and_more": (
        of(p={"items": [{"type": "number"}], "additionalItems": {"type": "string"}}),
        *({"p": [1, "a"]}, {"p": [1, 2]}),
    ),
    "definitions": (
        {"$schema": DRAFT7, **of(a={"$ref": "#/definitions/A"}), "definitions": {"A": {"type": "string"}}},
        *({"a": "x"}, {"a": 1}),
    ),
    "dependent_names": ({"type": "object", "dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
    "dependent_schema": (
        {"type": "object", "dependencies": {"a": {"required": ["b"]}}},
        *({"a": 1, "b": 2}, {"a": 1}),
    ),
    "required_flags": (of(a={"type": "string", "required": True}, b={"required": False}), {"a": "x"}, {"b": 1}),
    "required_twice": ({**of(a={}), "required": ["a", "a"]}, {"a": 1}, {}),
    "own_identity": (
        {
            "$id": "https://x.example/s",
            **of(a={"$ref": "https://x.example/s#/$defs/A"}),
            "$defs": {"A": NULL},
        },
        *({"a": None}, {"a": 1}),
    ),
    "inner_identity": (
        {"$schema": DRAFT4, **of(a={"$ref": "#name"}), "definitions": {"A": {"id": "#name", "type": "null"}}},
        *({"a": None}, {"a": 1}),
    ),
    "identities_of_a_generator": (
        {"$id": "http://x.example/r.json", **of(a={"$id": "#/properties/a", "type": "string"})},
        *({"a": "x"}, {"a": 1}),
    ),
    "reference_into_a_tuple": (of(p=PAIR, q={"$ref": "#/properties/p/items/1"}), {"q": "a"}, {"q": 1}),
    "recursion_of_2019": (
        {"$recursiveAnchor": True, **of(kids={"type": "array", "items": {"$recursiveRef": "#"}}, n={"type": "null"})},
        *({"kids": [{"n": None}]}, {"kids": [{"n": 1}]}),
    ),
    "nullable": (of(a={"type": "string", "nullable": True, "enum": ["x"]}), {"a": None}, {"a": 1}),
    "nullable_reference": (
        {**of(a={"$ref": "#/definitions/A", "nullable": True}), "definitions": {"A": {"type": "string"}}},
        *({"a": None}, {"a": 1}),
    ),
    "nullable_members": (of(a={"allOf": [{"type": "string"}], "nullable": True}), {"a": None}, {"a": 1}),
    "nullable_constant": (of(a={"const": "x", "nullable": True}), {"a": None}, {"a": "y"}),
    "nullable_root": (
        {"$ref": "#/definitions/A", "nullable": True, "definitions": {"A": of(a={"type": "string"})}},
        *({"a": "x"}, {"a": 1}),
    ),
    "reference_into_what_is_nullable": (
        of(
            a={"allOf": [of(b={"type": "string"})], "nullable": True}, c={"$ref": "#/properties/a/allOf/0/properties/b"}
        ),
        *({"a": None, "c": "x"}, {"c": 1}),
    ),
    "nullable_reference_beside_alternatives": (
        of(a={"$ref": "#/$defs/A", "anyOf": [{"maxLength": 2}, {"enum": ["long"]}], "nullable": True})
        | {"$defs": {"A": {"type": "string"}}},
        *({"a": None}, {"a": "too"}),
    ),
    "dialect_of_a_part": (
        of(n={"$schema": DRAFT4, "type": "integer", "minimum": 5, "exclusiveMinimum": True}),
        *({"n": 6}, {"n": 5}),
    ),
    "names_of_types": (
        of(a={"type": "STRING"}, b={"type": "int"}, c={"type": "any"}),
        *({"a": "x", "b": 1, "c": []}, {"b": 1.5}),
    ),
    "types_of_other_languages": (
        of(a={"type": "tuple"}, b={"type": "HashMap"}, c={"type": "ArrayList"}, d={"type": ["char", "null"]}),
        *({"a": [1], "b": {"x": 1}, "c": [], "d": "x"}, {"a": 1}),
    ),
    "null_of_yaml": (of(a={"type": ["string", None]}), {"a": None}, {"a": 1}),
    "nulls": (of(a={"type": "string", "minLength": None, "pattern": None, "items": None}), {"a": "x"}, {"a": 1}),
    "annotations": (of(a={"type": "null", "title": 1, "examples": "x", "deprecated": "no"}), {"a": None}, {"a": 1}),
    "null_property": (of(a=None), {"a": 1}, None),
    "const_and_examples": (of(a={"const": None, "examples": [1]}), {"a": None}, {"a": 1}),
    "names_like_keywords": (of(items=NULL, dependencies={}, pattern=NULL), {"items": None}, {"pattern": 1}),
    "empty_php_list": ({"type": "object", "properties": []}, {}, None),
}


@pytest.mark.parametrize(("written", "good", "bad"), FORMS.values(), ids=FORMS)
def test_form_of_an_older_draft_judges_as_it_was_meant(written: Any, good: Any, bad: Any) -> None:
    schema = schema_of(written)
    assert schema.faults(good) == []
    assert bad is None or schema.faults(bad)


def test_integers_that_no_journal_holds_are_rounded() -> None:
    """JavaScript writes the largest of 64 bits so; a run of the tool could not begin."""
    written = of(n={"maximum": 18446744073709552000, "default": -(2**70), "enum": [10**400]}, flag={"const": True})
    schema, _ = read_arguments_schema(written)
    assert as_json(schema) == schema
    assert schema["properties"]["n"]["maximum"] == 18446744073709552000.0
    assert schema["properties"]["flag"]["const"] is True


EMPTY = [None, True, {}, {"properties": {}}, {"type": None}, {"type": ["object", "null"]}, {"title": "x"}]


@pytest.mark.parametrize("written", EMPTY, ids=map(json.dumps, EMPTY))
def test_schema_without_a_type_describes_an_object(written: Any) -> None:
    assert read_arguments_schema(written)[0]["type"] == "object"
    assert schema_of(written).faults({}) == []


@pytest.mark.parametrize("written", ["object", 1, [], False, {"type": "string"}, {"type": ["array", "null"]}])
def test_schema_that_describes_no_arguments_is_refused(written: Any) -> None:
    with pytest.raises(DefinitionError, match="its schema"):
        read_arguments_schema(written)


CURRENT = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": ["integer", "null"]}, {"enum": [1, None]}, {"$ref": "#/$defs/a"}]
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["id", "items", "type", "x"]), inner).map(lambda each: {"properties": each}),
        st.fixed_dictionaries({"items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"anyOf": each}),
        st.fixed_dictionaries({"pattern": st.sampled_from([r"^\d+$", r"^[a-z]+(?:-[a-z]+)*$"]), "default": st.none()}),
    ),
    max_leaves=8,
)


@given(CURRENT)
def test_schema_of_the_current_draft_is_left_as_it_is(schema: Any) -> None:
    written = {"type": "object", "properties": {"a": schema}, "$defs": {"a": {}}}
    assert translate_schema(written) == (written, [])


PATTERNS: dict[str, tuple[str, str, str]] = {
    # written, a text that fits, a text that does not
    "letters": (r"^\p{L}+$", "Zoë", "a1"),
    "letters_in_a_class": (r"^[\p{L}' -]+$", "O'Zoë", "a!"),
    "numbers": (r"^\p{Nd}{2}$", "12", "ab"),
    "han": (r"^\p{Script=Han}+$", "天气", "weather"),
    "han_in_a_class": (r"^[\p{sc=Han}a]+$", "天a", "b"),
    "named_group": (r"^(?<year>\d{4})-(?<m>\d\d)$", "2026-11", "26-11"),
    "named_reference": (r"^(?<q>['\"])x\k<q>$", "'x'", "'x\""),
    "named_after_others": (r"^(a)(?:b)(?<c>c)\k<c>[(]$", "abcc(", "abca("),
    "code_points": (r"^[\u{1F600}-\u{1F64F}a-z]+$", "a😀", "1"),
    "surrogates": (r"^\ud83d\ude00$", "😀", "x"),
    "any": (r"^a[^]b$", "a\nb", "ab"),
    "none": (r"^(?:[]|a)$", "a", "b"),
    "slash": (r"^\/a\/$", "/a/", "a"),
    "dash_after_a_class": (r"^[\w-.]+$", "a-.", "a b"),
    "dash_before_a_class": (r"^[a-\d]+$", "a-1", "b"),
    "control": (r"^\cJ$", "\n", "J"),
    "identity": (r"^\e\-\_$", "e-_", "x"),
    "bracket_in_a_class": (r"^[[]$", "[", "]"),
    "not_a_word": (r"^\W$", "é", "e"),
    "not_of_words": (r"^[^\w]$", "é", "e"),
    "not_a_digit": (r"^\D$", "٣", "3"),
}


@pytest.mark.parametrize(("written", "good", "bad"), PATTERNS.values(), ids=PATTERNS)
def test_pattern_of_javascript_is_read(written: str, good: str, bad: str) -> None:
    schema = schema_of(of(a={"type": "string", "pattern": written}))
    assert schema.faults({"a": good}) == []
    assert schema.faults({"a": bad})


KEPT = [r"^\d+$", r"^[a-z0-9]+(?:-[a-z0-9]+)*$", r"^[\w.+-]+@[\w-]+\.[\w.]+$", r"(?i)^x", r"[+-]", r"\bx\b"]


@pytest.mark.parametrize("pattern", KEPT)
def test_pattern_that_both_read_alike_is_kept(pattern: str) -> None:
    assert translate_pattern(pattern) == pattern
    assert is_linear(pattern)


UNREAD = [r"(?<=a+)b", r"\P{L}", r"[^\p{L}]", r"\p{Emoji}", "(", "[a", "\\", r"\k<none>", r"\u{110000}"]
SLOW = [r"^(a+)+\1$", r"(x+x+)\1+y", r"^(.*)-\1$", r"(\w+) \1"]
FOLLOWED = [r"^(a+)+$", r"^(a|a)*b$", r"^(\w+\s?)*$", r"\s*\s*\s*x", r"(x+x+)+y", r"\S+@\S+"]


@pytest.mark.parametrize("pattern", FOLLOWED)
def test_pattern_that_would_keep_re_for_ever_is_checked(pattern: str) -> None:
    schema, told = read_arguments_schema(of(a={"type": "string", "pattern": pattern}), is_linear)
    assert (schema["properties"]["a"]["pattern"], told) == (pattern, [])
    assert schema_of(schema).faults({"a": "a  " * 2000 + "!"})


@pytest.mark.parametrize("pattern", [*UNREAD, *SLOW])
def test_pattern_that_cannot_be_matched_in_bounded_time_is_dropped_and_told(pattern: str) -> None:
    schema, told = read_arguments_schema(of(a={"type": "string", "pattern": pattern}), is_linear)
    assert "pattern" not in schema["properties"]["a"]
    assert told == [f"the pattern of /properties/a is not checked here: {pattern!r}"]
    assert schema_of(of(a={"type": "string", "pattern": pattern})).faults({"a": "x" * 1000}) == []


def test_properties_that_a_dropped_pattern_names_are_not_refused() -> None:
    written = {"type": "object", "patternProperties": {r"(?<=a+)b": {}, "^x": {"type": "null"}}}
    closed = schema_of({**written, "additionalProperties": False})
    assert closed.faults({"ab": 1}) == []
    assert closed.faults({"x": 1})
