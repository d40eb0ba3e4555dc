"""An HTTP endpoint on 127.0.0.1 that answers as a test tells it to, and remembers what it was asked."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

import orjson

OF_MESSAGE = {"tool_calls", "reasoning_content", "refusal"}
Stream = Callable[[asyncio.StreamWriter], Awaitable[None]]
Reply = bytes | Stream
"""The bytes of a whole HTTP response, or a function that writes what it likes; then the connection closes."""


@dataclass(frozen=True)
class Request:
    """What the endpoint received. Header names are lower case."""

    target: str
    headers: dict[str, str]
    body: bytes
    method: str = "GET"

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Loopback:
    """The endpoint. Request k gets reply k, the last one again and again; `left` counts clients that hung up."""

    replies: tuple[Reply, ...]
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    left: int = 0
    scheme: str = "http"
    _open: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        self.connections += 1
        try:
            while request := await _request(reader):
                self.requests.append(request)
                reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
                if not isinstance(reply, bytes):
                    await self._streamed(reply, reader, writer)
                    break
                writer.write(reply)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            del self._open[task]

    async def _streamed(self, reply: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Write what the function writes, until it ends or the client hangs up."""
        writing, gone = asyncio.ensure_future(reply(writer)), asyncio.ensure_future(reader.read())
        await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
        self.left += gone.done()
        for task in (writing, gone):
            task.cancel()
        await asyncio.gather(writing, gone, return_exceptions=True)

    async def stop(self) -> None:
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def serving(*replies: Reply, port: int = 0, tls: SSLContext | None = None) -> AsyncIterator[Loopback]:
    """The endpoint, at an ephemeral port unless given, gone with all its connections at the end of the block."""
    loopback = Loopback(replies, scheme="https" if tls else "http")
    server = await asyncio.start_server(loopback.serve, "127.0.0.1", port, ssl=tls)
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()
        await loopback.stop()
        await server.wait_closed()


def http(status: int = 200, body: Any = b"", **headers: str) -> bytes:
    """An HTTP response. A body that is not bytes is sent as JSON; `_` in a header's name stands for `-`."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    fields = {"content_type": "application/json", "content_length": str(len(data)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Told\r\n{head}\r\n".encode() + data


def chat(content: Any, *, finish_reason: Any = "stop", **more: Any) -> bytes:
    """A chat completion, in the shape of OpenAI's; `more` is of the whole, or of the message when it is one of its."""
    message = {"role": "assistant", "content": content, **{name: more.pop(name) for name in OF_MESSAGE & set(more)}}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    return http(200, {"object": "chat.completion", "choices": [choice], "usage": usage, **more})


def events(*chunks: Any, done: bool = True, **headers: str) -> bytes:
    """Server-sent events: a chunk that is not bytes is sent as JSON. `done` says whether the stream says that it is."""
    data = [chunk if isinstance(chunk, bytes) else orjson.dumps(chunk) for chunk in chunks]
    body = b"".join(b"data: %b\n\n" % each for each in [*data, *[b"[DONE]"] * done])
    return http(200, body, content_type="text/event-stream", **headers)


def piece(content: Any = None, *, finish_reason: Any = None, **delta: Any) -> dict[str, Any]:
    """A piece of a streamed reply, in the shape of OpenAI's."""
    delta = delta if content is None else {**delta, "content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"object": "chat.completion.chunk", "choices": [choice]}


USAGE = {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


def streamed(*texts: str, finish_reason: str = "stop") -> bytes:
    """A reply in pieces, with its token counts."""
    return events(piece("", role="assistant"), *map(piece, texts), piece(finish_reason=finish_reason), USAGE)


def then(head: bytes, after: Stream) -> Stream:
    """Write so much, then do that."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()
        await after(writer)

    return write


async def silence(writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def half(writer: asyncio.StreamWriter) -> None:
    """Send less of the body than was announced."""
    writer.write(http(200, b'{"choices":', content_length="99"))
    await writer.drain()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close the connection without an answer."""


async def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection off (RST)."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


def endless(head: bytes, again: bytes) -> Stream:
    """Write something, and then the same again and again."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(again)
            await writer.drain()

    return write


def dripping(data: bytes) -> Stream:
    """Write a byte now and then: each comes soon enough, all of them never."""

    async def write(writer: asyncio.StreamWriter) -> None:
        for byte in data:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)

    return write


async def _request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split()[1], headers, body, first.split()[0])
