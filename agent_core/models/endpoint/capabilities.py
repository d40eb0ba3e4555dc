"""Capabilities: what an endpoint accepts, from its vendor's documents or its own refusals. Pure."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

Streaming = Literal["with usage", "bare", "not"]
"""What an endpoint supports: a stream that ends with its token counts, a stream, or none."""
STREAMINGS: tuple[Streaming, ...] = ("with usage", "bare", "not")
FORMATS = ("text", "json_object", "json_schema")
"""From the loosest to the strictest."""


@dataclass(frozen=True, slots=True)
class EndpointCapabilities:
    """What an endpoint is asked, and how. `format` is the strictest response format.

    `strict`: JSON Schemas carry "strict": true. `left_out` are options that it refuses, `choices` values of
    tool_choice that it refuses, `keywords` words of JSON Schema that it does not know. `allows_thinking`: a thinking
    model may think in a whole reply; `only_streams`: it replies only in a stream; `thinking` is the manner in which it
    is told how much to think.
    """

    format: str = "json_schema"
    tokens: str = "max_tokens"
    strict: bool = False
    allows_thinking: bool = True
    only_streams: bool = False
    thinking: str = "effort"
    left_out: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()


def merge(
    known: EndpointCapabilities, before: EndpointCapabilities, after: EndpointCapabilities
) -> EndpointCapabilities:
    """Return the `known` capabilities with the changes of one question, from `before` to `after`.

    Other questions may have changed `known` meanwhile.
    """
    return replace(
        known, **{field.name: _merge_field(field.name, known, before, after) for field in fields(EndpointCapabilities)}
    )


def without_change(
    first: EndpointCapabilities, before: EndpointCapabilities, after: EndpointCapabilities
) -> EndpointCapabilities:
    """Return the capabilities at a question's start with what has changed from `before` to `after`, which `merge` then
    leaves out: it holds for this question only."""
    changes: dict[str, Any] = {}
    for name in (field.name for field in fields(EndpointCapabilities)):
        old, new, start = (getattr(each, name) for each in (before, after, first))
        if new != old:
            changes[name] = start | (new - old) if isinstance(new, frozenset) else new
    return replace(first, **changes)


def _merge_field(name: str, *capabilities: EndpointCapabilities) -> Any:
    known, before, after = (getattr(each, name) for each in capabilities)
    if isinstance(known, frozenset):
        return known | (after - before)
    if after == before:
        return known
    return min(known, after, key=FORMATS.index) if name == "format" else after


def merge_streaming(before: Streaming, asked: Streaming | None, streaming: Streaming) -> Streaming:
    """Return what is known of an endpoint after a question that first `asked` for this was answered by `streaming`.

    Other questions may have changed `before` meanwhile; a question without a stream changes nothing.
    """
    if asked in (None, streaming):
        return before
    is_further = STREAMINGS.index(streaming) > STREAMINGS.index(before)
    return streaming if asked == "not" or is_further else before
