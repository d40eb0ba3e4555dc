"""ChatWire: OpenAI's chat completions, which nearly every vendor speaks."""

from dataclasses import dataclass, replace

from agent_core.models.client import Completion, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted, Written
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.conversation import join_messages
from agent_core.models.endpoint.reader import Reader, open_reader
from agent_core.models.endpoint.refused_parts import downgrade_streaming, is_format_refusal
from agent_core.models.endpoint.request_head import RequestHead
from agent_core.models.openai.head import write_head
from agent_core.models.openai.joined import JoinedCompletion
from agent_core.models.openai.messages import CALLS, find_refused_form, write_messages
from agent_core.models.openai.request import downgrade, request_body, wants_stream, with_stream
from agent_core.models.openai.response import find_error, read_reply

ANY_ENDPOINT = EndpointCapabilities()
"""What is known of an endpoint that no table has."""


@dataclass(frozen=True, slots=True)
class ChatWire:
    """Chat completions at an endpoint with these capabilities."""

    capabilities: EndpointCapabilities = ANY_ENDPOINT
    api = "chat"

    async def read_head(self, model: str, base_url: str, api_key: str | None, *, streams: bool) -> RequestHead:
        return write_head("/chat/completions", base_url, api_key)

    def write(
        self, model: str, question: Question, capabilities: EndpointCapabilities, streaming: Streaming
    ) -> Written:
        left_out = capabilities.left_out
        written = write_messages(question.messages, left_out) if left_out else question.messages
        messages, dropped = join_messages(written)
        body = request_body(model, messages, question.options, capabilities)
        return Written(with_stream(body, streaming), dropped)

    def adapt(
        self,
        model: str,
        question: Question,
        capabilities: EndpointCapabilities,
        streaming: Streaming,
        refusal: Refusal,
    ) -> Adapted | None:
        has_to_think = question.options.get("reasoning") not in (None, "none")
        if not capabilities.only_streams and streaming == "not" and wants_stream(refusal, has_to_think=has_to_think):
            return Adapted(replace(capabilities, only_streams=True, allows_thinking=True), "with usage")
        if lower_streaming := downgrade_streaming(streaming, refusal):
            return Adapted(capabilities, lower_streaming)
        if form := find_refused_form(question.messages, capabilities.left_out, refusal):
            less = replace(capabilities, left_out=capabilities.left_out | {form})
            return Adapted(less, streaming, lasting=form != CALLS)
        if lower := downgrade(capabilities, question, refusal):
            lasting = lower.format == capabilities.format or is_format_refusal(refusal)
            return Adapted(lower, streaming, lasting)
        return None

    def open_reader(self, head: HttpAnswer, first: bytes) -> Reader:
        return open_reader(head, first, read_reply, find_error, JoinedCompletion)

    def follow(self, question: Question, completion: Completion) -> Question | None:
        return None
