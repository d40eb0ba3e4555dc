"""The transport to an endpoint: our bytes, and the answer in bytes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from agent_core.errors import DefinitionError
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.body import BodyReader
from agent_core.models.endpoint.connections import Connections, Transport
from agent_core.models.endpoint.places import find_places
from agent_core.models.endpoint.request_head import RequestHead
from agent_core.models.endpoint.route import DIRECT, NO_PROXY, Route
from agent_core.models.endpoint.unreached import LOGIN_WANTED, explain_unreached, is_of_library, refuse_login
from utools.error_text import describe
from utools.net.proxies import Proxy, explain_unusable, find_proxy
from utools.net.trace_headers import TRACE_HEADERS

LOOPBACK = ("127.0.0.1", "localhost", "::1")
Part = HttpAnswer | bytes | Refusal


class ReadHead(Protocol):
    async def __call__(self, *, streams: bool) -> RequestHead: ...


class EndpointTransport:
    """The connections to one endpoint, in one event loop.

    `read_head` gives the head of the requests for a reply in a stream, and of those for a whole one. `route` is the way
    to the endpoint, and what each request has besides.
    """

    def __init__(
        self, base_url: str, read_head: ReadHead, transport: Transport | None = None, route: Route = DIRECT
    ) -> None:
        parts = urlsplit(base_url)
        self._read_head, self._route = read_head, route
        self._proxy = _choose_proxy(base_url, parts.hostname or "", route)
        self._connections = _open_connections(transport, route, self._proxy)
        self._free = find_places(parts.netloc, route).of_loop() if route.max_connections else None
        self._heads: dict[bool, tuple[str, Mapping[str, str]]] = {}
        self._head_lock = asyncio.Lock()
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
            url, headers = self._heads.get(streams) or await self._find_head(streams=streams)
            if self._free is not None:
                await self._free.acquire()
                holds_place = True
            if trace := TRACE_HEADERS.get():
                headers = {**headers, **trace}
            response = await self._connections.send(body, url, headers)
            try:
                if response.status == LOGIN_WANTED and self._proxy is not None:
                    yield refuse_login(self._proxy)
                    return
                yield HttpAnswer(response.status, response.headers, b"")
                body_reader = BodyReader(response.headers)
                async for piece in response.pieces:
                    if part := body_reader.take(piece):
                        yield part
                    if isinstance(part, Refusal):
                        return
                if cut := body_reader.end():
                    yield cut
            finally:
                await response.close()
        except DefinitionError as error:
            yield Refusal(f"could not be asked: {error}")
        except Exception as error:  # a library's, or one that it did not foresee: it must not end a run either
            known = isinstance(error, ssl.SSLError | OSError) or is_of_library(error)
            unknown = Refusal(f"could not be asked: {describe(error)}")
            yield explain_unreached(error, self._route, self._proxy) if known else unknown
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

    async def _until_closed(self) -> AsyncGenerator[None]:
        """Closes the connections when the event loop ends: a loop closes the generators that it has started."""
        try:
            yield
        finally:
            await self._connections.close()

    async def _find_head(self, *, streams: bool) -> tuple[str, Mapping[str, str]]:
        """Return the URL and the headers of each request, found once: an SDK may have to be asked."""
        async with self._head_lock:
            if streams not in self._heads:
                head = (await self._read_head(streams=streams)).with_route(self._route)
                self._heads[streams] = head.url, dict(head.headers)
        return self._heads[streams]


def _choose_proxy(url: str, host: str, route: Route) -> Proxy | None:
    """Return the proxy of the route, else that of the environment, which is not for this machine."""
    if route.proxy is not None:
        return None if route.proxy == NO_PROXY else Proxy("proxy", route.proxy)
    return None if host in LOOPBACK or route.client is not None else find_proxy(url)


def _open_connections(transport: Transport | None, route: Route, proxy: Proxy | None) -> Connections:
    by_socks = proxy is not None and proxy.is_socks  # aiohttp passes it over, and connects directly
    if route.client is None and transport != "httpx2" and not by_socks:
        from agent_core.models.endpoint.by_aiohttp import AiohttpConnections

        return AiohttpConnections(route, None if proxy is None else proxy.url)
    from agent_core.models.endpoint.by_httpx2 import Httpx2Connections, OwnClient

    if route.client is not None:
        return OwnClient(route.client, route)
    return Httpx2Connections(route, None if proxy is None else proxy.url)
