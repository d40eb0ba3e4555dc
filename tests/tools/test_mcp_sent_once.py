"""A call that reached an MCP server over HTTP is never sent a second time, whatever becomes of its answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.loopback import http
from support.mcp_servers.scripted import Answer, ScriptedMcp, reply, scripted, text
from support.optional import needs
from utools import ToolContext, ToolRegistry, ToolResult
from utools.sources.mcp.servers import McpServer, McpServers

pytestmark = needs("mcp")

WITHIN = 20.0
"""Seconds that a call may take; nothing here comes near them, unless it hangs."""
CUT_OFF = {"transient": True, "cut_off": True}
Call = Callable[[str], Any]


@pytest.fixture
def connected(tmp_path: Path) -> Any:
    @asynccontextmanager
    async def connected(answer: Answer) -> AsyncIterator[tuple[ScriptedMcp, Call]]:
        """A server that answers so, and a way to call its one tool, which writes."""
        async with scripted(answer) as server:
            config = {"own": McpServer(url=server.url)}
            servers = McpServers(config, lock=tmp_path / "lock.json", base=tmp_path)
            registry = ToolRegistry(await asyncio.to_thread(servers.tools))

            async def call(text: str) -> ToolResult:
                return await registry.execute("mcp.own.write", {"text": text}, ToolContext(deadline_s=WITHIN))

            try:
                yield server, call
            finally:
                server.release.set()
                await asyncio.to_thread(servers.close)

    return connected


def status(number: int, body: Any = b"") -> Answer:
    """Done, and then answered with this status."""

    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        server.do(message)
        writer.write(http(number, body, connection="close"))

    return answer


def refusal(number: int, code: int, text: str) -> Answer:
    """Done, and then answered with an error of the protocol."""

    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        server.do(message)
        writer.write(http(number, reply(message, error={"code": code, "message": text}), connection="close"))

    return answer


def raw(data: bytes, kind: str = "application/json", length: int | None = None) -> Answer:
    """Done, and then answered with these bytes; the connection is closed after them."""

    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        server.do(message)
        size = f"Content-Length: {length}\r\n" if length is not None else ""
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{size}Connection: close\r\n\r\n".encode() + data)

    return answer


async def silent(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
    """Done, and then the connection is closed."""
    server.do(message)


EVENTS = "text/event-stream"
AFTERWARDS: dict[str, tuple[Answer, dict[str, bool], str]] = {
    "not found": (status(404), {}, "answered with the HTTP status 404"),
    "bad request": (status(400), {}, "answered with the HTTP status 400"),
    "not found, as a message": (refusal(404, -32601, "gone"), {}, "refused: gone"),
    "bad request, as a message": (refusal(400, -32000, "no such page"), {}, "refused: no such page"),
    "server error": (status(500), CUT_OFF, "answered with the HTTP status 500"),
    "bad gateway": (status(502), CUT_OFF, "answered with the HTTP status 502"),
    "own error": (refusal(200, -32000, "quota used up"), {}, "refused: quota used up"),
    "own error, in the library's words": (refusal(200, -32000, "Connection closed"), {}, "refused: Connection closed"),
    "accepted": (status(202), CUT_OFF, "202 Accepted"),
    "page": (raw(b"<p>Hi", "text/html"), CUT_OFF, "text/html"),
    "no JSON": (raw(b"{", length=1), CUT_OFF, "Failed to parse JSON"),
    "connection closed": (silent, CUT_OFF, "ended in mid-call"),
    "connection closed in mid-answer": (raw(b'{"jsonrpc"', length=500), CUT_OFF, "ended in mid-call"),
    "stream without an answer": (raw(b": hello\n\n", EVENTS), CUT_OFF, "SSE stream ended"),
    "stream that cannot go on": (raw(b"id: 1\nretry: 1\ndata:\n\n", EVENTS), CUT_OFF, "SSE stream ended"),
    "stream of junk": (raw(b"data: {\n\n", EVENTS), CUT_OFF, "Failed to parse SSE message"),
}


@pytest.mark.parametrize(("answer", "metadata", "expected"), AFTERWARDS.values(), ids=AFTERWARDS)
async def test_call_that_was_carried_out_is_not_sent_again(
    connected: Any, answer: Answer, metadata: dict[str, bool], expected: str
) -> None:
    async with connected(answer) as (server, call):
        result = await call("once")
    assert server.done == ["once"]
    assert server.asked.count("tools/call") == 1
    assert not result.success
    assert (result.metadata, expected in str(result.error)) == (metadata, True), result.error


async def well(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(http(200, reply(message, text(server.do(message))), connection="close"))


async def test_call_that_met_an_expired_session_is_made_in_a_new_one(connected: Any) -> None:
    async with connected(well) as (server, call):
        await call("before")
        server.forget()
        after = await call("after")
    assert (after.output, after.error) == ("after", None)
    assert server.done == ["before", "after"]
    assert server.asked.count("initialize") == 2


async def test_a_document_that_met_an_expired_session_is_read_in_a_new_one(tmp_path: Path) -> None:
    async with scripted(well) as server:
        config = {"own": McpServer(url=server.url)}
        servers = McpServers(config, lock=tmp_path / "lock.json", base=tmp_path)
        read = servers.readers()["own"]
        try:
            before = await read({"uri": "doc:a"})
            server.forget()
            after = await read({"uri": "doc:a"})
        finally:
            await asyncio.to_thread(servers.close)
    assert before == after == "the text of doc:a"
    assert server.asked.count("initialize") == 2


async def test_after_a_refused_secret_the_next_call_sends_the_secret_as_it_is_by_then(tmp_path: Path) -> None:
    """Tokens live for an hour, a session as long as the server; the call that is refused is not made again."""
    tokens = {"T": "old"}

    async def bearer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        if server.headers[-1]["authorization"] == "Bearer new":
            await well(server, message, writer)
        else:
            writer.write(http(401, connection="close"))

    async with scripted(bearer) as server:
        config = {"own": McpServer(url=server.url, token_env="T")}
        servers = McpServers(config, lock=tmp_path / "lock.json", base=tmp_path, secret=tokens.__getitem__)
        registry = ToolRegistry(await asyncio.to_thread(servers.tools))
        try:
            refused = await registry.execute("mcp.own.write", {"text": "a"}, ToolContext(deadline_s=WITHIN))
            tokens["T"] = "new"
            result = await registry.execute("mcp.own.write", {"text": "b"}, ToolContext(deadline_s=WITHIN))
        finally:
            await asyncio.to_thread(servers.close)
    assert "it does not accept the secret T" in str(refused.error)
    assert (result.output, server.done) == ("b", ["b"])


@pytest.mark.parametrize("lost", [status(410), status(503), refusal(200, -32001, "Session not found")])
async def test_after_a_failure_that_may_be_due_to_the_session_the_next_call_has_another(
    connected: Any, lost: Answer
) -> None:
    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        if server.session == "s2":
            await well(server, message, writer)
        else:
            server.forget()
            await lost(server, message, writer)

    async with connected(answer) as (server, call):
        failed, result = await call("a"), await call("b")
    assert (failed.success, result.output) == (False, "b")
    assert server.done == ["a", "b"]


async def test_all_calls_that_met_an_expired_session_are_made_once_each(connected: Any) -> None:
    async with connected(well) as (server, call):
        await call("before")
        server.forget()
        results = await asyncio.gather(*(call(str(n)) for n in range(8)))
    assert [(each.output, each.error) for each in results] == [(str(n), None) for n in range(8)]
    assert sorted(server.done) == sorted(["before", *map(str, range(8))])
    assert server.asked.count("initialize") == 2


async def test_call_meets_expired_sessions_only_so_often(connected: Any) -> None:
    async def forgetful(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        server.forget()
        writer.write(http(404, connection="close"))

    async with connected(forgetful) as (server, call):
        result = await call("never")
    assert "the MCP server own refused: Session terminated" in str(result.error)
    assert result.metadata == {}
    assert server.asked.count("tools/call") == 2


async def test_what_becomes_of_one_call_is_not_told_of_another(connected: Any) -> None:
    """One is carried out, and refused while another meets a status that would have it made again."""

    async def crossed(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        if server.do(message) == "second":
            writer.write(http(404, connection="close"))
            return
        body = json.dumps(reply(message, error={"code": -32602, "message": "half of it is done"})).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        await server.release.wait()
        writer.write(body)

    async with connected(crossed) as (server, call):
        first = asyncio.create_task(call("first"))
        async with asyncio.timeout(WITHIN):
            while "first" not in server.done:
                await asyncio.sleep(0.01)
        second = await call("second")
        server.release.set()
        error = str((await first).error)
    assert server.done == ["first", "second"]
    assert "answered with the HTTP status 404" in str(second.error)
    assert "refused: half of it is done" in error


async def test_request_is_unsent_only_where_the_first_of_its_posts_found_no_connection() -> None:
    import httpx2

    from utools.sources.mcp.connection_monitor import ConnectionMonitor, State
    from utools.sources.mcp.http import _MonitoredTransport
    from utools.sources.mcp.http_exchange import record_exchange

    class Refused(httpx2.AsyncBaseTransport):
        def __init__(self, answered: int) -> None:
            self.left = answered

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            self.left -= 1
            if self.left < 0:
                raise httpx2.ConnectError("refused")
            return httpx2.Response(200)

    for answered, unsent in ((0, True), (1, False)):
        monitor = ConnectionMonitor()
        transport = _MonitoredTransport(Refused(answered), monitor)
        with record_exchange() as exchange:
            for _ in range(answered):
                await transport.handle_async_request(httpx2.Request("POST", "http://127.0.0.1/"))
            with pytest.raises(httpx2.ConnectError):
                await transport.handle_async_request(httpx2.Request("POST", "http://127.0.0.1/"))
        assert (exchange.unsent, monitor.state) == (unsent, State.ENDED)
