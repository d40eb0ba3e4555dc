"""ResponsesWire: OpenAI's Responses API."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from agent_core.models.client import Completion, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted, Written
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.reader import Reader, open_reader
from agent_core.models.endpoint.request_head import RequestHead
from agent_core.models.openai.head import OWN_HOST, write_head
from agent_core.models.openai.responses.adapt import ask_for_less
from agent_core.models.openai.responses.items import API
from agent_core.models.openai.responses.joined import JoinedResponse
from agent_core.models.openai.responses.request import write_request
from agent_core.models.openai.responses.response import find_error, read_reply

ANY_JSON = EndpointCapabilities(format="json_object")
"""A strict schema wants every property required, and no alternatives at its root; another one is only a hint."""
VERSION = "/v1"


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """The Responses API at an endpoint with these capabilities. Nothing is stored there."""

    capabilities: EndpointCapabilities = ANY_JSON
    api = API

    async def read_head(self, model: str, base_url: str, api_key: str | None, *, streams: bool) -> RequestHead:
        return write_head("/responses", with_version(base_url), api_key)

    def write(
        self, model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming
    ) -> Written:
        return write_request(model, question, capabilities, streaming)

    def adapt(
        self,
        model: str,
        question: Question,
        capabilities: EndpointCapabilities,
        streaming: Streaming,
        refusal: Refusal,
    ) -> Adapted | None:
        return ask_for_less(question, capabilities, streaming, refusal)

    def open_reader(self, head: HttpAnswer, first: bytes) -> Reader:
        return open_reader(head, first, read_reply, find_error, JoinedResponse)

    def follow(self, question: Question, completion: Completion) -> Question | None:
        return None


def with_version(base_url: str) -> str:
    """Return the base URL with the version that OpenAI's own host wants; other vendors' paths are theirs."""
    url = urlsplit(base_url)
    return base_url.rstrip("/") + VERSION if url.hostname == OWN_HOST and url.path in ("", "/") else base_url
