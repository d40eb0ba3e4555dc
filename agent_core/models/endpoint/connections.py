"""Connections to one endpoint, by aiohttp where it is installed (the extra `fast`), else by httpx2."""

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any, Literal

import httpx2
import openai

from agent_core.models.endpoint.route import Route

Transport = Literal["aiohttp", "httpx2"]
KEEPALIVE_SECONDS = 30.0


class Connections:
    """The connections of one event loop: as many as there are requests at once, reused by later ones."""

    def __init__(self, transport: Transport | None, route: Route, proxy: str | None) -> None:
        self._transport, self._route, self._proxy = transport or best_transport(), route, proxy
        self._tls: ssl.SSLContext | None = None
        self._idle: deque[tuple[float, httpx2.AsyncClient]] = deque()
        self._closed = False

    def acquire(self) -> httpx2.AsyncClient:
        """Return a client with a free connection, to be released.

        All requests share one aiohttp client. httpx2 searches all connections of a pool at each request, so each of
        its clients has one connection and one user at a time.
        """
        if self._route.client is not None:
            return self._route.client
        if self._transport == "aiohttp":
            if not self._idle:
                self._idle.append((0.0, self._client()))
            return self._idle[0][1]
        return self._idle.pop()[1] if self._idle else self._client()

    async def send(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return the answer, its body unread. TimeoutError of httpx2's where no connection comes in
        time: httpx2 bounds each step of one, but not what a proxy says before."""
        sending = partial(client.send, request, stream=True, follow_redirects=False)
        if self._transport == "aiohttp" or self._route.client is not None:
            return await sending()
        try:
            async with asyncio.timeout(self._route.connect_timeout) as limit:

                async def note(step: str, about: Mapping[str, Any]) -> None:
                    if step == "http11.send_request_headers.started" and about["request"].method != b"CONNECT":
                        limit.reschedule(None)

                request.extensions["trace"] = note
                return await sending()
        except TimeoutError:
            raise httpx2.ConnectTimeout("") from None

    async def release(self, client: httpx2.AsyncClient) -> None:
        if self._transport == "aiohttp" or self._route.client is not None:
            return
        if self._closed:
            await client.aclose()
            return
        now = asyncio.get_running_loop().time()
        self._idle.append((now, client))
        while self._idle[0][0] < now - KEEPALIVE_SECONDS:
            await self._idle.popleft()[1].aclose()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop()[1].aclose()

    def _client(self) -> httpx2.AsyncClient:
        aiohttp, route = self._transport == "aiohttp", self._route
        self._tls = self._tls or route.open_tls()
        whole = route.connect_timeout if aiohttp else None  # aiohttp's time for a connection, with a proxy's part
        times = httpx2.Timeout(connect=route.connect_timeout, read=route.read_timeout, write=None, pool=whole)
        return (openai.DefaultAioHttpClient if aiohttp else httpx2.AsyncClient)(
            verify=self._tls,
            proxy=None if self._proxy is None else route.open_proxy(self._proxy),
            timeout=times,
            limits=httpx2.Limits(max_connections=0 if aiohttp else 1, keepalive_expiry=KEEPALIVE_SECONDS),
            follow_redirects=False,
            trust_env=False,
        )


@lru_cache(maxsize=1)
def best_transport() -> Transport:
    """Return the fastest transport that is installed."""
    return "aiohttp" if find_spec("aiohttp") else "httpx2"
