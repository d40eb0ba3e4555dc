"""Wire: how one API is spoken. The client of endpoints brings everything else: attempts, connections, keys, costs."""

from typing import Protocol

from agent_core.models.client import Completion, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted, Written
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.reader import Reader
from agent_core.models.endpoint.request_head import RequestHead


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

    async def read_head(self, model: str, base_url: str, api_key: str | None, *, streams: bool) -> RequestHead:
        """Return the URL and the headers of each question, with the key; a vendor's SDK may have to be asked."""
        ...

    def write(
        self, model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming
    ) -> Written: ...

    def adapt(
        self,
        model: str,
        question: Question,
        capabilities: EndpointCapabilities,
        streaming: Streaming,
        refusal: Refusal,
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
