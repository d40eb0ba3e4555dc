"""Connections to one endpoint, by aiohttp where it is installed (the extra `fast`), else by httpx2."""

import asyncio
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any, Literal
from weakref import ref

import httpx2
import openai

from agent_core.errors import DefinitionError
from agent_core.models.endpoint.route import Route

Transport = Literal["aiohttp", "httpx2"]
KEEPALIVE_SECONDS = 30.0
LIBRARYS_TIMES = httpx2.Timeout(5.0)
"""The times of a client that was given none: a model may take longer to say its first word."""
MAX_CLIENTS = 256


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
            find_owner(self._route.client).check()
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
        if self._route.client is not None and client.timeout == LIBRARYS_TIMES:
            request.extensions["timeout"] = httpx2.Timeout(None, connect=self._route.connect_timeout).as_dict()
        if self._proxy is None or self._transport == "aiohttp" or self._route.client is not None:
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

    def _open_proxy(self, url: str, tls: ssl.SSLContext) -> httpx2.Proxy:
        """One by https is judged by the same certificates as the endpoint. aiohttp takes the name and password in a
        header, the other way is deprecated there."""
        proxy = httpx2.Proxy(url, ssl_context=tls if url.lower().startswith("https:") else None)
        if self._transport == "aiohttp" and proxy.auth is not None:
            login = b64encode(":".join(proxy.auth).encode()).decode()
            return httpx2.Proxy(proxy.url, ssl_context=proxy.ssl_context, headers={"Authorization": f"Basic {login}"})
        return proxy

    def _client(self) -> httpx2.AsyncClient:
        aiohttp, route = self._transport == "aiohttp", self._route
        self._tls = self._tls or route.open_tls()
        whole = route.connect_timeout if aiohttp else None  # aiohttp's time for a connection, with a proxy's part
        times = httpx2.Timeout(connect=route.connect_timeout, read=route.read_timeout, write=None, pool=whole)
        return (openai.DefaultAioHttpClient if aiohttp else httpx2.AsyncClient)(
            verify=self._tls,
            proxy=None if self._proxy is None else self._open_proxy(self._proxy, self._tls),
            timeout=times,
            limits=httpx2.Limits(max_connections=0 if aiohttp else 1, keepalive_expiry=KEEPALIVE_SECONDS),
            follow_redirects=False,
            trust_env=False,
        )


class Owner:
    """The event loop of an HTTP client of a program's own: the first that asks by it."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client, self._loop = client, ref(asyncio.get_running_loop())

    def check(self) -> None:
        """DefinitionError where the client cannot be used here."""
        if self._client.is_closed:
            raise DefinitionError("is closed", where="http_client")
        if self._loop() is not asyncio.get_running_loop():
            raise DefinitionError("is of another event loop; give each loop a client of its own", where="http_client")


@lru_cache(maxsize=MAX_CLIENTS)
def find_owner(client: httpx2.AsyncClient) -> Owner:
    """Return the process's one owner of a client."""
    return Owner(client)


@lru_cache(maxsize=1)
def best_transport() -> Transport:
    """Return the fastest transport that is installed."""
    return "aiohttp" if find_spec("aiohttp") else "httpx2"
