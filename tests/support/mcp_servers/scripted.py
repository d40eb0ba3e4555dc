"""An MCP server over streamable HTTP on 127.0.0.1 that answers calls as a test tells it to, and counts them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from support.loopback import http

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": "write", "description": "Writes.", "inputSchema": SCHEMA}]
Answer = Callable[["ScriptedMcp", Any, asyncio.StreamWriter], Awaitable[None]]
"""Answers a call, of which it gets the whole message. The connection is closed when it returns."""


@dataclass
class ScriptedMcp:
    """The server. `done` are the texts of the calls that were carried out, `session` the one that it knows."""

    answer: Answer
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)
    url: str = ""
    done: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    sessions: int = 1
    release: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def session(self) -> str:
        return f"s{self.sessions}"

    def forget(self) -> None:
        """It knows nothing of its session any more."""
        self.sessions += 1

    def do(self, message: Any) -> str:
        """Carry the call out."""
        self.done.append(message["params"]["arguments"].get("text", ""))
        return self.done[-1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            headers, message = await _request(reader)
        except asyncio.IncompleteReadError:  # the client has left
            writer.close()
            return
        method = message.get("method", "GET")
        self.asked.append(method)
        self.headers.append(headers)
        if method in ("initialize", "server/discover") or headers.get("mcp-session-id") == self.session:
            await self._answered(method, message, writer)
        else:
            writer.write(http(404, connection="close"))
        with suppress(ConnectionError):  # the client has left
            await writer.drain()
        writer.close()

    async def _answered(self, method: str, message: Any, writer: asyncio.StreamWriter) -> None:
        if method == "tools/call":
            await self.answer(self, message, writer)
        elif method == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "scripted", "version": "1"}
            result: Any = {
                "protocolVersion": version,
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": info,
            }
            writer.write(http(200, reply(message, result), connection="close", mcp_session_id=self.session))
        elif method == "tools/list":
            writer.write(http(200, reply(message, {"tools": self.tools}), connection="close"))
        elif method == "resources/read":
            uri = message["params"]["uri"]
            result = {"contents": [{"uri": uri, "text": f"the text of {uri}"}]}
            writer.write(http(200, reply(message, result), connection="close"))
        else:
            writer.write(http(202 if method.startswith("notifications/") else 405, connection="close"))


def reply(message: Any, result: Any = None, *, error: Any = None) -> dict[str, Any]:
    """A message that answers another."""
    outcome = {"error": error} if error is not None else {"result": result}
    return {"jsonrpc": "2.0", "id": message["id"], **outcome}


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


@asynccontextmanager
async def scripted(answer: Answer, **more: Any) -> AsyncIterator[ScriptedMcp]:
    """A server whose calls end like this."""
    scripted_server = ScriptedMcp(answer, **more)
    server = await asyncio.start_server(scripted_server.serve, "127.0.0.1", 0)
    async with server:
        scripted_server.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        yield scripted_server


async def _request(reader: asyncio.StreamReader) -> tuple[dict[str, str], Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    pairs = (line.partition(":") for line in head.split("\r\n")[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return headers, json.loads(body) if body else {}
