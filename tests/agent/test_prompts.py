"""Prompts: the tool section, and that every language has every template."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import Action, Final, parse
from agent_core.prompts.render import LIMITS, NAMES, built_in, render, templates
from agent_core.prompts.tools import tool_definitions
from agent_core.protocol.feedback import Feedback

SIGNATURES: list[tuple[dict[str, Any], str]] = [
    ({"type": "object", "properties": {}}, "{}"),
    ({"type": "object"}, "object"),
    ({"properties": {"q": {"type": "string"}}, "required": ["q"]}, "{q}"),
    ({"properties": {"n": {"type": "integer", "default": 20}}}, "{n?: integer = 20}"),
    ({"properties": {"op": {"enum": ["a", "b"]}}}, '{op?: "a"|"b"}'),
    ({"properties": {"xs": {"type": "array", "items": {"type": ["string", "null"]}}}}, "{xs?: (string|null)[]}"),
    (
        {
            "properties": {"p": {"$ref": "#/$defs/P"}},
            "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}},
        },
        "{p?: {x?: number}}",
    ),
    ({"properties": {"r": {"$ref": "#"}}}, "{r?: {r?: {r?: any}}}"),
    ({"properties": {"u": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "{u?: string|null}"),
    ({"properties": {"d": {"type": "string", "description": "The day. Not the hour."}}}, "{d? (The day)}"),
]


@pytest.mark.parametrize(("schema", "signature"), SIGNATURES, ids=[signature for _, signature in SIGNATURES])
def test_arguments_are_told_as_a_short_signature(schema: dict[str, Any], signature: str) -> None:
    told = tool_definitions({"t": {"visible": schema, "description": "Does it. And more."}})
    assert told == f"- t({signature}): Does it."


def test_no_tools_are_told_too() -> None:
    assert "none" in tool_definitions({})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_language_has_every_template(language: str) -> None:
    texts = templates(language, {})
    assert texts.keys() == NAMES.keys()
    assert all(texts.values())


def test_no_template_lies_unused() -> None:
    directory = Path(__file__).parents[2] / "agent_core" / "prompts"
    assert {path.stem for path in directory.glob("*/*.md")} == set(NAMES)


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
def test_the_built_in_examples_follow_the_protocol(language: str) -> None:
    kinds = [type(parse(reply)).__name__ for reply in replies(language, "examples")]
    assert kinds == ["Action", "Final", "Action", "Action", "Final", "Final"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_observe_in_the_words_of_the_loop(language: str) -> None:
    examples = built_in(language, "examples")
    shown = render(built_in(language, "observation"), {"tool": "bus", "observation": '{"minutes":5}'})
    assert shown in examples
    failed = render(built_in(language, "tool_error"), {"tool": "inn", "error": "/nights: expected an integer"})
    assert failed.splitlines()[0] in examples


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_two_legal_forms_stand_before_the_tools(language: str) -> None:
    action, final = replies(language, "system")
    assert isinstance(parse(action.replace("...", "")), Action)
    assert isinstance(parse(final), Final)
    assert built_in(language, "system").index(final) < built_in(language, "system").index("$tool_definitions")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_limits_in_force_are_told(language: str) -> None:
    assert all(f"${name}" in built_in(language, "system") for name in LIMITS)
