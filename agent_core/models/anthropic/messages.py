"""MessagesWire: Anthropic's Messages API."""

import asyncio
from dataclasses import dataclass, replace
from importlib import import_module

import orjson

from agent_core.models.anthropic.joined import JoinedMessage
from agent_core.models.anthropic.refused import leave_out
from agent_core.models.anthropic.request import API, NOT_WHILE_THINKING, Asked, write_request
from agent_core.models.anthropic.response import PAUSED, find_error, read_reply
from agent_core.models.client import Completion, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted, Written
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.conversation import OWN_PARTS
from agent_core.models.endpoint.reader import Reader, open_reader
from agent_core.models.endpoint.refused_parts import downgrade_streaming
from agent_core.models.endpoint.request_head import RequestHead
from agent_core.models.prices import output_limit

ANY_ENDPOINT = EndpointCapabilities(format="text")
"""What is known of an endpoint that no table has."""
OWN_VENDOR = replace(ANY_ENDPOINT, left_out=frozenset(NOT_WHILE_THINKING))
"""What is known of api.anthropic.com: since the version 2026-10-21 of the API it takes no sampling options."""


@dataclass(frozen=True, slots=True)
class MessagesWire:
    """The Messages API at an endpoint with these capabilities."""

    capabilities: EndpointCapabilities = ANY_ENDPOINT
    api = API

    async def read_head(self, model: str, base_url: str, api_key: str | None, *, streams: bool) -> RequestHead:
        await asyncio.to_thread(import_module, "anthropic")  # it takes a second, in which others go on
        from agent_core.models.anthropic.sdk import send_empty
        from agent_core.models.endpoint.caught import catch_head

        return await catch_head(lambda http: send_empty(http, base_url, api_key))

    def write(
        self, model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming
    ) -> Written:
        return write_request(_ask(model, question), capabilities, streams=streaming != "not")

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
        if (less := leave_out(_ask(model, question), capabilities, refusal)) is None:
            return None
        return Adapted(less[0], streaming, less[1])

    def open_reader(self, head: HttpAnswer, first: bytes) -> Reader:
        return open_reader(head, first, read_reply, find_error, JoinedMessage)

    def follow(self, question: Question, completion: Completion) -> Question | None:
        """Return the question with the paused reply as its last message: the model goes on from there."""
        is_paused = completion.finish_reason == PAUSED and not completion.calls
        if not is_paused or completion.echo is None or OWN_PARTS not in completion.echo:
            return None
        message = {"role": "assistant", "content": completion.content, **completion.echo}
        return replace(question, messages=(*question.messages, orjson.dumps(message)))


def _ask(model: str, question: Question) -> Asked:
    return Asked(model, question, output_limit("anthropic", model))
