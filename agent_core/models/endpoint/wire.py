"""Wire: how one API is spoken. The client of endpoints brings everything else: attempts, connections, keys, costs."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from agent_core.models.client import Completion, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.conversation import join_parts
from agent_core.models.endpoint.reader import Reader

if TYPE_CHECKING:
    import httpx2

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


class Wire(Protocol):
    """One API of an endpoint. It holds nothing of a question, and what it learns is in the capabilities."""

    @property
    def api(self) -> str:
        """The name of the API, under which its own parts of a message are kept: chat, responses, messages, gemini."""
        ...

    @property
    def capabilities(self) -> EndpointCapabilities:
        """What is known of the endpoint before its first answer."""
        ...

    async def send_empty(
        self, http: "httpx2.AsyncClient", model: str, base_url: str, api_key: str | None, *, streams: bool
    ) -> None:
        """Let the vendor's SDK send a request by `http`, which catches it: its URL and headers are those of each
        question."""
        ...

    def write(
        self, model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming
    ) -> Written: ...

    def adapt(
        self, question: Question, capabilities: EndpointCapabilities, streaming: Streaming, refusal: Refusal
    ) -> Adapted | None:
        """Return how to ask for less, where a refusal is about a part of the request; None when it is not.

        Each change leaves out something that was sent, so that the changes end.
        """
        ...

    def open_reader(self, head: HttpAnswer, first: bytes) -> Reader:
        """Return the reader for the body that follows this head and begins with these bytes."""
        ...

    def follow(self, question: Question, completion: Completion) -> Question | None:
        """Return the question that lets the model go on with a reply that its vendor has paused; None for any
        other."""
        ...


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
