"""ConfigSchema: what it refuses to compile, what it finds, how it says it, what it closes."""

import copy
import math
import subprocess
import sys
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.growth import growth
from utools import DefinitionError
from utools.schema.config_schema import ConfigSchema, Narrowing, author_keys, visible

A, B = {"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}
LOOKUP = {
    "type": "object",
    "properties": {"q": {"type": "string", "minLength": 2}, "n": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["q"],
}
TREE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"child": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
            "required": ["child"],
        }
    },
    "$ref": "#/$defs/tree",
}


def nested(depth: int, leaf: Any = None) -> Any:
    for _ in range(depth):
        leaf = {"child": leaf}
    return leaf


def pointers(schema: dict[str, Any], value: Any, *, foreign: bool = False) -> list[str]:
    return [fault.pointer for fault in ConfigSchema(schema, foreign=foreign).faults(value)]


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        pytest.param({"type": "strin"}, "/type", id="unknown type"),
        pytest.param({"required": "q"}, "/required", id="required is no list"),
        pytest.param({"properties": {"a/b": {"pattern": "("}}}, "/properties/a~1b/pattern", id="bad pattern"),
        pytest.param({"$ref": "https://example.com/s"}, "/$ref", id="remote reference"),
        pytest.param({"$ref": "other.json#/x"}, "/$ref", id="relative reference"),
        pytest.param({"$ref": "file:///etc/passwd"}, "/$ref", id="file reference"),
        pytest.param({"$dynamicRef": "https://example.com/s"}, "/$dynamicRef", id="remote dynamic reference"),
        pytest.param({"$id": "https://example.com/", "$ref": "s"}, "/$ref", id="reference made remote by $id"),
        pytest.param({"items": {"$id": "https://example.com/"}}, "/items/$id", id="nested $id"),
        pytest.param({"$ref": "#/$defs/nope"}, "/$ref", id="reference to nowhere"),
        pytest.param(
            {"$ref": "#/x/y", "x": {"y": {"$ref": "http://e/"}}}, "/x/y/$ref", id="remote, behind a local one"
        ),
        pytest.param([], "", id="not an object"),
    ],
)
@pytest.mark.parametrize("foreign", [False, True])
def test_unsound_schema_is_refused_with_its_place(schema: Any, where: str, foreign: bool) -> None:
    with pytest.raises(DefinitionError) as refused:
        ConfigSchema(schema, foreign=foreign, where="tools.t.config_schema")
    assert refused.value.where == "tools.t.config_schema" + where
    assert str(refused.value).startswith(refused.value.where)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"maximum": 2**70}, "/properties/n/maximum is an integer outside"),
        ({"default": Decimal("1.5")}, "/properties/n/default is of type Decimal"),
        ({"enum": [Path("x")]}, "/properties/n/enum/0 is of type"),
        ({"description": "\ud800"}, "/properties/n/description holds a lone surrogate"),
        ({"x-of": {1: 2}}, "/properties/n/x-of has a key of type int"),
        ({"maximum": math.inf}, "/properties/n/maximum is not a finite number"),
        ({"enum": [1, math.nan]}, "/properties/n/enum/1 is not a finite number"),
        ({"const": math.nan}, "/properties/n/const is not a finite number"),
    ],
)
@pytest.mark.parametrize("foreign", [False, True])
def test_what_no_journal_holds_is_refused_in_a_schema(rule: dict[str, Any], message: str, foreign: bool) -> None:
    """A run of its tool could not begin."""
    with pytest.raises(DefinitionError, match=f"^order: {message}"):
        ConfigSchema({"properties": {"n": rule}}, foreign=foreign, where="order")


def test_what_json_has_another_form_of_is_taken_as_that() -> None:
    class Name(StrEnum):
        LIMIT = "limit"

    for properties in ({Name.LIMIT: {"type": "number"}}, {"limit": {"type": "number", "default": math.inf}}):
        known = ConfigSchema({"properties": properties})
        assert known.schema["properties"]["limit"].get("default") is None
        assert [fault.pointer for fault in known.faults({"limit": "x"})] == ["/limit"]


