"""The HTTP transport of an MCP server, and what becomes of each request that goes over it."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.failure import HttpExchange
from utools.sources.mcp.limits import CROWDED, LONGEST, TOO_LONG, is_crowded
from utools.sources.mcp.streams import MonitoredReads, MonitoredWrites, mute_library_logs

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
PROBE_SECONDS = 1.0
SESSION = "mcp-session-id"
EVENT_END = re.compile(rb"(?:(?>\r\n|\n|\r)){2}")

EXCHANGE: ContextVar[HttpExchange | None] = ContextVar("utools_mcp_exchange", default=None)
"""Of the request that is being made; the library carries the caller's context to where it is sent."""


@contextmanager
def record_exchange() -> Iterator[HttpExchange]:
    """Record what becomes of the request that is made in this block."""
    exchange = HttpExchange()
    token = EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        EXCHANGE.reset(token)


@asynccontextmanager
async def open_http(url: str, headers: Mapping[str, str], monitor: ConnectionMonitor) -> AsyncIterator[Any]:
    """Connect to a server that runs. No proxy and no cookie of the environment is used, and nothing is compressed."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    mute_library_logs()
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # each call is bounded as a whole
    transport = _monitored_transport(httpx2.AsyncHTTPTransport(trust_env=False), monitor)
    plain = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=plain, timeout=timeout, trust_env=False) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST) as (reads, writes),
    ):
        yield MonitoredReads(reads, monitor), MonitoredWrites(writes, monitor)


def _monitored_transport(inner: "httpx2.AsyncBaseTransport", monitor: ConnectionMonitor) -> "httpx2.AsyncBaseTransport":
    """A transport that notices when the server cannot be reached, where the library would go on trying."""
    import httpx2

    class MonitoredBody(httpx2.AsyncByteStream):
        """A body, handed on in whole messages, each within its bounds."""

        def __init__(self, body: Any, response: httpx2.Response, url: httpx2.URL) -> None:
            self._body, self._url = body, url
            self._encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
            self._is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if self._encoding != "identity":
                raise self._fault(f"it is packed ({self._encoding[:20]}), which was not asked for")
            try:
                async for messages in self._whole_messages():
                    if is_crowded(messages):
                        raise self._fault(CROWDED)
                    yield messages
            except httpx2.TransportError:
                # the server may be gone, and the library would ask for the rest only later
                if await _refuses(self._url.host, self._url.port or (443 if self._url.scheme == "https" else 80)):
                    monitor.end()
                raise

        async def aclose(self) -> None:
            await self._body.aclose()

        async def _whole_messages(self) -> AsyncIterator[bytes]:
            """The body as one message, or a stream of events cut after whole ones."""
            pending = bytearray()
            async for part in self._body:
                searched = max(0, len(pending) - 3)
                pending += part
                if self._is_events and (ends := [found.end() for found in EVENT_END.finditer(pending, searched)]):
                    yield bytes(pending[: ends[-1]])
                    del pending[: ends[-1]]
                if len(pending) > LONGEST:
                    raise self._fault(TOO_LONG)
                if monitor.reason:
                    raise self._fault(monitor.reason)
            if pending:
                yield bytes(pending)

        def _fault(self, text: str) -> Exception:
            """What the library takes for the end of this answer alone."""
            return httpx2.SSEError(text) if self._is_events else httpx2.StreamError(text)

    class MonitoredTransport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            exchange = (EXCHANGE.get() if request.method == "POST" else None) or HttpExchange()
            is_first, exchange.posts = exchange.posts == 0, exchange.posts + 1
            try:
                response = await inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                exchange.unsent = is_first
                monitor.end()
                raise
            exchange.status = response.status_code
            exchange.unknown_session = is_first and exchange.status in (400, 404) and SESSION in request.headers
            response.stream = MonitoredBody(response.stream, response, request.url)
            return response

        async def aclose(self) -> None:
            await inner.aclose()

    return MonitoredTransport()


async def _refuses(host: str, port: int) -> bool:
    """Whether nobody listens there any more."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:  # TimeoutError among them, which says nothing
        return isinstance(error, ConnectionRefusedError)
    writer.close()
    return False
