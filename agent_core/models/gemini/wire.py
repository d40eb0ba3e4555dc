"""GeminiWire: Google's Gemini API."""

from dataclasses import dataclass

from agent_core.models.client import Completion, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted, Written
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.reader import Reader, open_reader
from agent_core.models.endpoint.request_head import RequestHead
from agent_core.models.gemini.contents import API
from agent_core.models.gemini.joined import JoinedPieces, read_any
from agent_core.models.gemini.refused import downgrade, downgrade_streaming
from agent_core.models.gemini.request import write_request
from agent_core.models.gemini.response import find_error

ANY_ENDPOINT = EndpointCapabilities()
"""What is known of an endpoint that no table has."""


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """The Gemini API at an endpoint with these capabilities. A stream has its own path, and the same body."""

    capabilities: EndpointCapabilities = ANY_ENDPOINT
    api = API

    async def read_head(self, model: str, base_url: str, api_key: str | None, *, streams: bool) -> RequestHead:
        from agent_core.models.endpoint.caught import catch_head
        from agent_core.models.gemini.sdk import send_empty

        return await catch_head(lambda http: send_empty(http, model, base_url, api_key, streams=streams))

    def write(
        self, model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming
    ) -> Written:
        return write_request(model, question, capabilities)

    def adapt(
        self,
        model: str,
        question: Question,
        capabilities: EndpointCapabilities,
        streaming: Streaming,
        refusal: Refusal,
    ) -> Adapted | None:
        if lower_streaming := downgrade_streaming(streaming, refusal):
            return Adapted(capabilities, lower_streaming)
        if lower := downgrade(model, question, capabilities, refusal):
            less, lasting = lower
            return Adapted(less, streaming, lasting)
        return None

    def open_reader(self, head: HttpAnswer, first: bytes) -> Reader:
        return open_reader(head, first, read_any, find_error, JoinedPieces)

    def follow(self, question: Question, completion: Completion) -> Question | None:
        return None
