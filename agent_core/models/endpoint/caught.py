"""What a vendor's SDK would send, caught before it leaves. It is asked once: its walk through a request is slow."""

from collections.abc import Awaitable, Callable

import httpx2

from agent_core.models.endpoint.request_head import RequestHead


async def catch_head(send: Callable[[httpx2.AsyncClient], Awaitable[None]]) -> RequestHead:
    """Let an SDK send a request by an HTTP client that sends nothing; return its URL, its key and its headers."""
    caught: list[httpx2.Request] = []

    def catch(request: httpx2.Request) -> httpx2.Response:
        caught.append(request)
        return httpx2.Response(200, json={})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(catch), timeout=None, trust_env=False) as http:
        await send(http)
    return RequestHead(str(caught[0].url), tuple(caught[0].headers.items()))
