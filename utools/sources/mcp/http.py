"""How an MCP server is spoken to over HTTP, and what becomes of each question."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from utools.sources.mcp.connection_monitor import ConnectionMonitor, Watched, WatchedWrites, quiet
from utools.sources.mcp.limits import CROWDED, EACH_SECOND, KIB, LONGEST, TOO_LONG, NestingCounter

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
LISTENS_SECONDS = 1.0
SESSION = "mcp-session-id"
EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


@dataclass
class Sent:
    """What became of one question on its way over HTTP.

    `posts` that were made of it; `unsent`: no connection was to be had for the first of them; `status` of the last
    answer; `unknown`: the first was answered as one is whose session the server does not know.
    """

    posts: int = 0
    unsent: bool = False
    status: int = 0
    unknown: bool = False


SENT: ContextVar[Sent | None] = ContextVar("utools_mcp_sent", default=None)
"""Of the question that is being asked; the library carries the context of who asks to where it is sent."""


@contextmanager
def recorded() -> Iterator[Sent]:
    """What becomes of what is asked in this block."""
    sent = Sent()
    token = SENT.set(sent)
    try:
        yield sent
    finally:
        SENT.reset(token)


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], watch: ConnectionMonitor) -> AsyncIterator[Any]:
    """Speak to a server that runs. Neither a proxy nor a cookie of the environment is used, and nothing is packed."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    quiet()
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # each call is bounded as a whole
    transport = _watched_transport(httpx2.AsyncHTTPTransport(trust_env=False), watch)
    sent = {**headers, "accept-encoding": "identity"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=sent, timeout=timeout, trust_env=False) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST) as (reads, writes),
    ):
        yield Watched(reads, watch), WatchedWrites(writes, watch)


def _watched_transport(inner: "httpx2.AsyncBaseTransport", watch: ConnectionMonitor) -> "httpx2.AsyncBaseTransport":
    """A transport that notices when the server cannot be reached, where the library would go on trying, or refuses."""
    import httpx2

    class WatchedStream(httpx2.AsyncByteStream):
        """A body. Where it breaks off, the server may be gone, and the library would ask for the rest only later."""

        def __init__(self, body: Any, response: httpx2.Response, url: httpx2.URL) -> None:
            self._body, self._url = body, url
            self._taken, self._crowd = 0, NestingCounter()
            self._packed = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
            self._events = response.headers.get("content-type", "").lower().startswith("text/event-stream")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if self._packed != "identity":
                raise self._fault(f"it is packed ({self._packed[:20]}), which was not asked for")
            try:
                async for part in self._body:
                    self._count(part)
                    yield part
                    if self._taken > LONGEST:
                        await asyncio.sleep(len(part) / KIB / EACH_SECOND)
            except httpx2.TransportError:
                if await _refuses(self._url.host, self._url.port or (443 if self._url.scheme == "https" else 80)):
                    watch.end()
                raise

        async def aclose(self) -> None:
            await self._body.aclose()

        def _count(self, part: bytes) -> None:
            """One message is bounded as a whole; a stream of events may go on, and is read slowly in the end."""
            self._taken += len(part)
            *ended, last = EVENT_END.split(part) if self._events else [part]
            self._crowd = NestingCounter() if ended else self._crowd
            if not self._crowd.grows(last):
                raise self._fault(CROWDED)
            if self._taken > LONGEST and not self._events:
                raise self._fault(TOO_LONG)
            if watch.why:
                raise self._fault(watch.why)

        def _fault(self, told: str) -> Exception:
            """What the library takes for the end of this answer alone."""
            return httpx2.SSEError(told) if self._events else httpx2.StreamError(told)

    class WatchedTransport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            sent = (SENT.get() if request.method == "POST" else None) or Sent()
            first, sent.posts = sent.posts == 0, sent.posts + 1
            try:
                response = await inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                sent.unsent = first
                watch.end()
                raise
            sent.status = response.status_code
            sent.unknown = first and sent.status in (400, 404) and SESSION in request.headers
            response.stream = WatchedStream(response.stream, response, request.url)
            return response

        async def aclose(self) -> None:
            await inner.aclose()

    return WatchedTransport()


async def _refuses(host: str, port: int) -> bool:
    """Whether nobody listens there any more."""
    try:
        async with asyncio.timeout(LISTENS_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:  # TimeoutError among them, which tells nothing
        return isinstance(error, ConnectionRefusedError)
    writer.close()
    return False
