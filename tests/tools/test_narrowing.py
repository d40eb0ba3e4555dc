"""Narrowing: stricter than JSON Schema where a model could slip something by."""

from typing import Any

import pytest

from utools import DefinitionError
from utools.schema.config_schema import Narrowing

ADDRESS = {"properties": {"to": {"pattern": "^[^@,;\\s]+@example\\.com$"}}}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(ADDRESS, {"to": "ada@example.com"}, [], id="fits"),
        pytest.param(ADDRESS, {"to": "ada@example.com", "subject": "x\n"}, [], id="the rest is not its business"),
        pytest.param(ADDRESS, {"to": "ada@example.org"}, ["/to"], id="does not fit"),
        pytest.param(ADDRESS, {"to": "ada@example.com\n"}, ["/to"], id="a newline that $ would let pass"),
        pytest.param(ADDRESS, {"to": "ada@example.com, eve@example.com"}, ["/to"], id="two of them"),
        pytest.param({"properties": {"to": {"pattern": "a|b"}}}, {"to": "ax"}, ["/to"], id="the whole string"),
        pytest.param({"properties": {"to": {"pattern": "(?s).*"}}}, {"to": "a\x00b"}, ["/to"], id="NUL"),
        pytest.param({"properties": {"to": {"pattern": "(?s).*"}}}, {"to": "a\x85b"}, ["/to"], id="C1 control"),
        pytest.param({"properties": {"to": {"not": {"pattern": ".*evil"}}}}, {"to": "evil\n"}, ["/to"], id="under not"),
        pytest.param({"properties": {"to": {"not": {"pattern": ".*evil"}}}}, {"to": "good"}, [], id="not, fits"),
        pytest.param(
            {"properties": {"to": {"if": {"pattern": "evil"}, "then": False}}}, {"to": "evil\n"}, ["/to"], id="under if"
        ),
        pytest.param(
            {"properties": {"to": {"items": {"pattern": "a"}}}},
            {"to": ["a", "b", "a\n"]},
            ["/to/1", "/to/2"],
            id="items",
        ),
        pytest.param({"properties": {"n": {"maximum": 3}}}, {"n": 4}, ["/n"], id="other keywords as usual"),
    ],
)
def test_narrowing_judges_whole_strings(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert [fault.pointer for fault in Narrowing(schema).faults(value)] == expected


def test_control_character_is_named_before_the_pattern() -> None:
    (fault,) = Narrowing(ADDRESS).faults({"to": "x\n"})
    assert fault.expected == "free of control characters"


def test_unsound_narrowing_is_refused_with_its_place() -> None:
    with pytest.raises(DefinitionError) as refused:
        Narrowing({"properties": {"to": {"pattern": "["}}}, where="allowed_tools/0/args")
    assert refused.value.where == "allowed_tools/0/args/properties/to/pattern"
