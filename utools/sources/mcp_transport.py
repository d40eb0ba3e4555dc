"""How an MCP server is spoken to over HTTP, and what becomes of each question; and a watch that sees its end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

KEPT = 4096
"""Bytes of what a server last wrote to its standard error."""
LAST_WORDS = 300
LONGEST = 2**25
"""Bytes of one message."""
CONNECT_SECONDS = 10.0
LISTENS_SECONDS = 1.0
SESSION = "mcp-session-id"


class Watch:
    """What becomes of a connection. `ended`: no answer can come any more."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._errors = bytearray()

    def end(self) -> None:
        self.ended.set()

    def heard(self, data: bytes) -> None:
        """The server wrote this to its standard error."""
        self._errors = (self._errors + data)[-KEPT:]

    def last_words(self) -> str:
        """The last line that it wrote there, to follow a sentence."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        return f"; its last words: {lines[-1][:LAST_WORDS]}" if lines else ""


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
async def over_http(url: str, headers: Mapping[str, str], watch: Watch) -> AsyncIterator[Any]:
    """Speak to a server that runs. Neither a proxy nor a cookie of the environment is used."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    quiet()
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # each call is bounded as a whole
    transport = _watched_transport(httpx2.AsyncHTTPTransport(trust_env=False), watch)
    async with (
        httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=timeout, trust_env=False) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST) as (reads, writes),
    ):
        yield Watched(reads, watch), writes


class Watched:
    """A stream of messages whose end is noticed."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner, self._watch = inner, watch

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except Exception:  # whatever it is that ends it
            self._watch.end()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    @property
    def last_context(self) -> Any:
        """What the library keeps beside a message."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> "Watched":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except Exception:  # StopAsyncIteration, or whatever else ends it
            self._watch.end()
            raise

    async def __aenter__(self) -> "Watched":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


def _watched_transport(inner: "httpx2.AsyncBaseTransport", watch: Watch) -> "httpx2.AsyncBaseTransport":
    """A transport that notices when the server cannot be reached, where the library would go on trying, or refuses."""
    import httpx2

    class WatchedStream(httpx2.AsyncByteStream):
        """A body. Where it breaks off, the server may be gone, and the library would ask for the rest only later."""

        def __init__(self, body: Any, url: httpx2.URL) -> None:
            self._body, self._url = body, url

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for part in self._body:
                    yield part
            except httpx2.TransportError:
                if await _refuses(self._url.host, self._url.port or (443 if self._url.scheme == "https" else 80)):
                    watch.end()
                raise

        async def aclose(self) -> None:
            await self._body.aclose()

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
            response.stream = WatchedStream(response.stream, request.url)
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


def quiet() -> None:
    """The library's own log lines go where the host's configuration says, and else nowhere."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