def test_schema_nested_beyond_reason_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    with pytest.raises(DefinitionError, match="too deeply"):
        ConfigSchema(deep)


def test_names_that_look_like_keywords_are_only_names() -> None:
    schema = {"properties": {"$ref": {"const": {"$ref": "http://x"}}, "$id": {"enum": ["a"]}}}
    assert pointers(schema, {"$ref": {"$ref": "http://x"}, "$id": "a"}) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"q": "ab", "n": 3}, [], id="valid"),
        pytest.param({}, ["/q"], id="missing"),
        pytest.param({"x": 1, "n": 1.5, "y/z~": 2}, ["/x", "/n", "/y~1z~0", "/q"], id="document order, missing last"),
        pytest.param({"n": 0, "q": ""}, ["/n", "/q"], id="order of the document, not of the schema"),
        pytest.param({"q": 5, "n": "5"}, ["/q", "/n"], id="nothing is coerced"),
        pytest.param({"q": "ab", "n": True}, ["/n"], id="a boolean is no integer"),
        pytest.param([], [""], id="not an object"),
    ],
)
def test_every_fault_is_reported_in_document_order(value: Any, expected: list[str]) -> None:
    assert pointers(LOOKUP, value) == expected


@pytest.mark.parametrize(
    ("schema", "value", "expected", "message"),
    [
        pytest.param(
            {"enum": ["a", 1]}, "b", 'one of ["a", 1]', 'The value must be one of ["a", 1], got "b".', id="enum"
        ),
        pytest.param({"minimum": 1}, 0, ">= 1", "The value must be >= 1, got 0.", id="minimum"),
        pytest.param(
            {"type": ["integer", "null"]},
            "x",
            "an integer or null",
            'The value must be an integer or null, got "x".',
            id="type",
        ),
        pytest.param(
            {"maxLength": 1},
            "é\ud800",
            "at most 1 characters long",
            'The value must be at most 1 characters long, got "é\\ud800".',
            id="lone surrogate",
        ),
        pytest.param({"const": None}, 1, "null", "The value must be null, got 1.", id="const"),
        pytest.param(
            {"uniqueItems": True},
            [1, 1],
            "free of repeated items",
            "The value must be free of repeated items, got [1, 1].",
            id="unique",
        ),
        pytest.param(
            {"properties": {"a": False}},
            {"a": 1},
            "absent: nothing is allowed here",
            "/a must be absent: nothing is allowed here, got 1.",
            id="false schema",
        ),
    ],
)
def test_fault_says_what_was_expected(schema: dict[str, Any], value: Any, expected: str, message: str) -> None:
    (fault,) = ConfigSchema(schema).faults(value)
    assert (fault.expected, fault.message) == (expected, message)


def test_property_name_that_is_not_allowed_is_pointed_at() -> None:
    (fault,) = ConfigSchema({"propertyNames": {"maxLength": 3}}).faults({"abc": 1, "abcd": 2})
    assert (fault.pointer, fault.expected) == ("/abcd", "at most 3 characters long")


def test_property_called_like_a_keyword_is_a_property() -> None:
    assert pointers({"properties": {"propertyNames": {"type": "string"}}}, {"propertyNames": {"a": 1}}) == [
        "/propertyNames"
    ]
    assert pointers({"properties": {"propertyNames": {"minLength": 2}}}, {"propertyNames": "a"}) == ["/propertyNames"]


@pytest.mark.parametrize("name", ["it's", 'say "x"', "both ' and \"", "a', 'b", "back\\slash", "new\nline", "(", ""])
@pytest.mark.parametrize("schema", [LOOKUP, {"allOf": [LOOKUP]}, {**LOOKUP, "patternProperties": {"^zz": {}}}])
def test_unknown_property_is_found_whatever_its_name(schema: dict[str, Any], name: str) -> None:
    assert pointers(schema, {"q": "ab", name: 1}) == [f"/{name}"]


