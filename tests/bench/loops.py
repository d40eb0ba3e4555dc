"""The loops that are measured: each asks `stub-N` until its final, calling the tool `echo` in between."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import openai
import orjson
from ours import ours
from task import PROMPT, echo

from agent_core import MemoryJournal, SqliteJournal
from agent_core.models.endpoint.connections import Transport
from agent_core.origins.sources import Sources, Tracing

Run = Callable[[int], Awaitable[str]]
"""One run of so many model calls, to its answer."""

SYSTEM = """You are a careful test agent. Reply with exactly one JSON object and nothing else.
To call a tool: {"type":"action","tool":"<name>","args":{...}}
To finish: {"type":"final","answer":"<answer>"}
Tools:
- echo: Echo the text back with the number. Arguments: {"text": string, "n": integer}"""
OPENING: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]


@asynccontextmanager
async def floor(port: int) -> AsyncIterator[Run]:
    """Bytes over a socket, and nothing else: what no client can beat in this language."""
    loop = asyncio.get_running_loop()
    _, line = await loop.create_connection(_Line, "127.0.0.1", port)

    async def post(body: bytes) -> bytes:
        return await line.ask(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    yield _own_bytes(post)
    line.transport.close()


@asynccontextmanager
async def sdk_own_bytes(port: int, http: httpx2.AsyncClient | None = None) -> AsyncIterator[Run]:
    """The openai SDK, given the request's bytes and asked for the response's."""
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="x", http_client=http) as client:

        async def post(body: bytes) -> bytes:
            return (await client.post("/chat/completions", content=body, cast_to=httpx2.Response)).content

        yield _own_bytes(post)


@asynccontextmanager
async def sdk_own_bytes_by_aiohttp(port: int) -> AsyncIterator[Run]:
    """The same over the SDK's other transport."""
    http = openai.DefaultAioHttpClient(limits=httpx2.Limits(max_connections=0))
    async with sdk_own_bytes(port, http) as run:
        yield run


@asynccontextmanager
async def sdk_as_usual(port: int) -> AsyncIterator[Run]:
    """The openai SDK as everybody writes it."""
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="x") as client:

        async def run(calls: int) -> str:
            messages = list(OPENING)
            while True:
                reply = await client.chat.completions.create(model=f"stub-{calls}", messages=messages)
                content = reply.choices[0].message.content or ""
                step = json.loads(content)
                if step["type"] == "final":
                    return str(step["answer"])
                messages.append({"role": "assistant", "content": content})
                messages.append({"role": "user", "content": echo(**step["args"])})

        yield run


@asynccontextmanager
async def ours_in_memory(port: int, transport: Transport) -> AsyncIterator[Run]:
    """A whole run of ours: prompt, parse, judge, tool, journal in memory, trace."""
    async with ours(port, transport) as run:
        yield lambda calls: run(calls, MemoryJournal())


@asynccontextmanager
async def ours_untraced(port: int, transport: Transport) -> AsyncIterator[Run]:
    """The same without the origins of values: nothing that was read is kept, and nothing looked for in it."""
    nothing = Tracing(None)
    async with ours(port, transport) as run:

        async def untraced(calls: int) -> str:
            with (
                patch.object(Sources, "trace", lambda *_: nothing),
                patch.object(Sources, "add_answer", lambda *_, **__: None),
            ):
                return await run(calls, MemoryJournal())

        yield untraced


@asynccontextmanager
async def ours_in_sqlite(port: int, transport: Transport) -> AsyncIterator[Run]:
    """The same, with the journal in a file."""
    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal(Path(folder) / "journal.db")
        async with ours(port, transport) as run:
            yield lambda calls: run(calls, journal)
        journal.close()


def _own_bytes(post: Callable[[bytes], Awaitable[bytes]]) -> Run:
    """The loop over a request that only grows at its end."""

    async def run(calls: int) -> str:
        request = b'{"model":"stub-%d","messages":[%b' % (calls, b",".join(map(orjson.dumps, OPENING)))
        while True:
            reply = orjson.loads(await post(request + b"]}"))
            content = reply["choices"][0]["message"]["content"]
            step = orjson.loads(content)
            if step["type"] == "final":
                return str(step["answer"])
            request += b"," + orjson.dumps({"role": "assistant", "content": content})
            request += b"," + orjson.dumps({"role": "user", "content": echo(**step["args"])})

    return run


class _Line(asyncio.Protocol):
    """One connection, one question at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self._received = transport, b""

    async def ask(self, request: bytes) -> bytes:
        self._reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._reply

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        if len(body) >= int(head.rpartition(b"content-length: ")[2]):
            self._received = b""
            self._reply.set_result(body)
