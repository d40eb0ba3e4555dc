"""An MCP server that sends too much is bounded, in memory and in work, and its caller learns why."""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.loopback import http
from support.mcp_servers import FAULTY
from support.mcp_servers.scripted import Answer, ScriptedMcp, reply, scripted, text
from utools import ToolContext, ToolRegistry, ToolResult
from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.limits import (
    BRACKETS,
    BURST,
    CROWDED,
    HIGHEST_COST,
    ITEMS,
    KIB,
    LONGEST,
    REFILL,
    TOO_LONG,
    UNANSWERED,
    TokenBucket,
    is_crowded,
)
from utools.sources.mcp.servers import McpServer, McpServers

WITHIN = 30.0
"""Seconds that a call may take; nothing here comes near them, unless it hangs."""
LONG = b"x" * 2**16
CUT_OFF = {"transient": True, "cut_off": True}
Call = Callable[..., Any]


# ── over its standard streams ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Call]:
    pytest.importorskip("mcp", reason="needs mcp (extra `test-all`)")
    config = McpServer(command=[sys.executable, FAULTY, str(tmp_path)])
    servers = McpServers({"own": config}, lock=tmp_path / "lock.json", base=tmp_path)
    registry = ToolRegistry(servers.tools())

    async def call(tool: str, word: str) -> ToolResult:
        return await registry.execute(f"mcp.own.{tool}", {"text": word}, ToolContext(deadline_s=WITHIN))

    yield call
    servers.close()


def starts(home: Path) -> int:
    return len((home / "starts").read_text().split())


FLOODS = {
    "requests": f"it was ended, since it sent more than {UNANSWERED} requests, and does not take the answers",
    "answers": f"it was ended, since it sent more than {BURST} messages that nobody asked for",
    "junk": f"it was ended, since it sent more than {BURST} messages that nobody asked for",
}


@pytest.mark.parametrize(("kind", "expected"), FLOODS.items(), ids=FLOODS)
async def test_a_server_that_does_not_stop_talking_is_ended_and_started_anew(
    call: Call, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, expected: str
) -> None:
    result = await call("flood", kind)
    assert (result.metadata, expected in str(result.error)) == (CUT_OFF, True), result
    assert (await call("echo", "hi")).output == "hi"
    assert (starts(tmp_path), "the MCP server own was ended: it sent" in caplog.text) == (2, True)


@pytest.mark.parametrize("kind", ["", "log"], ids=["progress", "log"])
async def test_much_progress_and_many_lines_for_the_log_end_nothing(call: Call, tmp_path: Path, kind: str) -> None:
    assert (await call("talk", kind), starts(tmp_path)) == (ToolResult(output=kind), 1)


async def test_a_server_that_asks_and_takes_the_answers_may_go_on(call: Call, tmp_path: Path) -> None:
    assert (await call("ask", "")).output == "True"
    assert starts(tmp_path) == 1


UNSOUND: dict[str, tuple[str, str]] = {
    "deep": ('{"jsonrpc":"2.0","id":ID,"result":' + '{"a":' * 100_000 + "1" + "}" * 100_001, "recursion limit"),
    "id last": ('{"result":7,"jsonrpc":"2.0","id": ID}', "no message of the protocol"),
    "crowded": ('{"jsonrpc":"2.0","id":ID,"result":{"a":[[]' + ",[]" * BRACKETS + "]}}", CROWDED),
    "not JSON": ('{"jsonrpc":"2.0","id":ID,"result":{"content":[}}', "Invalid JSON"),
}


@pytest.mark.parametrize(("answer", "expected"), UNSOUND.values(), ids=UNSOUND)
async def test_an_answer_that_cannot_be_read_leaves_a_write_in_doubt_at_once(
    call: Call, tmp_path: Path, answer: str, expected: str
) -> None:
    result = await call("answer", answer)
    assert (result.metadata, expected in str(result.error)) == (CUT_OFF, True), result
    assert "took the call, and its answer cannot be read" in str(result.error)
    assert (await call("echo", "hi"), starts(tmp_path)) == (ToolResult(output="hi"), 1)