NUMBERS = list(range(60_000))
KEYS = {f"k{number}": 1 for number in range(30_000)}
NAMED = {"properties": {f"property_{number}": {} for number in range(20)}}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("schema", "value", "count"),
    [
        pytest.param({"type": "integer"}, "x" * 1_000_000, 1, id="long string"),
        pytest.param({"properties": {"a": {"type": "string"}}}, {"a": NUMBERS}, 1, id="long list"),
        pytest.param(NAMED, {f"property{number}": 1 for number in range(50_000)}, 100, id="unknown names"),
        pytest.param({"allOf": [NAMED]}, KEYS, 100, id="unknown names, judged together"),
        pytest.param(
            {"allOf": [{**A, "additionalProperties": {"type": "integer"}}]},
            KEYS,
            0,
            id="known together",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param({"items": {"type": "string"}}, [1] * 300_000, 100, id="wrong items"),
        pytest.param({"additionalProperties": {"type": "string"}}, KEYS, 100, id="wrong properties"),
        pytest.param({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "null"}}]}, NUMBERS, 100, id="anyOf"),
        pytest.param({"uniqueItems": True}, [*NUMBERS, *map(str, NUMBERS)], 0, id="unique"),
        pytest.param({"uniqueItems": True}, [number * (2**61 - 1) for number in range(50_000)], 0, id="colliding"),
        pytest.param(
            {"uniqueItems": True},
            [{"a": number} for number in range(40_000)],
            0,
            id="unique objects",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param({"prefixItems": [{}], "unevaluatedItems": False}, NUMBERS, 1, id="unevaluated items"),
        pytest.param(
            {"contains": {"type": "integer"}, "unevaluatedItems": False},
            NUMBERS,
            0,
            id="evaluated items",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
@pytest.mark.parametrize("kind", [ConfigSchema, pytest.param(Narrowing, marks=pytest.mark.exhaustive)])
def test_judging_grows_with_the_argument_and_no_faster(
    kind: Any, schema: dict[str, Any], value: Any, count: int
) -> None:
    compiled = kind(schema)
    assert growth(compiled.faults, a_quarter(value), value) < 10
    assert len(compiled.faults(value)) == count or kind is Narrowing


def a_quarter(value: Any) -> Any:
    """The same with a quarter of its items, characters or properties, or of those of its one property."""
    if isinstance(value, dict):
        some = dict(list(value.items())[: len(value) // 4])
        return some or {key: a_quarter(item) for key, item in value.items()}
    return value[: len(value) // 4]


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        pytest.param([1, 1.0], False, id="1 is 1.0"),
        pytest.param([2**60, float(2**60)], False, id="large, too"),
        pytest.param([0.0, -0.0], False, id="zeros"),
        pytest.param([1, True, "1", [1], None, "null"], True, id="kinds differ"),
        pytest.param([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}], False, id="order of names"),
        pytest.param([{"a": 1}, {"a": True}], True, id="true inside"),
        pytest.param([[1, 2], [2, 1]], True, id="order of items"),
        pytest.param(['a","b', ["a", "b"], ["a,b"]], True, id="punctuation"),
    ],
)
def test_items_are_unique_as_json_schema_says(items: list[Any], unique: bool) -> None:
    assert Draft202012Validator({"uniqueItems": True}).is_valid(items) == unique
    assert (pointers({"uniqueItems": True}, items) == []) == unique


class Printed(float):
    """A number whose repr is none, as numpy's."""

    def __repr__(self) -> str:
        return f"Printed({float(self)})"


@pytest.mark.parametrize(
    ("number", "step", "fits"),
    [
        pytest.param(Printed(19.99), 0.01, True, id="of another type"),
        pytest.param(Printed(5.0), 2, False, id="of another type, of an integer"),
        pytest.param(Decimal("19.99"), 0.01, True, id="decimal"),
        pytest.param(Decimal("19.99"), 2, False, id="decimal of an integer"),
        pytest.param(float("inf"), 2, False, id="infinite"),
        pytest.param(float("nan"), 0.01, False, id="no number"),
        pytest.param(10**5000, 0.01, True, id="large"),
        pytest.param(True, 2, True, id="bool"),
    ],
)
def test_what_a_program_calls_a_number_is_a_multiple_or_none(number: Any, step: float, fits: bool) -> None:
    assert (ConfigSchema({"multipleOf": step}).faults(number) == []) == fits


def test_got_is_short_however_long_the_value() -> None:
    (fault,) = ConfigSchema({"type": "integer"}).faults("x" * 10_000)
    assert len(fault.got) <= 120


def test_unknown_property_is_told_the_known_ones() -> None:
    (fault,) = ConfigSchema(LOOKUP).faults({"q": "ab", "query": 1})
    assert (fault.pointer, fault.expected, fault.got) == ("/query", "one of the properties n, q", "1")


SHAPES = {
    "oneOf": [
        {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
        {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
    ]
}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(SHAPES, {"kind": "square", "side": "x"}, [("/side", "a number")], id="the branch of the tag"),
        pytest.param(SHAPES, {"kind": "oval"}, [("/kind", '"circle" or "square"')], id="no branch has the tag"),
        pytest.param(SHAPES, 1, [("", "valid under exactly one of the alternatives")], id="no object at all"),
        pytest.param(
            {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", [("", "an integer or null")], id="optional"
        ),
        pytest.param(
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            [1, "x", None],
            [("/1", "an integer"), ("/2", "an integer")],
            id="inside the only branch of that type",
        ),
        pytest.param(
            {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
            3,
            [("", "valid under exactly one of the alternatives")],
            id="two branches hold",
        ),
    ],
)
def test_alternatives_report_the_branch_that_was_meant(
    schema: dict[str, Any], value: Any, expected: list[tuple[str, str]]
) -> None:
    assert [(fault.pointer, fault.expected) for fault in ConfigSchema(schema).faults(value)] == expected


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param({"properties": {"o": A}}, {"o": {"x": 1}}, ["/o/x"], id="properties"),
        pytest.param({"items": A}, [{"x": 1}], ["/0/x"], id="items"),
        pytest.param({"prefixItems": [A]}, [{"x": 1}], ["/0/x"], id="prefixItems"),
        pytest.param({"additionalProperties": A}, {"o": {"x": 1}}, ["/o/x"], id="additionalProperties"),
        pytest.param({"anyOf": [A, {"type": "null"}]}, {"x": 1}, ["/x"], id="anyOf"),
        pytest.param({"$defs": {"A": A}, "items": {"$ref": "#/$defs/A"}}, [{"x": 1}], ["/0/x"], id="$defs"),
        pytest.param({"properties": {}}, {"x": 1}, ["/x"], id="no properties at all"),
        pytest.param({"allOf": [A, B]}, {"a": "", "b": ""}, [], id="allOf knows the names of all"),
        pytest.param({"allOf": [A, B]}, {"a": "", "b": "", "x": 1}, ["/x"], id="allOf refuses others"),
        pytest.param({"allOf": [A, B]}, {"a": 1, "b": "", "x": 1}, ["/a", "/x"], id="allOf with another fault"),
        pytest.param(
            {"$defs": {"A": A, "B": B}, "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
            {"a": "", "b": "", "x": 1},
            ["/x"],
            id="allOf of references",
        ),
        pytest.param({**A, "anyOf": [B, {"required": ["a"]}]}, {"a": "", "b": "", "x": 1}, ["/x"], id="beside anyOf"),
        pytest.param(
            {**A, "if": {"properties": {"a": {"const": "k"}}}, "then": B}, {"a": "k", "b": ""}, [], id="if and then"
        ),
        pytest.param(
            {**A, "if": {"properties": {"a": {"const": "k"}}}, "then": B}, {"a": "k", "x": 1}, ["/x"], id="if, others"
        ),
        pytest.param({**A, "not": {"required": ["b"]}}, {"a": "", "x": 1}, ["/x"], id="not"),
        pytest.param({**A, "dependentSchemas": {"a": B}}, {"a": "", "b": ""}, [], id="dependentSchemas"),
        pytest.param({**A, "additionalProperties": True}, {"x": 1}, [], id="open by its own word"),
        pytest.param({"type": "object"}, {"x": 1}, [], id="an object that names nothing"),
        pytest.param({**A, "patternProperties": {"^x": {}}}, {"x1": 1, "y": 1}, ["/y"], id="patternProperties"),
    ],
)
def test_own_schema_refuses_unknown_properties(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert pointers(schema, value) == expected


def test_foreign_schema_is_checked_as_written() -> None:
    assert ConfigSchema(A, foreign=True).schema == A
    assert pointers(A, {"x": 1}, foreign=True) == []


def test_a_part_with_a_dialect_of_its_own_is_judged_by_the_same_keywords() -> None:
    """Those of jsonschema have no bound on their time: a pattern held a server for ever."""
    part = {"$schema": "http://json-schema.org/draft-07/schema#", "dependentRequired": {"x": ["y"]}}
    assert pointers({"properties": {"a": part}}, {"a": {"x": 1}}, foreign=True) == ["/a/y"]
    elsewhere = {"$ref": "#/parts/a", "parts": {"a": part}}
    assert pointers(elsewhere, {"x": 1}, foreign=True) == ["/y"]


def test_given_schema_is_not_changed() -> None:
    before = copy.deepcopy(A)
    assert ConfigSchema(A).schema["additionalProperties"] is False
    assert before == A


def test_depth_64_is_judged_to_the_bottom() -> None:
    assert pointers(TREE, nested(64)) == []
    assert pointers(TREE, nested(64, leaf=3)) == ["/child" * 64]


@pytest.mark.exhaustive
def test_deeper_value_is_a_fault() -> None:
    (fault,) = ConfigSchema(TREE).faults(nested(65, leaf={}))
    assert "64 levels" in fault.expected
    assert ConfigSchema({}).faults(nested(100_000)) == [fault]


def test_verdict_does_not_depend_on_how_deep_the_caller_stands() -> None:
    schema = ConfigSchema(TREE)

    def standing(depth: int) -> list[str]:
        return standing(depth - 1) if depth else [fault.pointer for fault in schema.faults(nested(60, leaf=3))]

    assert standing(700) == standing(0) == ["/child" * 60]


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}]}, {"allOf": [{"$ref": "#"}]}])
def test_schema_that_refers_to_itself_without_end_gives_a_fault(schema: dict[str, Any]) -> None:
    (fault,) = ConfigSchema(schema).faults({"a": 1})
    assert "without end" in fault.message


