"""Requests by aiohttp: the least that a request costs in this language, by far."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler

from agent_core.models.endpoint.connections import KEEPALIVE_SECONDS, SLICE_BYTES, Response, slice_body
from agent_core.models.endpoint.route import Route

LAST_WORDS_SECONDS = 1.0
"""How long a connection that is closing may take to say why."""


class AiohttpConnections:
    """Connections of one session, which all requests of an event loop share."""

    def __init__(self, route: Route, proxy: str | None) -> None:
        self._route, self._proxy = route, proxy
        self._by_proxy: dict[str, Any] = {}
        self._session: aiohttp.ClientSession | None = None

    async def send(self, body: bytes, url: str, headers: Mapping[str, str]) -> Response:
        data: Any = body
        if len(body) > SLICE_BYTES:
            data, headers = slice_body(body), {**headers, "content-length": str(len(body))}
        session = self._session or self._open()
        response = await session.post(url, data=data, headers=headers, allow_redirects=False, **self._by_proxy)

        async def close() -> None:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

        return Response(response.status, response.headers, response.content.iter_any(), close)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        route, connect = self._route, self._route.connect_timeout
        self._by_proxy = {} if self._proxy is None else _read_proxy(self._proxy)
        self._session = aiohttp.ClientSession(
            connector=_Connector(ssl=route.open_tls(), limit=0, keepalive_timeout=KEEPALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(connect=connect, sock_connect=connect, sock_read=route.read_timeout),
            auto_decompress=False,
        )
        return self._session


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        make: type[ResponseHandler] = _Connection
        self._factory = partial(make, asyncio.get_running_loop())


class _Connection(ResponseHandler):
    """A connection that tells why it was closed, rather than that nothing can be written to it any more.

    uvloop closes the one first and says the other a moment later: that a server by TLS wants a certificate.
    """

    def set_exception(self, exc: BaseException, *cause: Any, **named: Any) -> None:
        if isinstance(exc.__cause__, aiohttp.ClientConnectionResetError) and self.connected:
            self.force_close()
            self._loop.call_later(LAST_WORDS_SECONDS, self._fail, exc)
        else:
            super().set_exception(exc, *cause, **named)

    def _fail(self, exc: BaseException) -> None:
        if self.connected:
            super().set_exception(exc)


def _read_proxy(url: str) -> dict[str, Any]:
    """Return how a request names its proxy: the login goes in a header, aiohttp's other way is deprecated."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    about: dict[str, Any] = {"proxy": f"{parts.scheme}://{host}"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        about["proxy_headers"] = {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}
    return about
