"""EndpointClient: a model behind an endpoint, whichever API it speaks, as a ModelClient."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from random import random
from time import monotonic, time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.endpoint.address import check_key, mask, read_host
from agent_core.models.endpoint.answer import NOT_LISTENING, HttpAnswer, Refusal
from agent_core.models.endpoint.asking import join
from agent_core.models.endpoint.capabilities import (
    EndpointCapabilities,
    Streaming,
    merge,
    merge_streaming,
    without_change,
)
from agent_core.models.endpoint.refusals import BAD_SAMPLE, is_bad_call, lacks_tools
from agent_core.models.endpoint.route import DIRECT, Route
from agent_core.models.endpoint.wire import Wire
from agent_core.models.finish_reasons import MALFORMED
from agent_core.models.prices import cost
from agent_core.models.usage import count_usage
from agent_core.models.vendors import Vendor, model_info
from agent_core.protocol.tokens import estimate_question

if TYPE_CHECKING:
    from agent_core.models.endpoint.connections import Transport
    from agent_core.models.endpoint.request_head import RequestHead
    from agent_core.models.endpoint.transport import EndpointTransport, Part

log = logging.getLogger("agent_core")
MAX_ATTEMPTS = 3
MAX_WAIT = 60.0
MAX_OUTAGE_PAUSE = 5.0
MAX_MESSAGE = 500
MIN_SECRET = 8
DRAIN_SECONDS = 0.1
MAX_TURNS = 8
"""Requests for one reply whose vendor pauses it."""
UNAUTHORIZED = (401, 403)


@dataclass(slots=True)
class _Attempts:
    """One question's attempts. `asked` is how the caller wants the stream, None for a whole reply.

    `first` are the capabilities at the question's start, `capabilities` and `streaming` what the next attempt goes by.
    """

    question: Question
    asked: Streaming | None
    first: EndpointCapabilities
    capabilities: EndpointCapabilities
    streaming: Streaming
    start: float
    count: int = 1
    requests: int = 0

    def adapt(self, wire: Wire, model: str, refusal: Refusal) -> bool:
        """Ask for less, where the refusal is about a part of the request; False when it is not."""
        adapted = wire.adapt(model, self.question, self.capabilities, self.streaming, refusal)
        if adapted is None:
            return False
        if not adapted.lasting:
            self.first = without_change(self.first, self.capabilities, adapted.capabilities)
        self.capabilities, self.streaming = adapted.capabilities, adapted.streaming
        return True

    def seconds_left(self) -> float:
        """Return the longest wait before the next attempt."""
        if self.question.within is None:
            return MAX_WAIT
        return min(MAX_WAIT, self.question.within - (monotonic() - self.start))


class EndpointClient:
    """A model behind an endpoint that speaks the API of `wire`. Event loops may share it: each gets its own
    connections, at its first question.

    A transient failure (408, 409, 429, 5xx, a lost connection) is tried 3 times; the first wait is about `backoff`
    seconds unless the endpoint names another. One that has answered before, and where nobody listens now, is asked for
    as long as the question may take. Requests go by aiohttp unless `transport` says httpx2. `keyless` says why there is
    no key, for an endpoint that wants one. Raises DefinitionError for a `base_url` or `api_key` that cannot be one.
    """

    def __init__(
        self,
        model: str,
        wire: Wire,
        *,
        base_url: str,
        api_key: str | None,
        backoff: float = 0.5,
        transport: "Transport | None" = None,
        vendor: Vendor | None = None,
        keyless: str = "",
        route: Route = DIRECT,
    ) -> None:
        self._model, self._wire, self._base_url, self._backoff = model, wire, base_url, backoff
        self._host = read_host(base_url)
        self._key = check_key(api_key.strip()) if api_key else None
        self._keyless, self._route = "" if api_key else keyless, route
        self._transport: Transport | None = transport
        self._vendor = vendor
        self._capabilities = wire.capabilities
        self._streaming: Streaming = "with usage"
        self._has_answered = False
        self._transports: WeakKeyDictionary[asyncio.AbstractEventLoop, EndpointTransport] = WeakKeyDictionary()

    async def complete(self, question: Question) -> Completion:
        """Return the reply. Every attempt counts as a request, also those that showed what the endpoint does not
        accept."""
        async with aclosing(self._ask(question, None)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise AssertionError

    async def stream(self, question: Question) -> AsyncGenerator[Delta | Completion]:
        """Yield the reply as it is written, and last the whole reply. Who stops before that must close the iterator."""
        async with aclosing(self._ask(question, self._streaming)) as pieces:
            async for piece in pieces:
                yield piece

    async def _ask(self, question: Question, asked: Streaming | None) -> AsyncGenerator[Delta | Completion]:
        """Yield the loop of attempts. A piece with `anew` begins the reply again; the pieces since then are its
        text."""
        known = self._capabilities
        streaming: Streaming = asked or ("with usage" if known.only_streams else "not")
        attempts, has_shown = _Attempts(question, asked, known, known, streaming, monotonic()), False
        whole: Completion | None = None
        turns = 1
        while True:
            attempts.requests += 1
            question.requested()
            anew, outcome = has_shown, None
            how = attempts.capabilities, attempts.streaming
            written = self._wire.write(self._model, attempts.question, *how)
            async with aclosing(self._send(written.body, streams=attempts.streaming != "not")) as parts:
                async for part in parts:
                    if not isinstance(part, str):
                        outcome = part
                    elif asked:
                        before = whole.content if anew and whole is not None else ""
                        yield Delta(before + part, anew=anew)
                        has_shown, anew = True, False
            assert outcome is not None
            if isinstance(outcome, Refusal):
                if outcome.overflow:
                    raise self._error(outcome, attempts.requests)
                is_bad = _is_of_bad_call(outcome)
                if (not is_bad or outcome.code == BAD_SAMPLE) and attempts.adapt(self._wire, self._model, outcome):
                    continue
                if not is_bad:
                    await self._wait(outcome, attempts)
                    continue
                outcome = Completion(outcome.generation, MALFORMED, refusal=self._clean(outcome.message))
            if asked and anew:  # the reply has no text, and what was shown of an earlier attempt is void
                yield Delta("" if whole is None else whole.content, anew=True)
            said = replace(outcome, dropped=written.dropped) if written.dropped else outcome
            whole = said if whole is None else join(whole, said)
            following = self._wire.follow(attempts.question, said) if turns < MAX_TURNS else None
            if following is None:
                yield self._settle(whole, attempts)
                return
            attempts.question, turns, has_shown = following, turns + 1, False

    def _settle(self, completion: Completion, attempts: _Attempts) -> Completion:
        """Return the reply with its requests and cost; what the attempts have shown is remembered."""
        self._has_answered = True
        if completion.unread:
            message = (
                "the reply of %s at %s has no text, and %d characters of reasoning: if its answer is among them, "
                "its server takes it for a thought; turn its reasoning parser off there, or the model's thinking"
            )
            log.warning(message, self._model, self._host, completion.unread)
        capabilities = self._capabilities
        if attempts.capabilities is not attempts.first:
            capabilities = merge(capabilities, attempts.first, attempts.capabilities)
        self._remember(capabilities, merge_streaming(self._streaming, attempts.asked, attempts.streaming))
        price = self._cost_of(completion, attempts.question)
        if attempts.requests == completion.requests and price == completion.cost:
            return completion
        return replace(completion, requests=attempts.requests, cost=price)

    async def _wait(self, refusal: Refusal, attempts: _Attempts) -> None:
        """Wait before the next attempt; ModelError when there is none."""
        is_outage = refusal.code == NOT_LISTENING and self._has_answered and attempts.question.within is not None
        if not refusal.transient or (attempts.count >= MAX_ATTEMPTS and not is_outage):
            raise self._error(refusal, attempts.requests)
        pause = refusal.wait or self._backoff * 2 ** min(attempts.count - 1, 9) * (0.75 + random() / 2)
        if is_outage:
            pause = min(pause, MAX_OUTAGE_PAUSE)
        if pause > attempts.seconds_left():
            raise self._error(refusal, attempts.requests, waited=False)
        if attempts.count >= MAX_ATTEMPTS:
            message = "model %s at %s is unavailable: it %s; retrying for %.0f more seconds"
            log.warning(message, self._model, self._host, refusal.message, attempts.seconds_left())
        await asyncio.sleep(pause)
        attempts.count += 1

    async def _send(self, body: bytes, *, streams: bool) -> AsyncGenerator[str | Completion | Refusal]:
        """Yield one attempt: the reply's text as it comes, and last the completion or the refusal."""
        head, reader = None, None
        async with aclosing(self._transport_of_loop().ask(body, streams=streams)) as parts:
            async for part in parts:
                match part:
                    case Refusal():
                        yield part
                        return
                    case HttpAnswer():
                        head = part
                    case bytes():
                        assert head is not None
                        reader = reader or self._wire.open_reader(head, part)
                        for text in reader.feed(part):
                            yield text
                        if reader.done:
                            await _drain(parts)
                            break
        assert head is not None
        reader = reader or self._wire.open_reader(head, b"")
        outcome = reader.end(time())
        if rest := reader.rest(outcome):
            yield rest
        yield outcome

    def info(self) -> ModelInfo:
        info = model_info(self._vendor, self._model)
        schema = info.json_schema if self._capabilities.format == "json_schema" else False
        streaming = False if self._streaming == "not" else info.streaming
        return replace(info, json_schema=schema, streaming=streaming, api=self._wire.api)

    async def close(self) -> None:
        """Close this event loop's connections, once what is under way was answered. A later question opens new ones."""
        transport = self._transports.pop(asyncio.get_running_loop(), None)
        if transport is not None:
            await transport.close()

    def _transport_of_loop(self) -> "EndpointTransport":
        loop = asyncio.get_running_loop()
        transport = self._transports.get(loop)
        if transport is None:
            from agent_core.models.endpoint.transport import EndpointTransport

            self._forget_closed_loops()
            transport = self._transports[loop] = EndpointTransport(
                self._base_url, self._read_head, self._transport, self._route
            )
        return transport

    async def _read_head(self, *, streams: bool) -> "RequestHead":
        return await self._wire.read_head(self._model, self._base_url, self._key, streams=streams)

    def _forget_closed_loops(self) -> None:
        """A transport refers to its loop, so that the weak dictionary alone would keep both."""
        for reference in self._transports.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                self._transports.pop(loop, None)

    def _cost_of(self, completion: Completion, question: Question) -> float | None:
        """In USD: as the vendor says, else by the price list, of an estimate where the vendor has not counted."""
        if completion.cost is not None or self._vendor is None:
            return completion.cost
        used = count_usage(completion, estimate_question(question.messages, question.options))
        tokens = used["input_tokens"], completion.cached_tokens, used["output_tokens"], completion.cache_write_tokens
        return cost(self._vendor.prices, self._model, *tokens)

    def _remember(self, capabilities: EndpointCapabilities, streaming: Streaming) -> None:
        if (capabilities, streaming) != (self._capabilities, self._streaming):
            message = "model %s at %s: from now on asked with %s, streaming %s"
            log.info(message, self._model, self._host, capabilities, streaming)
            self._capabilities, self._streaming = capabilities, streaming

    def _error(self, refusal: Refusal, requests: int, *, waited: bool = True) -> ModelError:
        text = self._clean(f"{self._host} {refusal.message}")
        if refusal.overflow:
            text += "; max_input_tokens in the node's config keeps its questions shorter"
        if lacks_tools(refusal.message):
            text += "; protocol: json in the node's config asks for calls in plain text"
        if refusal.status in UNAUTHORIZED and self._keyless:
            text += f"; no key was sent, since {self._keyless}"
        if refusal.code == NOT_LISTENING and self._vendor and self._vendor.start:
            start, elsewhere = self._vendor.start, self._vendor.url_env
            text += f"; tried {self._base_url}: `{start}` starts it there, and {elsewhere} says where else it runs"
        if refusal.wait and not waited:
            text += f" (it asks to wait {refusal.wait:g} seconds, longer than we do)"
        kind = "content_filter" if refusal.code == "content_filter" else "model_error"
        return ModelError(text, kind=kind, requests=requests, overflow=refusal.overflow)

    def _clean(self, message: str) -> str:
        """Return a vendor's message in one line, not too long, and without the key."""
        text = " ".join(message.split())
        for secret in (*filter(None, [self._key]), *self._route.secrets):
            if len(secret) >= MIN_SECRET:
                text = mask(secret, text)
        return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " …"


def _is_of_bad_call(refusal: Refusal) -> bool:
    """Return whether the vendor refused what its own model wrote: an unreadable reply, not a fault of the question."""
    return refusal.status > 0 and (refusal.code == BAD_SAMPLE or is_bad_call(refusal.kinds, refusal.message))


async def _drain(parts: "AsyncIterator[Part]") -> None:
    """Read to the end of an answer whose reply is whole, so that its connection can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in parts:
                pass
