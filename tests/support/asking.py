"""A question put to an endpoint on loopback, and what came of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_core.models import Completion, ModelError, Question
from agent_core.models.endpoint.connections import Transport
from agent_core.models.endpoint.route import DIRECT, Route
from agent_core.models.openai.client import OpenAICompatible
from support.loopback import Loopback, Reply, serving

transport: Transport | None = None
"""With which the endpoints are asked; see the fixture `each_transport`."""
KEY = "sk-secret-0123456789"
MESSAGES = (b'{"role":"system","content":"Sei kurz."}', '{"role":"user","content":"Grüß dich"}'.encode())
SCHEMA = {"type": "object"}


def question(**options: Any) -> Question:
    return Question("openai:m1", MESSAGES, options, "agent", 0)


def client(base_url: str, api_key: str | None = KEY, route: Route = DIRECT) -> OpenAICompatible:
    about = {"base_url": base_url, "api_key": api_key, "route": route}
    return OpenAICompatible("m1", **about, backoff=0.001, transport=transport)


@asynccontextmanager
async def endpoint(*replies: Reply, api_key: str | None = KEY) -> AsyncIterator[tuple[OpenAICompatible, Loopback]]:
    async with serving(*replies) as server:
        model = client(server.url, api_key)
        try:
            yield model, server
        finally:
            await model.close()


async def answered(reply: Reply, **options: Any) -> Completion:
    async with endpoint(reply) as (model, _):
        return await model.complete(question(**options))


async def failed(*replies: Reply, **options: Any) -> ModelError:
    async with endpoint(*replies) as (model, _):
        with pytest.raises(ModelError) as caught:
            await model.complete(question(**options))
    return caught.value