async def test_a_result_of_very_many_contents_is_not_read(call: Call, tmp_path: Path) -> None:
    assert len((await call("many", str(ITEMS))).output) == ITEMS
    result = await call("many", str(ITEMS + 1))
    expected = f"it is a list of {ITEMS + 1} items, and at most {ITEMS} are read"
    assert (result.metadata, expected in str(result.error)) == (CUT_OFF, True), result
    assert starts(tmp_path) == 1


LONG_ANSWERS = {
    "id first": '{"jsonrpc":"2.0","id":ID,"result":"LONG"}',
    "id last": '{"result":"LONG","jsonrpc":"2.0","id":ID}',
}


@pytest.mark.parametrize("answer", LONG_ANSWERS.values(), ids=LONG_ANSWERS)
async def test_an_answer_that_is_too_long_is_told_and_the_server_lives_on(
    call: Call, tmp_path: Path, answer: str
) -> None:
    result = await call("long", answer)
    assert (result.metadata, TOO_LONG in str(result.error)) == (CUT_OFF, True), result
    assert (await call("echo", "hi"), starts(tmp_path)) == (ToolResult(output="hi"), 1)


async def test_a_line_that_is_too_long_and_no_answer_is_passed_over(call: Call, tmp_path: Path) -> None:
    answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"hi"}]}}'
    assert (await call("long", f"LONG more\n{answer}"), starts(tmp_path)) == (ToolResult(output="hi"), 1)


async def test_a_text_of_brackets_is_read(call: Call) -> None:
    text = "[{" * BRACKETS
    answer = {"jsonrpc": "2.0", "id": "ID", "result": {"content": [{"type": "text", "text": text}]}}
    result = await call("answer", json.dumps(answer).replace('"ID"', "ID"))
    assert str(result.output).startswith("[{[{"), result


# ── over HTTP ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def connected(tmp_path: Path) -> Any:
    @asynccontextmanager
    async def connected(answer: Answer) -> AsyncIterator[tuple[ScriptedMcp, Any]]:
        async with scripted(answer) as server:
            config = {"own": McpServer(url=server.url, headers={"Accept-Encoding": "gzip"})}
            pytest.importorskip("mcp", reason="needs mcp (extra `test-all`)")
            servers = McpServers(config, lock=tmp_path / "lock.json", base=tmp_path)
            registry = ToolRegistry(await asyncio.to_thread(servers.tools))
            try:
                yield server, registry.execute("mcp.own.write", {"text": "once"}, ToolContext(deadline_s=WITHIN))
            finally:
                await asyncio.to_thread(servers.close)

    return connected


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_packed_answer_is_not_read_and_leaves_a_write_in_doubt(connected: Any, kind: str) -> None:
    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(reply(message, text(server.do(message)))).encode()
        events = b"data: %b\n\n" % body if kind != "application/json" else body
        writer.write(http(200, gzip.compress(events), content_type=kind, content_encoding="gzip", connection="close"))

    async with connected(answer) as (server, called):
        result = await called
    assert server.done == ["once"]
    assert {each["accept-encoding"] for each in server.headers} == {"identity"}
    assert (result.metadata, "it is packed (gzip), which was not asked for" in str(result.error)) == (CUT_OFF, True)


ENDLESS: dict[str, tuple[str, bytes, str]] = {
    "json": ("application/json", b" " * 2**16, TOO_LONG),
    "brackets": ("application/json", b"[],[" * 2**14, TOO_LONG),
    "brackets in one event": ("text/event-stream", b"data: [" + b"[],[" * 2**14, TOO_LONG),
    "one event": ("text/event-stream", b"data: " + b"x" * 2**16, "SSE stream failed"),
    "pings": (
        "text/event-stream",
        b'data: {"jsonrpc":"2.0","id":"p","method":"ping"}\n\n' * 100,
        f"it sent more than {UNANSWERED} requests",
    ),
}


@pytest.mark.parametrize(("kind", "again", "expected"), ENDLESS.values(), ids=ENDLESS)
async def test_an_answer_without_end_is_left(connected: Any, kind: str, again: bytes, expected: str) -> None:
    sent = 0

    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        server.do(message)
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
        with suppress(ConnectionError):  # the client has left
            while True:
                writer.write(again)
                sent += len(again)
                await writer.drain()

    async with connected(answer) as (server, called):
        result = await called
    assert (result.metadata, expected in str(result.error), server.done) == (CUT_OFF, True, ["once"]), result
    assert sent < 5 * LONGEST


