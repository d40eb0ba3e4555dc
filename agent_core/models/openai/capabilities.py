"""Habits: what an endpoint takes, as its vendor says or as it has told."""

from dataclasses import dataclass, fields, replace
from typing import Any

FORMATS = ("text", "json_object", "json_schema")
"""From the mildest to the strictest."""


@dataclass(frozen=True, slots=True)
class EndpointCapabilities:
    """What is asked of an endpoint, and how: `format` is the strictest response format.

    `strict`: its JSON Schemas carry "strict": true. `choices` are values of tool_choice that it refuses, `keywords`
    words of JSON Schema that it does not know. `thinks`: a model that thinks may do so in a reply that is no stream;
    `streams`: it replies in no other way.
    """

    format: str = "json_schema"
    tokens: str = "max_tokens"
    strict: bool = False
    thinks: bool = True
    streams: bool = False
    left_out: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()


def learnt(
    known: EndpointCapabilities, before: EndpointCapabilities, after: EndpointCapabilities
) -> EndpointCapabilities:
    """What is known, and what one question learnt between its beginning and its end: others learn meanwhile, too."""
    return replace(
        known, **{field.name: _merged(field.name, known, before, after) for field in fields(EndpointCapabilities)}
    )


def _merged(name: str, *habits: EndpointCapabilities) -> Any:
    known, before, after = (getattr(each, name) for each in habits)
    if isinstance(known, frozenset):
        return known | (after - before)
    if after == before:
        return known
    return min(known, after, key=FORMATS.index) if name == "format" else after
