"""OpenAICompatible: any endpoint that speaks OpenAI's chat completions, as a ModelClient."""

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from random import random
from time import monotonic, time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from agent_core.errors import DefinitionError
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.openai.capabilities import EndpointCapabilities, learnt
from agent_core.models.openai.prices import cost
from agent_core.models.openai.request import request_body, teaches, toned_down
from agent_core.models.openai.response import Answer, Refusal
from agent_core.models.openai.response_reader import WholeReply, incoming
from agent_core.models.openai.stream_request import Streaming, known, less_streamed, streamed, wants_stream
from agent_core.models.openai.vendors import Vendor, info_of

if TYPE_CHECKING:
    from agent_core.models.openai.connections import Transport
    from agent_core.models.openai.transport import Part, Wire

log = logging.getLogger("agent_core")
ATTEMPTS = 3
LONGEST_WAIT = 60.0
LONGEST_MESSAGE = 500
SHORTEST_SECRET = 8
SHORTEST_TAIL = 4
DRAIN_SECONDS = 0.1


class OpenAICompatible:
    """A model behind an endpoint. Event loops may share it: each gets connections of its own, at its first question.

    What may pass (408, 409, 429, 5xx, a lost connection) is tried 3 times, the first wait being about `backoff`
    seconds unless the endpoint names another. Without a `transport` it is aiohttp where that is installed, else httpx2.
    Raises DefinitionError for a `base_url` or `api_key` that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None,
        backoff: float = 0.5,
        transport: "Transport | None" = None,
        vendor: Vendor | None = None,
    ) -> None:
        self._model, self._base_url, self._backoff = model, base_url, backoff
        self._endpoint = _endpoint(base_url)
        self._key = _header_value(api_key.strip()) if api_key else None
        self._transport = transport
        self._vendor = vendor
        self._habits = vendor.habits if vendor else EndpointCapabilities()
        self._streaming: Streaming = "with usage"
        self._wires: WeakKeyDictionary[asyncio.AbstractEventLoop, Wire] = WeakKeyDictionary()

    async def complete(self, question: Question) -> Completion:
        """The reply; every attempt counts as a request, those too that taught us what the endpoint does not take."""
        async with aclosing(self._replied(question, None)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise AssertionError

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """The reply as it is written, and last all of it; whoever stops before that must close the iterator."""
        async with aclosing(self._replied(question, self._streaming)) as pieces:
            async for piece in pieces:
                yield piece

    async def _replied(self, question: Question, asked: Streaming | None) -> AsyncGenerator[Delta | Completion]:
        """The one loop of attempts. The pieces since the reply last began anew are its whole text."""
        before = habits = self._habits
        attempts, requests, told, begun = 1, 0, False, monotonic()
        streaming: Streaming = asked or ("with usage" if habits.streams else "not")
        while True:
            requests += 1
            question.requested()
            anew, outcome = told, None
            body = streamed(request_body(self._model, question, habits), streaming)
            async with aclosing(self._ask(body)) as parts:
                async for part in parts:
                    if not isinstance(part, str):
                        outcome = part
                    elif asked:
                        yield Delta(part, anew=anew)
                        told, anew = True, False
            assert outcome is not None
            if isinstance(outcome, Completion):
                self._remember(learnt(self._habits, before, habits), known(self._streaming, asked, streaming))
                price = self._cost(outcome)
                unchanged = requests == outcome.requests and price == outcome.cost
                yield outcome if unchanged else replace(outcome, requests=requests, cost=price)
                return
            if not habits.streams and streaming == "not" and wants_stream(outcome):
                habits, streaming = replace(habits, streams=True, thinks=True), "with usage"
            elif less := less_streamed(streaming, outcome):
                streaming = less
            elif milder := toned_down(habits, question, outcome):
                if milder.format != habits.format and not teaches(outcome):
                    before = replace(before, format=milder.format)  # for this question only
                habits = milder
            elif not outcome.transient or attempts == ATTEMPTS:
                raise self._error(outcome, requests)
            else:
                left = LONGEST_WAIT if question.within is None else question.within - (monotonic() - begun)
                if (pause := self._pause(outcome, attempts)) > min(LONGEST_WAIT, left):
                    raise self._error(outcome, requests, waited=False)
                await asyncio.sleep(pause)
                attempts += 1

    def info(self) -> ModelInfo:
        info = info_of(self._vendor, self._model)
        schema = info.json_schema if self._habits.format == "json_schema" else False
        return replace(info, json_schema=schema, streaming=False if self._streaming == "not" else info.streaming)

    async def close(self) -> None:
        """Let go of this event loop's connections. A later question opens new ones."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    async def _ask(self, body: bytes) -> AsyncGenerator[str | Completion | Refusal]:
        """One attempt: the reply's text as it comes, and last what became of it."""
        async with aclosing(self._wire().ask(body)) as parts:
            async for part in parts:
                match part:
                    case Refusal():
                        yield part
                        return
                    case Answer():
                        reply = incoming(part)
                    case bytes():
                        for text in reply.feed(part):
                            yield text
                        if reply.done:
                            await _drain(parts)
                            break
        outcome = reply.end(time())
        if isinstance(reply, WholeReply) and isinstance(outcome, Completion) and outcome.content:
            yield outcome.content
        yield outcome

    def _wire(self) -> "Wire":
        loop = asyncio.get_running_loop()
        wire = self._wires.get(loop)
        if wire is None:
            from agent_core.models.openai.transport import Wire

            wire = self._wires[loop] = Wire(self._base_url, self._key, self._transport)
        return wire

    def _cost(self, reply: Completion) -> float | None:
        """In USD: by the vendor's own word, else by the price list."""
        if reply.cost is not None or self._vendor is None:
            return reply.cost
        return cost(self._vendor.prices, self._model, reply.input_tokens, reply.cached_tokens, reply.output_tokens)

    def _remember(self, habits: EndpointCapabilities, streaming: Streaming) -> None:
        if (habits, streaming) != (self._habits, self._streaming):
            told = "model %s at %s: from now on asked with %s, streaming %s"
            log.info(told, self._model, self._endpoint, habits, streaming)
            self._habits, self._streaming = habits, streaming

    def _pause(self, refusal: Refusal, attempt: int) -> float:
        backoff = self._backoff * 2 ** (attempt - 1) * (0.75 + random() / 2)
        return refusal.wait or backoff

    def _error(self, refusal: Refusal, requests: int, *, waited: bool = True) -> ModelError:
        told = " ".join(f"{self._endpoint} {refusal.message}".split())
        if self._key and len(self._key) >= SHORTEST_SECRET:
            told = _without(self._key, _without(b64encode(self._key.encode()).decode(), told))
        if len(told) > LONGEST_MESSAGE:
            told = told[:LONGEST_MESSAGE] + " …"
        if refusal.wait and not waited:
            told += f" (it asks to wait {refusal.wait:g} seconds, longer than we do)"
        kind = "content_filter" if refusal.code == "content_filter" else "model_error"
        return ModelError(told, kind=kind, requests=requests)


async def _drain(parts: "AsyncIterator[Part]") -> None:
    """Read to the end of an answer whose reply is whole, so that its connection can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in parts:
                pass


def _without(secret: str, text: str) -> str:
    """The text without a secret, nor the beginning of one at which it was cut off."""
    text = text.replace(secret, "***")
    for size in range(len(secret), SHORTEST_TAIL - 1, -1):
        if text.endswith(secret[:size]):
            return text[:-size] + "***"
    return text


def _endpoint(base_url: str) -> str:
    """host:port of a base URL, for messages; DefinitionError unless it is http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise DefinitionError(f"not a URL: {error}", where="base_url") from None
    if "@" in parts.netloc:
        raise DefinitionError("a URL must not carry a password; give the key as api_key", where="base_url")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise DefinitionError("must be http(s)://host[:port][/path]", where="base_url", value=base_url)
    return f"{host}:{port}" if port else host


def _header_value(key: str) -> str:
    if key.isascii() and key.isprintable():
        return key
    raise DefinitionError("must be printable ASCII, as it is sent in a header", where="api_key")