CROWD = b'{"jsonrpc":"2.0","id":1,"result":{"a":[[]' + b",[]" * BRACKETS + b"]}}"
CROWDED_BODIES = {"json": ("application/json", CROWD), "event": ("text/event-stream", b"data: %b\n\n" % CROWD)}


@pytest.mark.parametrize(("kind", "body"), CROWDED_BODIES.values(), ids=CROWDED_BODIES)
async def test_an_answer_of_very_many_objects_is_not_read(connected: Any, kind: str, body: bytes) -> None:
    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        server.do(message)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)

    async with connected(answer) as (server, called):
        result = await called
    assert (result.metadata, CROWDED in str(result.error), server.done) == (CUT_OFF, True, ["once"]), result


COMMENTS = b": %b\r\n\r\n" % LONG
LOG = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%b"}}\n\n' % LONG


@pytest.mark.parametrize("again", [COMMENTS, LOG], ids=["comments", "log"])
async def test_talk_before_an_answer_ends_nothing(connected: Any, again: bytes) -> None:
    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        server.do(message)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for _ in range((LONGEST + 2**20) // len(again)):
            writer.write(again)
            await writer.drain()
        writer.write(b"\n\ndata: %b\n\n" % json.dumps(reply(message, text("hi"))).encode())

    async with connected(answer) as (server, called):
        assert (await called, server.done) == (ToolResult(output="hi"), ["once"])


# ── the bounds ────────────────────────────────────────────────────────────────────────────────────


def test_a_bucket_pays_for_so_many_messages_at_once_and_each_second() -> None:
    bucket = TokenBucket()
    assert [bucket.spend(0, 100.0) for _ in range(BURST + 5)] == [True] * BURST + [False] * 5
    assert [bucket.spend(0, 101.0) for _ in range(REFILL + 1)] == [True] * REFILL + [False]


def test_a_long_message_costs_more_but_one_alone_is_always_paid_for() -> None:
    bucket = TokenBucket()
    assert bucket.spend((HIGHEST_COST - 1) * KIB, 0.0)
    assert all(bucket.spend(LONGEST, 0.0) for _ in range(BURST // HIGHEST_COST - 1))
    assert not bucket.spend(0, 0.0)


async def test_talk_leaves_enough_for_messages_that_end_a_connection() -> None:
    monitor = ConnectionMonitor()
    assert sum(monitor.allows_talk(0) for _ in range(BURST)) < BURST
    for _ in range(BURST // 2):
        monitor.count_unsolicited(0)
    assert not monitor.ended.is_set()


async def test_requests_wait_for_their_answers_so_many_at_a_time() -> None:
    monitor = ConnectionMonitor()
    for _ in range(10 * UNANSWERED):
        monitor.count_request()
        monitor.count_answer()
    for _ in range(UNANSWERED):
        monitor.count_request()
    assert not monitor.ended.is_set()
    monitor.count_request()
    assert monitor.ended.is_set()


BRIM = b"[" * BRACKETS
CROWDS: dict[str, tuple[bytes, bool]] = {
    "as many as may be": (BRIM, False),
    "one more": (BRIM + b"{", True),
    "one more after a text": (b'"a\\\\"' + BRIM + b"{", True),
    "one more in a text": (BRIM + b'"{"', False),
    "one more in a text after a quote": (BRIM + b'"\\"{"', False),
    "one more in a text that does not end": (BRIM + b'"' + b'\\"[' * 1000, False),
    "one more on the next line": (b': it"s\n' + BRIM + b"[", True),
    "one more after a backslash at the end of a line": (b'"\\\n' + BRIM + b"[", True),
    "a long text": (b'["' + BRIM * 3 + b'"]', False),
    "quotes in a long text": (b'["' + rb"\"[" * BRACKETS * 3 + b'"]', False),
}


@pytest.mark.parametrize(("message", "crowded"), CROWDS.values(), ids=CROWDS)
def test_objects_and_lists_are_counted_outside_texts(message: bytes, crowded: bool) -> None:
    assert is_crowded(message) == crowded
