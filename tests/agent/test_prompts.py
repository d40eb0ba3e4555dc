"""Prompts: the tool section, and that every language has every template."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.loop.prose import Prose
from agent_core.prompts.render import NAMES, built_in, templates
from agent_core.prompts.tools import tool_definitions

SIGNATURES: list[tuple[dict[str, Any], str]] = [
    ({"type": "object", "properties": {}}, "{}"),
    ({"type": "object"}, "object"),
    ({"properties": {"q": {"type": "string"}}, "required": ["q"]}, "{q: string}"),
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
    ({"properties": {"d": {"type": "string", "description": "The day. Not the hour."}}}, "{d?: string /* The day. */}"),
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
    assert Prose({"observation": template}).observation("sum", "50 % $ok %(tool)s") == text


def test_the_built_in_examples_follow_the_protocol() -> None:
    from agent_core import parse

    for language, who in (("en", "You: "), ("zh", "你：")):
        replies = [
            line.removeprefix(who) for line in built_in(language, "examples").splitlines() if line.startswith(who)
        ]
        kinds = [type(parse(reply)).__name__ for reply in replies]
        assert kinds == ["Action", "Final", "Action", "Action", "Final", "Final"]
