"""An MCP server that says too much is bounded, in memory and in work, and whoever called it is told."""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from loopback import http
from scripted_mcp import Answer, ScriptedMcp, reply, scripted, text

from utools import ToolContext, ToolRegistry, ToolResult
from utools.sources.mcp.limits import AT_ONCE, BRACKETS, CROWDED, EACH_SECOND, ITEMS, KIB, LONGEST, UNANSWERED, Unasked
from utools.sources.mcp.servers import McpServer, McpServers

FAULTY = str(Path(__file__).parent / "faulty_mcp.py")
WITHIN = 30.0
"""Seconds that a call may take; nothing here comes near them, unless it hangs."""
CUT_OFF = {"transient": True, "cut_off": True}
Call = Callable[..., Any]


# ── over its standard streams ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Call]:
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
    "notifications": f"it was ended, since it sent more than {AT_ONCE} messages that nobody asked for",
    "answers": f"it was ended, since it sent more than {AT_ONCE} messages that nobody asked for",
    "junk": f"it was ended, since it sent more than {AT_ONCE} messages that nobody asked for",
}


@pytest.mark.parametrize(("kind", "told"), FLOODS.items(), ids=FLOODS)
async def test_a_server_that_does_not_stop_talking_is_ended_and_started_anew(
    call: Call, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, told: str
) -> None:
    result = await call("flood", kind)
    assert (result.metadata, told in str(result.error)) == (CUT_OFF, True), result
    assert (await call("echo", "hi")).output == "hi"
    assert (starts(tmp_path), "the MCP server own was ended: it sent" in caplog.text) == (2, True)


async def test_a_server_that_asks_and_takes_the_answers_may_go_on(call: Call, tmp_path: Path) -> None:
    assert (await call("ask", "")).output == "True"
    assert starts(tmp_path) == 1


UNSOUND: dict[str, tuple[str, str]] = {
    "deep": ('{"jsonrpc":"2.0","id":ID,"result":' + '{"a":' * 100_000 + "1" + "}" * 100_001, "recursion limit"),
    "id last": ('{"result":7,"jsonrpc":"2.0","id": ID}', "no message of the protocol"),
    "crowded": ('{"jsonrpc":"2.0","id":ID,"result":{"a":[[]' + ",[]" * BRACKETS + "]}}", CROWDED),
    "not JSON": ('{"jsonrpc":"2.0","id":ID,"result":{"content":[}}', "Invalid JSON"),
}


@pytest.mark.parametrize(("answer", "told"), UNSOUND.values(), ids=UNSOUND)
async def test_an_answer_that_cannot_be_read_leaves_a_write_in_doubt_at_once(
    call: Call, tmp_path: Path, answer: str, told: str
) -> None:
    result = await call("answer", answer)
    assert (result.metadata, told in str(result.error)) == (CUT_OFF, True), result
    assert "took the call, and its answer cannot be read" in str(result.error)
    assert (await call("echo", "hi"), starts(tmp_path)) == (ToolResult(output="hi"), 1)


async def test_a_result_of_very_many_contents_is_not_read(call: Call, tmp_path: Path) -> None:
    assert len((await call("many", str(ITEMS))).output) == ITEMS
    result = await call("many", str(ITEMS + 1))
    told = f"it is a list of {ITEMS + 1} items, and at most {ITEMS} are read"
    assert (result.metadata, told in str(result.error)) == (CUT_OFF, True), result
    assert starts(tmp_path) == 1


async def test_a_message_that_does_not_end_is_told(call: Call) -> None:
    result = await call("big", "x")
    assert f"it was ended, since it sent a message of more than {LONGEST} bytes" in str(result.error)


# ── over HTTP ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def connected(tmp_path: Path) -> Any:
    @asynccontextmanager
    async def connected(answer: Answer) -> AsyncIterator[tuple[ScriptedMcp, Any]]:
        async with scripted(answer) as server:
            config = {"own": McpServer(url=server.url, headers={"Accept-Encoding": "gzip"})}
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
    "json": ("application/json", b" " * 2**16, f"it is longer than {LONGEST} bytes"),
    "crowd": ("application/json", b"[],[" * 2**14, CROWDED),
    "crowd in one event": ("text/event-stream", b"data: [" + b"[],[" * 2**14, CROWDED),
    "one event": ("text/event-stream", b"data: " + b"x" * 2**16, "SSE stream failed"),
    "comments": ("text/event-stream", b": hi\n" * 2**14, "messages that nobody asked for"),
    "notifications": (
        "text/event-stream",
        b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n' * 100,
        "messages that nobody asked for",
    ),
}


@pytest.mark.parametrize(("kind", "again", "told"), ENDLESS.values(), ids=ENDLESS)
async def test_an_answer_without_end_is_left(connected: Any, kind: str, again: bytes, told: str) -> None:
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
    assert (result.metadata, told in str(result.error), server.done) == (CUT_OFF, True, ["once"]), result
    assert sent < 10 * LONGEST


# ── the bounds ────────────────────────────────────────────────────────────────────────────────────


def test_what_is_said_unasked_is_bounded_at_once_and_each_second() -> None:
    unasked = Unasked()
    assert not any(unasked.said(0, 100.0) for _ in range(AT_ONCE))
    assert not any(unasked.said(0, 101.0) for _ in range(EACH_SECOND))
    assert unasked.said(0, 101.0)


def test_a_long_message_counts_for_many() -> None:
    unasked = Unasked()
    assert not unasked.said((AT_ONCE - 1) * KIB, 0.0)
    assert unasked.said(KIB, 0.0)


def test_requests_wait_for_their_answers_so_many_at_a_time() -> None:
    unasked = Unasked()
    for number in range(10 * UNANSWERED):
        assert not unasked.asked(number)
        unasked.answered(number)
    assert not any(unasked.asked(number) for number in range(UNANSWERED))
    unasked.withdrawn("0")
    assert not unasked.asked("again")
    assert unasked.asked("more")


def test_a_request_that_is_withdrawn_takes_none_of_the_same_id_with_it() -> None:
    unasked = Unasked()
    told = [unasked.asked(5) or unasked.withdrawn(7) for _ in range(UNANSWERED + 1)]
    for _ in range(UNANSWERED):
        unasked.withdrawn(5)
    assert (any(told[:-1]), bool(told[-1]), bool(unasked.asked(6))) == (False, True, True)
