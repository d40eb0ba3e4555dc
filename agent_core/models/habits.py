"""Habits: what an endpoint takes, as its vendor says or as it has told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Habits:
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
