"""The transport to an endpoint: what the vendor's SDK would send, with our bytes, and the answer in bytes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Protocol

import anyio
import httpx2
import openai

from agent_core.errors import DefinitionError
from agent_core.models.endpoint.address import take_key
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.connections import Connections, Transport
from agent_core.models.endpoint.places import find_places
from agent_core.models.endpoint.route import DIRECT, NO_PROXY, Route
from agent_core.models.endpoint.unreached import LOGIN_WANTED, explain_unreached, is_aiohttp_error, refuse_login
from utools.error_text import describe
from utools.net.proxies import Proxy, explain_unusable, find_proxy
from utools.net.trace_headers import TRACE_HEADERS

MAX_REPLY_BYTES = 16 * 2**20
"""Decompressed bytes of a reply that are read."""
SLICE_BYTES = 2**18
"""Bytes that are written at once: a write blocks the event loop, and aiohttp warns of a whole MiB."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OF_BODY = ("content-length", "transfer-encoding", "content-encoding")
"""Headers about the body of the request that was caught."""
Part = HttpAnswer | bytes | Refusal


class SendEmpty(Protocol):
    def __call__(self, http: httpx2.AsyncClient, /, *, streams: bool) -> Awaitable[None]: ...


class EndpointTransport:
    """The connections to one endpoint, in one event loop.

    `send_empty` lets the vendor's SDK send a request by an HTTP client, for a reply in a stream or for a whole one.
    `route` is the way to the endpoint, and what each request has besides.
    """

    def __init__(
        self, base_url: str, send_empty: SendEmpty, transport: Transport | None = None, route: Route = DIRECT
    ) -> None:
        self._url, self._send_empty, self._route = _parse_url(base_url), send_empty, route
        self._proxy = _choose_proxy(self._url, route)
        by_socks = self._proxy is not None and self._proxy.is_socks  # aiohttp passes it over, and connects directly
        proxy = None if self._proxy is None else self._proxy.url
        self._connections = Connections("httpx2" if by_socks else transport, route, proxy)
        self._free = find_places(self._url.netloc, route).of_loop() if route.max_connections else None
        self._sdk_requests: dict[bool, httpx2.Request] = {}
        self._sdk_lock = asyncio.Lock()
        self._open: AsyncGenerator[None] | None = None
        self._under_way, self._closing = 0, False

    async def ask(self, body: bytes, *, streams: bool = False) -> AsyncGenerator[Part]:
        """Send one request. Yields the answer, whatever its status: first the head, then the body in pieces.

        A Refusal comes last, when there is no answer or no whole one. Only cancellation is raised; closing the iterator
        releases the connection.
        """
        self._under_way += 1
        holds_place = False
        try:
            if self._proxy is not None and (unusable := explain_unusable(self._proxy)):
                yield Refusal(f"could not be asked: {unusable}")
                return
            if self._open is None:
                self._open = self._until_closed()
                await anext(self._open)
            request = await self.request(body, streams=streams)
            if self._free is not None:
                await self._free.acquire()
                holds_place = True
            http = self._connections.acquire()
            try:
                response = await self._connections.send(http, request)
                try:
                    if response.status_code == LOGIN_WANTED and self._proxy is not None:
                        yield refuse_login(self._proxy)
                        return
                    yield HttpAnswer(response.status_code, response.headers, b"")
                    size = 0
                    async for piece in response.aiter_bytes():
                        size += len(piece)
                        if size > MAX_REPLY_BYTES:
                            yield Refusal(f"sent more than {MAX_REPLY_BYTES >> 20} MiB; the rest was not read")
                            return
                        yield piece
                finally:
                    await response.aclose()
            finally:
                await self._connections.release(http)
        except DefinitionError as error:
            yield Refusal(f"could not be asked: {error}")
        except (openai.OpenAIError, httpx2.HTTPError, ssl.SSLError, anyio.EndOfStream, OSError) as error:
            yield explain_unreached(error, self._route, self._proxy)
        except Exception as error:  # some faults leave a transport unwrapped; they must not end a run either
            unknown = Refusal(f"could not be asked: {describe(error)}")
            yield explain_unreached(error, self._route, self._proxy) if is_aiohttp_error(error) else unknown
        finally:
            if holds_place and self._free is not None:
                self._free.release()
            self._under_way -= 1
            if self._closing:
                await self.close()

    async def close(self) -> None:
        """Close the connections, once what is under way was answered: others may be asking too."""
        self._closing = True
        if self._open is not None and not self._under_way:
            await self._open.aclose()

    async def warm_up(self) -> None:
        """Build the request and a client, as for a first question, and close it: nothing is sent."""
        await self.request(b"{}")
        await self._connections.release(self._connections.acquire())
        await self._connections.close()

    async def _until_closed(self) -> AsyncGenerator[None]:
        """Closes the connections when the event loop ends: a loop closes the generators that it has started."""
        try:
            yield
        finally:
            await self._connections.close()

    async def request(self, body: bytes, *, streams: bool = False) -> httpx2.Request:
        """Return the request that the SDK would send, with this body. The SDK is asked once: its own walk is slow."""
        if streams not in self._sdk_requests:
            async with self._sdk_lock:
                if streams not in self._sdk_requests:
                    caught = await _catch_request(partial(self._send_empty, streams=streams))
                    _add_route(caught, self._route)
                    self._sdk_requests[streams] = caught
        sent, trace = self._sdk_requests[streams], TRACE_HEADERS.get()
        headers = sent.headers
        if trace:
            headers = httpx2.Headers([*sent.headers.raw, *((name.encode(), trace[name].encode()) for name in trace)])
        if len(body) <= SLICE_BYTES:
            return httpx2.Request(sent.method, sent.url, headers=headers, content=body)
        headers = httpx2.Headers([*headers.raw, (b"content-length", b"%d" % len(body))])
        return httpx2.Request(sent.method, sent.url, headers=headers, content=_slice_body(body))


async def _catch_request(send: Callable[[httpx2.AsyncClient], Awaitable[None]]) -> httpx2.Request:
    """Return the request that an SDK sends, caught before it leaves: its URL, key and headers."""
    caught: list[httpx2.Request] = []

    def catch(request: httpx2.Request) -> httpx2.Response:
        caught.append(request)
        return httpx2.Response(200, json={})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(catch), timeout=None, trust_env=False) as http:
        await send(http)
    request = caught[0]
    for name in OF_BODY:
        request.headers.pop(name, None)
    return request


async def _slice_body(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SLICE_BYTES):
        yield body[start : start + SLICE_BYTES]


def _choose_proxy(url: httpx2.URL, route: Route) -> Proxy | None:
    """Return the proxy of the route, else that of the environment, which is not for this machine."""
    if route.proxy is not None:
        return None if route.proxy == NO_PROXY else Proxy("proxy", route.proxy)
    return None if url.host in LOOPBACK or route.client is not None else find_proxy(str(url))


def _add_route(request: httpx2.Request, route: Route) -> None:
    """Give the request of the SDK the headers and the query of a route, and the key in the header that it names."""
    if route.client is not None:
        request.headers = httpx2.Headers({**route.client.headers, **request.headers})
        request.url = request.url.copy_merge_params(route.client.params)
    if route.key_header and (key := take_key(request.headers)):
        request.headers[route.key_header] = key
    for name, value in (*route.headers, *route.secret_headers):
        request.headers[name] = value
    if route.query:
        request.url = request.url.copy_merge_params(dict(route.query))


def _parse_url(base_url: str) -> httpx2.URL:
    try:
        return httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise DefinitionError(f"not a URL: {error}", where="base_url", value=base_url) from None
