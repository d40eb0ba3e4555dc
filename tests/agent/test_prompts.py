"""Prompts: the tool section, and that every language has every template."""

import re
from pathlib import Path
from typing import Any

import pytest

import agent_core
from agent_core import Action, Final, parse
from agent_core.prompts.limits import describe_limits
from agent_core.prompts.render import NAMES, OF_A_PLAN, PLAIN_EXAMPLE, built_in, templates
from agent_core.prompts.tools import first_sentence, tool_definitions
from agent_core.protocol.feedback import Feedback
from agent_core.words.catalogue import words_in

A: dict[str, Any] = {"properties": {"a": {}}, "required": ["a"]}
SIGNATURES: list[tuple[dict[str, Any], str]] = [
    ({"type": "object", "properties": {}}, "{}"),
    ({"type": "object"}, "object"),
    ({"properties": {"q": {"type": "string"}}, "required": ["q"]}, "{q}"),
    ({"properties": {"n": {"type": "integer", "default": 20}}}, "{n?: integer = 20}"),
    ({"properties": {"op": {"enum": ["a", "b"]}}}, '{op?: "a"|"b"}'),
    (
        {"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {}}}]},
        "{a: integer, b?: any}",
    ),
    (
        {
            "properties": {"pet": {"$ref": "#/$defs/Cat"}},
            "$defs": {
                "Pet": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                "Old": {"$ref": "#/$defs/Pet"},
                "Cat": {"allOf": [{"$ref": "#/$defs/Old"}, {"properties": {"lives": {"type": "integer"}}}]},
            },
        },
        "{pet?: {name, lives?: integer}}",
    ),
    ({"properties": {"n": {"allOf": [{"type": "integer"}], "default": 3}}}, "{n?: integer = 3}"),
    (
        {"$ref": "#/$defs/A", "properties": {"b": {}}, "$defs": {"A": {"properties": {"a": {}}, "required": ["a"]}}},
        "{b?: any, a: any}",
    ),
    (
        {"properties": {"x": {"allOf": [{"$ref": "#/$defs/A", "properties": {"b": {}}}]}}, "$defs": {"A": A}},
        "{x?: {b?: any, a: any}}",
    ),
    (
        {"allOf": [{"properties": {"pet": {"type": "string"}}}, {"properties": {"pet": {"const": "cat"}}}]},
        '{pet?: "cat"}',
    ),
    ({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}, {"type": "null"}]}, "{a?: any} & ({b?: any}|null)"),
    (
        {
            "properties": {"r": {"allOf": [{"$ref": "#/$defs/R"}]}},
            "$defs": {"R": {"type": "object", "properties": {"r": {"allOf": [{"$ref": "#/$defs/R"}]}}}},
        },
        "{r?: {r?: {r?: any}}}",
    ),
    (
        {"properties": {"x": {"allOf": [{"description": "The day.", "type": "string"}]}}},
        "{x? (The day)}",
    ),
    (
        {"properties": {"x": {"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}},
        "{x?: {a?: any, b?: any}}",
    ),
    (
        {"properties": {"x": {"properties": {"a": {}}, "oneOf": [{"properties": {"b": {}}}, {"type": "null"}]}}},
        "{x?: {a?: any} & ({b?: any}|null)}",
    ),
    (
        {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"allOf": [{"$ref": "#/$defs/X"}]}}},
        "{x?: any}",
    ),
    ({"properties": {"xs": {"type": "array", "items": {"type": ["string", "null"]}}}}, "{xs?: (string|null)[]}"),
    (
        {
            "properties": {"p": {"$ref": "#/$defs/P"}},
            "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}},
        },
        "{p?: {x?: number}}",
    ),
    ({"properties": {"r": {"$ref": "#"}}}, "{r?: {r?: {r?: any}}}"),
    (
        {
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {
                "A": {"properties": {"b": {"$ref": "#/$defs/B"}}},
                "B": {"properties": {"s": {"type": "string"}, "k": {"$ref": "#/$defs/K"}, "n": {"type": ["null"]}}},
                "K": {"enum": ["x", "y"]},
            },
        },
        '{a?: {b?: {s?, k?: "x"|"y", n?: null}}}',
    ),
    (
        {"properties": {"a": {"properties": {"b": {"properties": {"c": {"properties": {"d": {"items": {}}}}}}}}}},
        "{a?: {b?: {c?: {d?: any}}}}",
    ),
    ({"properties": {"u": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "{u?: string|null}"),
    (
        {"properties": {"d": {"type": "string", "description": "The day. Not the\n  hour."}}},
        "{d? (The day. Not the hour)}",
    ),
    (
        {"properties": {"p": {"type": "object", "properties": {"x": {"type": "number", "description": "East."}}}}},
        "{p?: {x?: number (East)}}",
    ),
    (
        {
            "properties": {
                "i": {"type": "array", "items": {"properties": {"n": {"type": "integer", "description": "N."}}}}
            }
        },
        "{i?: {n?: integer (N)}[]}",
    ),
    (
        {"properties": {"c": {"$ref": "#/$defs/C"}}, "$defs": {"C": {"type": "string", "description": "A colour."}}},
        "{c? (A colour)}",
    ),
]


@pytest.mark.parametrize(("schema", "signature"), SIGNATURES, ids=[signature for _, signature in SIGNATURES])
def test_arguments_are_told_as_a_short_signature(schema: dict[str, Any], signature: str) -> None:
    told = tool_definitions({"t": {"visible": schema, "description": "Does it. And more."}})
    assert told == f"- t({signature}): Does it. And more."


PAY = "Pay money, e.g. a refund. Never pay more than 500 EUR."


def test_a_schema_whose_parts_are_each_other_many_times_is_told_briefly() -> None:
    parts: dict[str, Any] = {f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 30} for n in range(30)}
    wide = {f"p{n}": {"$ref": "#/$defs/W"} for n in range(30)}
    parts |= {"D30": {"allOf": [{"$ref": "#/$defs/D0"}, {"properties": wide}]}, "W": {"properties": wide}}
    visible: dict[str, Any] = {"type": "object", "$ref": "#/$defs/D0", "$defs": parts}
    told = tool_definitions({"t": {"description": "About.", "visible": visible}})
    assert told.startswith("- t({p0?: {p0?: {p0?: any, ")
    assert told.endswith("p28?: any, p29?: any}): About.")
    assert len(told) < 10_000


def test_a_description_is_told_whole_and_its_first_sentence_alone_where_the_author_asks_for_brevity() -> None:
    tool = {"visible": {"properties": {"to": {"type": "string", "description": PAY}}}, "description": PAY}
    assert tool_definitions({"t": tool}) == f"- t({{to? ({PAY.rstrip('.')})}}): {PAY}"
    first = "Pay money, e.g. a refund"
    assert tool_definitions({"t": tool}, brief=True) == f"- t({{to? ({first})}}): {first}."


def test_what_is_longer_than_a_model_reads_ends_with_a_mark() -> None:
    tool = {"visible": {"properties": {"a": {"type": "string", "description": "y" * 301}}}, "description": "x" * 1001}
    told = tool_definitions({"t": tool})
    assert told == f"- t({{a? ({'y' * 299}…)}}): {'x' * 999}…"
    exact = {"visible": {"properties": {"a": {"type": "string", "description": "y" * 300}}}, "description": "x" * 1000}
    assert "…" not in tool_definitions({"t": exact})


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (PAY, "Pay money, e.g. a refund."),
        ("Ask Dr. Okafor, i.e. The boss. Then wait.", "Ask Dr. Okafor, i.e. The boss."),
        ("Prices in U.S. Dollars. No cents.", "Prices in U.S. Dollars."),
        ("See no. 5 (vol. 2). More.", "See no. 5 (vol. 2)."),
        ("Use version 2.5 or later. More.", "Use version 2.5 or later."),
        ("What is it? A tool.", "What is it?"),
        ("No end of a sentence", "No end of a sentence"),
        ("Files, links etc. are found. More.", "Files, links etc. are found."),
        ("查询天气。只查今天。", "查询天气。"),
        ("他说：“好。”然后走了。", "他说：“好。”"),
    ],
)
def test_the_full_stop_of_an_abbreviation_ends_no_sentence(text: str, first: str) -> None:
    assert first_sentence(text) == first