def test_schema_that_would_take_exponential_time_gives_a_fault() -> None:
    either = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}
    node = {"type": "object", "properties": {"child": either}}
    schema = ConfigSchema({"$defs": {"a": node, "b": {**node, "required": ["child"]}}, **either})
    (fault,) = schema.faults(nested(50, leaf=3))
    assert "too many ways" in fault.message
    assert schema.faults(nested(3, leaf={})) == []


def test_visible_hides_top_level_properties_and_their_duty() -> None:
    schema = {**LOOKUP, "required": ["q", "n"]}
    shown = visible(schema, ["q"])
    assert (list(shown["properties"]), shown["required"]) == (["n"], ["n"])
    assert list(schema["properties"]) == ["q", "n"]


def test_author_keys_are_those_marked_so() -> None:
    schema = {"properties": {"root": {"x-author": True}, "q": {"x-author": "yes"}, "any": True}}
    assert author_keys(schema) == {"root"}


AUTHORED = {"type": "string", "x-author": True}


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        pytest.param(
            {"properties": {"o": {"properties": {"root": AUTHORED}}}},
            "/properties/o/properties/root/x-author",
            id="nested",
        ),
        pytest.param(
            {"$defs": {"R": AUTHORED}, "properties": {"root": {"$ref": "#/$defs/R"}}}, "/$defs/R/x-author", id="$defs"
        ),
        pytest.param(
            {"x": {"R": AUTHORED}, "properties": {"root": {"$ref": "#/x/R"}}},
            "/properties/root/$ref",
            id="behind a reference",
        ),
        pytest.param(
            {"allOf": [{"properties": {"root": AUTHORED}}]}, "/allOf/0/properties/root/x-author", id="inside allOf"
        ),
        pytest.param({"properties": {"root": {"anyOf": [AUTHORED]}}}, "/properties/root/anyOf/0/x-author", id="anyOf"),
        pytest.param({"additionalProperties": AUTHORED}, "/additionalProperties/x-author", id="additionalProperties"),
        pytest.param(AUTHORED, "/x-author", id="the whole"),
        pytest.param(
            {"properties": {"root": AUTHORED, "o": {"items": AUTHORED}}},
            "/properties/o/items/x-author",
            id="one object in two places",
        ),
        pytest.param(
            {"properties": {"root": AUTHORED, "other": {"$ref": "#/properties/root"}}},
            "/properties/other/$ref",
            id="reference to a marked property",
        ),
    ],
)
@pytest.mark.parametrize("foreign", [False, True])
def test_author_mark_that_would_hide_nothing_is_refused(schema: dict[str, Any], where: str, foreign: bool) -> None:
    with pytest.raises(DefinitionError, match="x-author") as refused:
        ConfigSchema(schema, foreign=foreign, where="t")
    assert refused.value.where == "t" + where


