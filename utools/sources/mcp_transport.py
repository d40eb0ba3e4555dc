"""How an MCP server is reached: a process and its standard streams, or HTTP; and a watch that sees it end."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from utools.errors import ToolError

if TYPE_CHECKING:
    import httpx2

KEPT = 4096
"""Bytes of what a server last wrote to its standard error."""
LAST_WORDS = 300
CONNECT_SECONDS = 10.0
SESSION = "mcp-session-id"


class Watch:
    """What becomes of a connection.

    `ended`: no answer can come any more; `refused`: no connection was to be had; `forgotten`: the server does not know
    the session; `status`: of the last HTTP response that told of a failure.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.refused = False
        self.forgotten = False
        self.status = 0
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


@asynccontextmanager
async def over_pipes(command: Sequence[str], env: Mapping[str, str], cwd: Path, watch: Watch) -> AsyncIterator[Any]:
    """Start a server, with the library's short list of variables and these. ToolError if there is no such program."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=_program(command[0], cwd),
        args=list(command[1:]),
        env=dict(env),
        cwd=cwd,
        encoding_error_handler="replace",  # junk among its messages must not end the connection
    )
    _quiet()
    with _stderr(watch) as stderr:
        async with stdio_client(parameters, errlog=stderr) as (reads, writes):
            stderr.close()
            yield _Watched(reads, watch), writes


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], watch: Watch) -> AsyncIterator[Any]:
    """Speak to a server that runs. Neither a proxy nor a cookie of the environment is used."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    _quiet()
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # each call is bounded as a whole
    transport = _watched_transport(httpx2.AsyncHTTPTransport(trust_env=False), watch)
    async with (
        httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=timeout, trust_env=False) as client,
        streamable_http_client(url, http_client=client) as (reads, writes),
    ):
        yield _Watched(reads, watch), writes


class _Watched:
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

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except Exception:  # StopAsyncIteration, or whatever else ends it
            self._watch.end()
            raise

    async def __aenter__(self) -> "_Watched":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


def _watched_transport(inner: "httpx2.AsyncBaseTransport", watch: Watch) -> "httpx2.AsyncBaseTransport":
    """A transport that notices when the server cannot be reached, where the library would go on trying, or refuses."""
    import httpx2

    class Watched(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                response = await inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                watch.refused = request.method == "POST"
                watch.end()
                raise
            if request.method == "POST":
                watch.status = response.status_code
                watch.forgotten = response.status_code in (400, 404) and SESSION in request.headers
            return response

        async def aclose(self) -> None:
            await inner.aclose()

    return Watched()


def _program(name: str, cwd: Path) -> str:
    """Where a program lies: one with a slash beside the host's configuration, any other where PATH says."""
    if not cwd.is_dir():
        raise ToolError(f"there is no directory {str(cwd)!r} to start it in")
    found = shutil.which(str((cwd / name).resolve()) if os.sep in name else name)
    if found is None:
        raise ToolError(f"there is no program {name!r}; is it installed?")
    return found


@contextmanager
def _stderr(watch: Watch) -> Iterator[TextIO]:
    """A file for a server's standard error, whose last words are kept."""
    loop = asyncio.get_running_loop()
    reads, writes = os.pipe()
    os.set_blocking(reads, False)

    def heard() -> None:
        with suppress(BlockingIOError):
            data = os.read(reads, KEPT)
            watch.heard(data)
            if not data:
                loop.remove_reader(reads)

    loop.add_reader(reads, heard)
    try:
        with os.fdopen(writes, "w") as file:
            yield file
    finally:
        loop.remove_reader(reads)
        os.close(reads)


def _quiet() -> None:
    """The library's own log lines go where the host's configuration says, and else nowhere."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
