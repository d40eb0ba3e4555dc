"""Requests by httpx2: by a client of a program's own, and through SOCKS, which aiohttp does not speak."""

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any
from weakref import ref

import httpx2

from agent_core.errors import DefinitionError
from agent_core.models.endpoint.connections import KEEPALIVE_SECONDS, SLICE_BYTES, Response, slice_body
from agent_core.models.endpoint.route import Route

LIBRARYS_TIMES = httpx2.Timeout(5.0)
"""The times of a client that was given none: a model may take longer to say its first word."""
MAX_CLIENTS = 256


class OwnClient:
    """The client of a program's own, which has its proxy, certificates and times itself, and is not closed."""

    def __init__(self, client: httpx2.AsyncClient, route: Route) -> None:
        self._client, self._route = client, route

    async def send(self, body: bytes, url: str, headers: Mapping[str, str]) -> Response:
        client = self._client
        find_owner(client).check()
        to = httpx2.URL(url).copy_merge_params(client.params)
        request = _build_request(body, to, {**client.headers, **headers})
        if client.timeout == LIBRARYS_TIMES:
            request.extensions["timeout"] = httpx2.Timeout(None, connect=self._route.connect_timeout).as_dict()
        response = await client.send(request, stream=True, follow_redirects=False)
        return Response(response.status_code, response.headers, response.aiter_raw(), response.aclose)

    async def close(self) -> None:
        return


class Httpx2Connections:
    """Clients with one connection each: httpx2 searches all connections of a pool at each request."""

    def __init__(self, route: Route, proxy: str | None) -> None:
        self._route, self._proxy = route, proxy
        self._tls: ssl.SSLContext | None = None
        self._idle: deque[tuple[float, httpx2.AsyncClient]] = deque()
        self._closed = False

    async def send(self, body: bytes, url: str, headers: Mapping[str, str]) -> Response:
        request = _build_request(body, httpx2.URL(url), headers)
        client = self._idle.pop()[1] if self._idle else self._open()
        try:
            response = await self._connect(client, request)
        except BaseException:
            await self._release(client)
            raise

        async def close() -> None:
            try:
                await response.aclose()
            finally:
                await self._release(client)

        return Response(response.status_code, response.headers, response.aiter_raw(), close)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop()[1].aclose()

    async def _connect(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Send a request. TimeoutError of httpx2's where no connection comes in time: it bounds each step of one, but
        not what a proxy says before."""
        sending = partial(client.send, request, stream=True, follow_redirects=False)
        if self._proxy is None:
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

    async def _release(self, client: httpx2.AsyncClient) -> None:
        if self._closed:
            await client.aclose()
            return
        now = asyncio.get_running_loop().time()
        self._idle.append((now, client))
        while self._idle[0][0] < now - KEEPALIVE_SECONDS:
            await self._idle.popleft()[1].aclose()

    def _open(self) -> httpx2.AsyncClient:
        self._tls = self._tls or self._route.open_tls()
        return httpx2.AsyncClient(
            verify=self._tls,
            proxy=None if self._proxy is None else self._open_proxy(self._proxy, self._tls),
            timeout=httpx2.Timeout(None, connect=self._route.connect_timeout, read=self._route.read_timeout),
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=KEEPALIVE_SECONDS),
            follow_redirects=False,
            trust_env=False,
        )

    @staticmethod
    def _open_proxy(url: str, tls: ssl.SSLContext) -> httpx2.Proxy:
        """One by https is judged by the same certificates as the endpoint."""
        return httpx2.Proxy(url, ssl_context=tls if url.lower().startswith("https:") else None)


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


def _build_request(body: bytes, url: httpx2.URL, headers: Mapping[str, str]) -> httpx2.Request:
    if len(body) <= SLICE_BYTES:
        return httpx2.Request("POST", url, headers=dict(headers), content=body)
    sliced = {**headers, "content-length": str(len(body))}
    return httpx2.Request("POST", url, headers=sliced, content=slice_body(body))