def test_property_called_x_author_is_only_a_name() -> None:
    assert pointers({"properties": {"x-author": True, "root": AUTHORED}}, {"x-author": 1, "root": "/"}) == []


LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
KINDS = st.sampled_from(["object", "array", "string", "integer", "number", "null", "boolean"])


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas made of others."""
    some = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "propertyNames": st.builds(dict, maxLength=st.integers(0, 1)),
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "items": inner,
        "prefixItems": some,
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), some),
        **dict.fromkeys(("not", "if", "then", "else"), inner),
        "unevaluatedItems": inner,
        "contains": inner,
        "uniqueItems": st.booleans(),
        "minItems": st.integers(0, 2),
        "type": KINDS,
    }
    return st.fixed_dictionaries({}, optional=keywords)


SIMPLE: st.SearchStrategy[Any] = (
    st.booleans()
    | st.builds(dict, type=KINDS)
    | st.builds(dict, const=LEAVES)
    | st.builds(dict, minimum=st.integers(0, 2))
)
SCHEMAS = st.recursive(SIMPLE, composed, max_leaves=12).filter(lambda schema: isinstance(schema, dict))


@given(schema=SCHEMAS, value=VALUES)
def test_jsonschema_alone_decides_on_foreign_schemas(schema: dict[str, Any], value: Any) -> None:
    faults = ConfigSchema(schema, foreign=True).faults(value)
    assert (faults == []) == Draft202012Validator(schema).is_valid(value)


@given(schema=SCHEMAS, value=VALUES)
def test_own_schema_accepts_nothing_that_its_author_refused(schema: dict[str, Any], value: Any) -> None:
    closed = ConfigSchema(schema).schema
    negated = any(f"'{keyword}'" in str(schema) for keyword in ("not", "if", "oneOf"))
    if Draft202012Validator(closed).is_valid(value) and not negated:
        assert Draft202012Validator(schema).is_valid(value)


def test_import_is_light() -> None:
    heavy = "jsonschema openai pydantic jmespath sqlite3 agent_core engine_shim"
    script = f"import sys, utools; print([name for name in '{heavy}'.split() if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