def test_no_tools_are_told_too() -> None:
    assert "none" in tool_definitions({})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_language_has_every_template(language: str) -> None:
    texts = templates(language, {}, protocol="plan")
    assert texts.keys() == NAMES.keys()
    assert templates(language, {}).keys() == NAMES.keys() - OF_A_PLAN
    assert all(texts.values())


def test_no_template_lies_unused() -> None:
    directory = Path(__file__).parents[2] / "agent_core" / "prompts"
    assert {path.stem for path in directory.glob("*/*.md")} == {*NAMES, PLAIN_EXAMPLE}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("$tool says $observation", "sum says 50 % $ok %(tool)s"),
        ("${tool}s: $observation", "sums: 50 % $ok %(tool)s"),
        ("100 % of $$5 %s %(tool)s: $observation", "100 % of $5 %s %(tool)s: 50 % $ok %(tool)s"),
        ("nothing", "nothing"),
    ],
)
def test_templates_are_filled_once_and_by_dollar_signs_alone(template: str, text: str) -> None:
    assert Feedback({"observation": template}).observation("sum", "50 % $ok %(tool)s") == text


LANGUAGES = ("en", "zh")


def replies(language: str, name: str) -> list[str]:
    """The replies that a template shows, whoever is said to speak."""
    return [
        line[line.index("{") : line.rindex("}") + 1]
        for line in built_in(language, name).splitlines()
        if '{"type"' in line
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_two_legal_forms_stand_before_the_tools(language: str) -> None:
    action, final = replies(language, "system")
    assert isinstance(parse(action.replace("...", "")), Action)
    assert isinstance(parse(final), Final)
    assert built_in(language, "system").index(final) < built_in(language, "system").index("$tool_definitions")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (
            {"steps": 5, "tool_calls": 10, "seconds": 120.0},
            ("5 replies, 10 calls, 120 seconds", "5 次回复、10 次调用、120 秒"),
        ),
        (
            {"steps": 5, "tokens": 4000, "cost": 0.25},
            ("5 replies, 4000 tokens, 0.25 USD", "5 次回复、4000 个 token、0.25 美元"),
        ),
        ({"steps": None}, ("no limit", "无限制")),
    ],
    ids=["usual", "all", "none"],
)
def test_the_limits_in_force_are_told(limits: Any, told: tuple[str, str]) -> None:
    assert tuple(describe_limits(limits, words_in(language)) for language in LANGUAGES) == told
    assert all(
        "$limits" in built_in(language, "system", protocol) for language in LANGUAGES for protocol in ("json", "tools")
    )


@pytest.mark.parametrize(
    ("seconds", "timeout", "told"),
    [(120, 120, "120"), (7, 7, "7"), (57.9, 120, "50"), (50.0001, 120, "50"), (3, 120, "10"), (57.9, None, "50")],
)
def test_seconds_that_a_parent_has_left_are_told_in_steps(seconds: float, timeout: float | None, told: str) -> None:
    assert describe_limits({"seconds": seconds}, words_in("en"), timeout=timeout) == f"{told} seconds"


def test_page_names_each_template_with_its_variables() -> None:
    page = (Path(agent_core.__file__).parent / "prompts" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", page, re.MULTILINE)
    named = {
        name: (frozenset(re.findall(r"`\$(\w+)`", variables)), frozenset(re.findall(r"\*\*`\$(\w+)`\*\*", variables)))
        for name, variables in rows
    }
    assert named == dict(NAMES)
