"""The HTTP transport of an MCP server, which needs the extra `mcp`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from utools.lazy_pattern import lazy_compile
from utools.net.decompress import find_encodings
from utools.net.trace_headers import TRACE_HEADERS
from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.http_exchange import EXCHANGE, HttpExchange
from utools.sources.mcp.limits import CROWDED, LONGEST, TOO_LONG, is_crowded
from utools.sources.mcp.odd_lines import mend_surrogates
from utools.sources.mcp.streams import MonitoredReads, MonitoredWrites, mute_library_logs

CONNECT_SECONDS = 10.0
PROBE_SECONDS = 1.0
SESSION = "mcp-session-id"
EVENT_END = lazy_compile(rb"(?:(?>\r\n|\n|\r)){2}")


@asynccontextmanager
async def open_http(url: str, headers: Mapping[str, str], monitor: ConnectionMonitor) -> AsyncIterator[Any]:
    """Connect to a server that runs. No proxy and no cookie of the environment is used, and nothing is compressed."""
    mute_library_logs()
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # each call is bounded as a whole
    transport = _MonitoredTransport(httpx2.AsyncHTTPTransport(trust_env=False), monitor)
    plain = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=plain, timeout=timeout, trust_env=False) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST) as (reads, writes),
    ):
        yield MonitoredReads(reads, monitor), MonitoredWrites(writes, monitor)


class _MonitoredTransport(httpx2.AsyncBaseTransport):
    """Notices when the server cannot be reached, where the library would continue trying."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, monitor: ConnectionMonitor) -> None:
        self._inner, self._monitor = inner, monitor

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = (EXCHANGE.get() if request.method == "POST" else None) or HttpExchange()
        is_first, exchange.posts = exchange.posts == 0, exchange.posts + 1
        if request.method == "POST":  # a stream that stays open belongs to no call
            request.headers.update(TRACE_HEADERS.get())
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            exchange.unsent = is_first
            self._monitor.end()
            raise
        exchange.status = response.status_code
        exchange.unknown_session = is_first and exchange.status in (400, 404) and SESSION in request.headers
        response.stream = _MonitoredBody(response, request.url, self._monitor)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _MonitoredBody(httpx2.AsyncByteStream):
    """A body, handed on in whole messages, each within its bounds."""

    def __init__(self, response: httpx2.Response, url: httpx2.URL, monitor: ConnectionMonitor) -> None:
        self._body: Any = response.stream
        self._url, self._monitor = url, monitor
        self._encodings = find_encodings(response.headers.get("content-encoding", ""))
        self._is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encodings:
            raise self._fault(f"it is packed ({self._encodings[0]}), which was not asked for")
        try:
            async for messages in self._read_messages():
                if is_crowded(messages):
                    raise self._fault(CROWDED)
                yield mend_surrogates(messages)
        except httpx2.TransportError:
            if await _refuses(self._url):  # the library would ask for the rest only later
                self._monitor.end()
            raise

    async def aclose(self) -> None:
        await self._body.aclose()

    async def _read_messages(self) -> AsyncIterator[bytes]:
        """Yield the body as one message, or a stream of events cut after whole ones."""
        pending = bytearray()
        async for part in self._body:
            searched = max(0, len(pending) - 3)
            pending += part
            if self._is_events and (ends := [found.end() for found in EVENT_END.finditer(pending, searched)]):
                yield bytes(pending[: ends[-1]])
                del pending[: ends[-1]]
            if len(pending) > LONGEST:
                raise self._fault(TOO_LONG)
            if self._monitor.reason:
                raise self._fault(self._monitor.reason)
        if pending:
            yield bytes(pending)

    def _fault(self, text: str) -> Exception:
        """Return what the library takes for the end of this answer alone."""
        return httpx2.SSEError(text) if self._is_events else httpx2.StreamError(text)


async def _refuses(url: httpx2.URL) -> bool:
    """Return whether the address no longer accepts connections."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(url.host, url.port or (443 if url.scheme == "https" else 80))
    except OSError as error:  # TimeoutError among them, which says nothing
        return isinstance(error, ConnectionRefusedError)
    writer.close()
    return False
