"""OpenAICompatible: any endpoint that speaks OpenAI's chat completions, as a ModelClient."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from random import random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from agent_core.errors import DefinitionError
from agent_core.models.chat_reply import Refusal, read
from agent_core.models.chat_request import Habits, request_body, toned_down
from agent_core.models.client import Completion, Delta, ModelError, ModelInfo, Question
from agent_core.models.prices import cost
from agent_core.models.vendors import Vendor, info_of

if TYPE_CHECKING:
    from agent_core.models.wire import Wire

log = logging.getLogger("agent_core")
ATTEMPTS = 3
LONGEST_WAIT = 60.0
LONGEST_MESSAGE = 500
SHORTEST_SECRET = 8


class OpenAICompatible:
    """A model behind an endpoint. Event loops may share it: each gets connections of its own, at its first question.

    What may pass (408, 409, 429, 5xx, a lost connection) is tried 3 times, the first wait being about `backoff`
    seconds unless the endpoint names another. Raises DefinitionError for a `base_url` or `api_key` that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None,
        backoff: float = 0.5,
        vendor: Vendor | None = None,
    ) -> None:
        self._model, self._base_url, self._backoff = model, base_url, backoff
        self._endpoint = _endpoint(base_url)
        self._key = _header_value(api_key.strip()) if api_key else None
        self._vendor = vendor
        self._habits = vendor.habits if vendor else Habits()
        self._wires: WeakKeyDictionary[asyncio.AbstractEventLoop, Wire] = WeakKeyDictionary()

    async def complete(self, question: Question) -> Completion:
        """The reply; every attempt counts as a request, those too that taught us what the endpoint does not take."""
        habits, attempts, requests = self._habits, 1, 0
        while True:
            requests += 1
            outcome = await self._ask(request_body(self._model, question, habits))
            if isinstance(outcome, Completion):
                self._remember(habits)
                return replace(outcome, requests=requests, cost=self._cost(outcome))
            if milder := toned_down(habits, question, outcome):
                habits = milder
                continue
            if not outcome.transient or attempts == ATTEMPTS or (outcome.wait or 0) > LONGEST_WAIT:
                raise self._error(outcome, requests)
            await asyncio.sleep(self._pause(outcome, attempts))
            attempts += 1

    async def stream(self, question: Question) -> AsyncIterator[Delta | Completion]:
        """The reply in one piece."""
        completion = await self.complete(question)
        yield Delta(completion.content)
        yield completion

    def info(self) -> ModelInfo:
        known = info_of(self._vendor, self._model)
        return known if self._habits.format == "json_schema" else replace(known, json_schema=False)

    async def close(self) -> None:
        """Let go of this event loop's connections. A later question opens new ones."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    async def _ask(self, body: bytes) -> Completion | Refusal:
        answer = await self._wire().post(body)
        return answer if isinstance(answer, Refusal) else read(answer, datetime.now(UTC))

    def _wire(self) -> "Wire":
        loop = asyncio.get_running_loop()
        wire = self._wires.get(loop)
        if wire is None:
            from agent_core.models.wire import Wire

            wire = self._wires[loop] = Wire(self._base_url, self._key)
        return wire

    def _cost(self, reply: Completion) -> float | None:
        """In USD: by the vendor's own word, else by the price list."""
        if reply.cost is not None or self._vendor is None:
            return reply.cost
        return cost(self._vendor.prices, self._model, reply.input_tokens, reply.cached_tokens, reply.output_tokens)

    def _remember(self, habits: Habits) -> None:
        if habits != self._habits:
            log.info("model %s at %s: from now on asked with %s", self._model, self._endpoint, habits)
            self._habits = habits

    def _pause(self, refusal: Refusal, attempt: int) -> float:
        backoff = self._backoff * 2 ** (attempt - 1) * (0.75 + random() / 2)
        return refusal.wait or backoff

    def _error(self, refusal: Refusal, requests: int) -> ModelError:
        told = " ".join(f"{self._endpoint} {refusal.message}".split())
        if self._key and len(self._key) >= SHORTEST_SECRET:
            told = told.replace(self._key, "***")
        if len(told) > LONGEST_MESSAGE:
            told = told[:LONGEST_MESSAGE] + " …"
        if (refusal.wait or 0) > LONGEST_WAIT:
            told += f" (it asks to wait {refusal.wait:g} seconds, longer than we do)"
        kind = "content_filter" if refusal.code == "content_filter" else "model_error"
        return ModelError(told, kind=kind, requests=requests)


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
