"""What is sent for a question, how it is asked again after a refusal, and a reply that came in parts. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from agent_core.models.client import Completion
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.conversation import join_parts
from agent_core.outputs import Json

Number = TypeVar("Number", int, float)


class Written(NamedTuple):
    """The body of a request. `dropped` are the APIs whose own parts of the conversation were left out of it."""

    body: bytes
    dropped: tuple[str, ...] = ()


class Adapted(NamedTuple):
    """How to ask again after a refusal; `lasting`: later questions too."""

    capabilities: EndpointCapabilities
    streaming: Streaming
    lasting: bool = True


def merge_extra(body: Json, extra: Mapping[str, Any]) -> Json:
    """Return the body of a request with the author's parameters of the vendor; objects are merged key by key."""
    merged = {**body}
    for name, value in extra.items():
        old = merged.get(name)
        merged[name] = merge_extra(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


def join(before: Completion, after: Completion) -> Completion:
    """Return the two parts of one reply as one; what is not known of one part is not known of the whole."""
    return replace(
        after,
        content=before.content + after.content,
        calls=before.calls + after.calls,
        input_tokens=_add(before.input_tokens, after.input_tokens),
        output_tokens=_add(before.output_tokens, after.output_tokens),
        cost=_add(before.cost, after.cost),
        cached_tokens=before.cached_tokens + after.cached_tokens,
        cache_write_tokens=before.cache_write_tokens + after.cache_write_tokens,
        reasoning_tokens=before.reasoning_tokens + after.reasoning_tokens,
        echo=join_parts(before.echo, after.echo),
        estimated=before.estimated or after.estimated,
        dropped=before.dropped or after.dropped,
    )


def _add(before: Number | None, after: Number | None) -> Number | None:
    return None if before is None or after is None else before + after
