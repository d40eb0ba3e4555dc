"""Narrowing: stricter than JSON Schema where a model could slip something by."""

from typing import Any

import pytest

from utools import DefinitionError
from utools.schema.config_schema import Narrowing
from utools.schema.loose_patterns import find_loose_patterns

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


WWW = {"pattern": "www\\."}
LINK, MAIL = "see www.evil.com now", "Dear Ada,\nall is well.\n"


def refused(rule: Any, value: Any, **options: Any) -> bool:
    return bool(Narrowing({"properties": {"body": rule}}, **options).faults({"body": value}))


@pytest.mark.parametrize(
    "rule",
    [
        {"not": WWW},
        {"if": WWW, "then": False},
        {"if": WWW, "then": {"const": "never"}},
        {"oneOf": [{"type": "string"}, WWW]},
        {"not": {"anyOf": [{"pattern": "ftp:"}, WWW]}},
        {"not": {"allOf": [{"type": "string"}, WWW]}},
        {"allOf": [{"maxLength": 99}, {"not": WWW}]},
        {"not": {"not": {"not": WWW}}},
        {"not": {"$ref": "#/$defs/link"}},
        {"not": {"oneOf": [{"pattern": "ftp:"}, WWW]}},
        {"dependentSchemas": {}, "not": {"minLength": 3, **WWW}},
    ],
    ids=str,
)
def test_a_pattern_that_forbids_matches_anywhere_and_in_any_line(rule: Any) -> None:
    narrowing = Narrowing({"properties": {"body": rule}, "$defs": {"link": WWW}})
    assert narrowing.faults({"body": LINK})
    assert narrowing.faults({"body": f"Dear Ada,\n{LINK}"})
    assert narrowing.faults({"body": "www."})
    assert not narrowing.faults({"body": MAIL})


@pytest.mark.parametrize(
    "rule",
    [
        {"not": {"contains": WWW}},
        {"contains": WWW, "minContains": 0, "maxContains": 0},
        {"items": {"not": WWW}},
        {"not": {"not": {"contains": WWW, "minContains": 0, "maxContains": 0}}},
    ],
    ids=str,
)
def test_a_list_is_refused_for_one_item_that_holds_what_is_forbidden(rule: Any) -> None:
    assert refused(rule, ["fine", LINK])
    assert not refused(rule, ["fine", MAIL])


COLOUR, OTHER = {"pattern": "red|blue"}, {"pattern": "[0-9]+"}


@pytest.mark.parametrize(
    "rule",
    [
        COLOUR,
        {"not": {"not": COLOUR}},
        {"oneOf": [COLOUR, OTHER]},
        {"anyOf": [COLOUR, OTHER]},
        {"allOf": [COLOUR, True]},
        {"if": {"type": "string"}, "then": COLOUR},
        {"if": {"type": "number"}, "else": COLOUR},
        {"not": {"not": {"oneOf": [COLOUR, OTHER]}}},
        {"not": {"if": COLOUR, "then": False}},
    ],
    ids=str,
)
def test_a_pattern_that_allows_matches_the_whole_text(rule: Any) -> None:
    assert not refused(rule, "red")
    for text in ("red, and www.evil.com", "a red one", "red\n", "infrared"):
        assert refused(rule, text), text


def test_enough_items_match_whole_and_not_too_many_anywhere() -> None:
    some = {"contains": COLOUR, "minContains": 1, "maxContains": 1}
    assert [refused(some, items) for items in (["red"], ["red", "x"], ["a red one"], ["red", "a blue one"], [])] == [
        *(False, False),
        *(True, True, True),
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "allowed"),
    [
        ("(?s).*", MAIL, True),
        ("[a-zA-Z,. \\n]*", MAIL, True),
        ("[\\s\\S]*", MAIL, True),
        ("[\\w,.\\s]*", MAIL, True),
        (".*", MAIL, False),
        ("[^;]*", MAIL, False),
        ("[^@,;\\s]+@example\\.com", "eve@evil.example\nada@example.com", False),
        ("[^,;]+@example\\.com", "eve@evil.example\r\nada@example.com", False),
        ("(?s).*", "a tab\t", False),
        ("[\\s\\S]*", "an escape \x1b[31m", False),
        ("[\\s\\S]*", "a NEL \x85", False),
    ],
)
def test_lines_may_end_where_the_pattern_names_line_ends(pattern: str, text: str, allowed: bool) -> None:
    assert refused({"pattern": pattern}, text) is not allowed


@pytest.mark.parametrize("rule", [{"not": WWW}, {"if": WWW, "then": False}, {"oneOf": [True, WWW]}], ids=str)
def test_other_control_characters_are_refused_under_negations_too(rule: Any) -> None:
    for text in ("w\x00ww.", "a\tb", "\x1b[8m", "\x85"):
        assert refused(rule, text), text


def test_a_reference_is_read_by_the_place_that_refers() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"word": {"pattern": "red"}},
        "properties": {"is": {"$ref": "#/$defs/word"}, "lacks": {"not": {"$ref": "#/$defs/word"}}, "in": {"$ref": "#"}},
    }
    narrowing = Narrowing(schema)
    assert [fault.pointer for fault in narrowing.faults({"is": "a red one", "lacks": "a red one"})] == ["/is", "/lacks"]
    assert not narrowing.faults({"is": "red", "lacks": "blue"})
    assert [fault.pointer for fault in narrowing.faults({"in": {"is": "a red one"}})] == ["/in/is"]


def test_runs_under_the_second_rules_are_judged_as_they_were() -> None:
    assert not refused({"not": WWW}, LINK, reading="earlier")
    assert refused({"not": WWW}, MAIL, reading="earlier")
    assert not refused({"oneOf": [{"type": "string"}, WWW]}, LINK, reading="earlier")


def test_control_character_is_named_before_the_pattern() -> None:
    (fault,) = Narrowing(ADDRESS).faults({"to": "x\n"})
    assert fault.expected == "free of control characters"


def test_unsound_narrowing_is_refused_with_its_place() -> None:
    with pytest.raises(DefinitionError) as refused:
        Narrowing({"properties": {"to": {"pattern": "["}}}, where="allowed_tools/0/args")
    assert refused.value.where == "allowed_tools/0/args/properties/to/pattern"


@pytest.mark.parametrize(
    ("rule", "loose"),
    [
        ({"pattern": "www"}, True),
        ({"pattern": "^www"}, True),
        ({"pattern": "www$"}, True),
        ({"pattern": "^www$"}, False),
        ({"pattern": "\\Awww\\Z"}, False),
        ({"pattern": ".*www.*"}, False),
        ({"pattern": "(?s)^.*www[\\s\\S]*"}, False),
        ({"not": {"pattern": "www"}}, False),
        ({"not": {"not": {"pattern": "www"}}}, True),
        ({"if": {"pattern": "www"}, "then": False}, False),
        ({"anyOf": [{"const": 1}, {"pattern": "www"}]}, True),
        ({"$defs": {"a": {"pattern": "www"}}, "not": {"$ref": "#/$defs/a"}}, False),
        ({"properties": {"not": {"pattern": "www"}}}, True),
    ],
    ids=str,
)
def test_a_pattern_that_does_not_show_that_it_means_the_whole_text_is_found(rule: Any, loose: bool) -> None:
    assert bool(list(find_loose_patterns({"properties": {"body": rule}}))) is loose
