"""What an endpoint may do to a run: each fault has a defined ending, and no action that stands in one is executed."""

import asyncio
import gzip
import logging
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson
import pytest

from agent_core import AgentOutput, MemoryJournal, run_agent
from agent_core.models.endpoint import by_aiohttp, by_httpx2  # noqa: F401 - slower to load than the calls below may be
from agent_core.models.endpoint.body import MAX_REPLY_BYTES
from support.asking import KEY, client
from support.loopback import (
    USAGE,
    Loopback,
    Reply,
    chat,
    dripping,
    endless,
    events,
    half,
    hang_up,
    http,
    piece,
    reset,
    serving,
    silence,
    streamed,
    then,
)
from utools import ToolRegistry, tool

pytestmark = pytest.mark.usefixtures("each_transport")
CALL_S = 0.5
ACTION = orjson.dumps({"type": "action", "tool": "wipe", "args": {"disk": "a"}}).decode()
FINAL = chat(orjson.dumps({"type": "final", "answer": "ok"}).decode())
NATIVE = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "wipe", "arguments": '{"disk":"a"}'}}]
LEGAL = chat(ACTION).partition(b"\r\n\r\n")[2]
PIECES = streamed(ACTION).partition(b"\r\n\r\n")[2]


@dataclass
class World:
    """A tool that must not be called, and all that is told of a run."""

    wiped: int = 0
    told: list[Any] = field(default_factory=list)
    journal: MemoryJournal = field(default_factory=MemoryJournal)

    def registry(self) -> ToolRegistry:
        @tool(effect="write")
        async def wipe(disk: str) -> str:
            """Wipe a disk."""
            self.wiped += 1
            return "wiped"

        return ToolRegistry([wipe])


async def run(server: Loopback, world: World, asked: str, *, call_s: float = 30, protocol: str = "json") -> AgentOutput:
    """A whole run; whoever listens to one has its replies streamed."""
    model = client(server.url)
    config = {
        "model": "m1",
        "max_steps": 3,
        "allowed_tools": ["wipe"],
        "prompt": "Hello",
        "single_call_timeout": call_s,
        "max_repairs": 0,
        "protocol": protocol,
    }
    listener = world.told.append if asked == "stream" else None
    try:
        return await run_agent(config, registry=world.registry(), model=model, journal=world.journal, on_event=listener)
    finally:
        await model.close()


def _sse(*chunks: Any, done: bool = True) -> bytes:
    return events(*chunks, done=done)


def _zipped(body: bytes, status: int = 200, kind: str = "application/json") -> bytes:
    return http(status, gzip.compress(body), content_encoding="gzip", content_type=kind)


def _date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
BUSY = {"error": {"message": "busy " + ACTION}}
BOMB = b" " * MAX_REPLY_BYTES + LEGAL
ACTING = piece(ACTION)
CALLING = piece(tool_calls=NATIVE)
CALLED = b"data: " + orjson.dumps(CALLING) + b"\n\n"
HALF_CALL = [NATIVE[0] | {"function": {"name": "wipe", "arguments": '{"disk":'}}]
MODEL = "model_error"

Fault = tuple[Reply, str, int, str]
"""What the endpoint answers always, how the run ends, after how many requests, and words of its error."""
FAULTS: dict[str, Fault] = {
    **{str(status): (http(status, BUSY), MODEL, 3, f"answered {status}: busy") for status in (408, 409, 500, 503, 529)},
    "429, seconds": (http(429, BUSY, retry_after="0"), MODEL, 3, "answered 429"),
    "429, a date that is past": (http(429, BUSY, retry_after=_date(-60)), MODEL, 3, "answered 429"),
    "429, milliseconds": (http(429, BUSY, retry_after_ms="2"), MODEL, 3, "answered 429"),
    "429, seconds past the call's time": (http(429, BUSY, retry_after="40"), MODEL, 1, "asks to wait"),
    "429, a date past the call's time": (http(429, BUSY, retry_after=_date(3600)), MODEL, 1, "asks to wait"),
    "429, absurd": (http(429, BUSY, retry_after="999999999"), MODEL, 1, "asks to wait"),
    "429, absurd date": (http(429, BUSY, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"), MODEL, 1, "asks to wait"),
    "429, more digits than a number": (http(429, BUSY, retry_after="9" * 400), MODEL, 3, "answered 429"),
    "reset": (reset, MODEL, 3, "gave no answer"),
    "reset in the body": (then(http(200, b'{"choices":', content_length="99"), reset), MODEL, 3, "gave no answer"),
    "closed without an answer": (hang_up, MODEL, 3, "gave no answer"),
    "truncated body": (half, MODEL, 3, "gave no answer"),
    "truncated chunks": (
        then(HEAD + b'transfer-encoding: chunked\r\n\r\n5\r\n{"a', hang_up),
        MODEL,
        3,
        "gave no answer",
    ),
    "no HTTP": (then(b"SSH-2.0-OpenSSH_9.9\r\n\r\n", hang_up), MODEL, 3, "gave no answer"),
    "bad chunks": (
        then(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + LEGAL, hang_up),
        MODEL,
        3,
        "gave no answer",
    ),
    "error with status 200": (http(200, {"error": {"message": "no " + ACTION}}), MODEL, 1, "answered with an error"),
    "error beside choices": (chat(ACTION, error={"message": "no"}), MODEL, 1, "answered with an error"),
    "empty choices": (http(200, {"choices": []}), MODEL, 1, "empty list of choices"),
    "HTML": (http(200, b"<html>" + LEGAL, content_type="text/html"), MODEL, 1, "not JSON"),
    "two values": (http(200, LEGAL + LEGAL), MODEL, 1, "not JSON"),
    "deep nesting": (http(200, b"[" * 100_000 + LEGAL + b"]" * 100_000), MODEL, 1, "not JSON"),
    "deep nesting beside": (http(200, LEGAL[:-1] + b',"deep":' + b"[" * 100_000), MODEL, 1, "not JSON"),
    "compression bomb": (_zipped(BOMB), MODEL, 1, "more than 16 MiB"),
    "compression bomb as an error": (_zipped(BOMB, 429), MODEL, 1, "more than 16 MiB"),
    "bad gzip": (http(200, LEGAL, content_encoding="gzip"), MODEL, 3, "gave no answer"),
    "endless body": (endless(HEAD + b"\r\n" + LEGAL, b" " * 2**20), MODEL, 1, "more than 16 MiB"),
    "endless header": (endless(HEAD + b"x: ", b"x" * 2**16), MODEL, 3, "gave no answer"),
    "endless headers": (endless(HEAD, b"x-more: of this\r\n" * 2**10), MODEL, 3, "gave no answer"),
    "slow drip in the head": (dripping(HEAD * 9), MODEL, 1, "within"),
    "slow drip in the body": (then(HEAD + b"\r\n", dripping(LEGAL)), MODEL, 1, "within"),
    "hang": (silence, MODEL, 1, "within"),
    "hang in the body": (then(HEAD + b"\r\n" + LEGAL, silence), MODEL, 1, "within"),
    "a key that is echoed": (http(401, {"error": {"message": f"no such key: {KEY}"}}), MODEL, 1, "no such key: ***"),
    "a key in base64": (http(401, {"error": b64encode(KEY.encode()).decode()}), MODEL, 1, "answered 401: ***"),
    "a key in a page": (http(401, b"<p>" + b" " * 430 + "é".encode() * 30 + KEY.encode()), MODEL, 1, "answered 401"),
    "content filter": (chat(ACTION, finish_reason="content_filter"), "content_filter", 1, ""),
    "content filter as an error": (http(400, {"error": {"code": "content_filter"}}), "content_filter", 1, ""),
    "refusal": (chat(None, refusal="I will not."), "content_filter", 1, "refused to answer: I will not."),
    "error in the choice": (
        http(200, {"choices": [{"message": {"content": ACTION}, "error": {"message": "up"}}]}),
        MODEL,
        1,
        "answered with an error: up",
    ),
    "error as finish reason": (chat(ACTION, finish_reason="error"), MODEL, 1, "finish reason error"),
    "busy, not to be tried again": (http(503, BUSY, x_should_retry="false"), MODEL, 1, "answered 503"),
    "refused, to be tried again": (http(403, BUSY, x_should_retry="true"), MODEL, 3, "answered 403"),
    "length, though complete": (chat(ACTION, finish_reason="length"), "protocol_error", 1, ""),
    "null content": (chat(None), "protocol_error", 1, ""),
    "null content with a call": (chat(None, tool_calls=NATIVE), "protocol_error", 1, ""),
}
STREAMS: dict[str, Fault] = {
    "cut off": (_sse(ACTING, done=False), MODEL, 3, "before the reply was whole"),
    "cut off before its end": (_sse(CALLING, done=False), MODEL, 3, "before the reply was whole"),
    "lost": (then(SSE_HEAD + b"content-length: 9999\r\n\r\n" + PIECES[:-40], hang_up), MODEL, 3, "gave no answer"),
    "reset in the middle": (
        then(SSE_HEAD + b"content-length: 9999\r\n\r\n" + PIECES[:-40], reset),
        MODEL,
        3,
        "gave no answer",
    ),
    "an error event": (_sse(ACTING, {"error": {"message": "busy"}}), MODEL, 1, "answered with an error: busy"),
    "an error after the end": (_sse(ACTING, piece(finish_reason="stop"), {"error": "late"}), MODEL, 1, "late"),
    "no choice": (_sse(USAGE), MODEL, 1, "empty list of choices"),
    "HTML in an event": (_sse(ACTING, b"<html>"), MODEL, 1, "not JSON"),
    "a text in an event": (_sse(ACTING, b'"\xff"'), MODEL, 1, "no chat completion"),
    "deep nesting in an event": (_sse(ACTING, b"[" * 100_000), MODEL, 1, "not JSON"),
    "compression bomb in an event": (_zipped(b"data: " + BOMB, kind="text/event-stream"), MODEL, 1, "more than 16 MiB"),
    "endless events": (
        endless(SSE_HEAD + b"\r\n", (b": " + b"p" * 500 + b"\n\n") * 2**9),
        MODEL,
        1,
        "more than 16 MiB",
    ),
    "endless event": (endless(SSE_HEAD + b"\r\ndata: ", b" " * 2**20), MODEL, 1, "more than 16 MiB"),
    "slow drip of events": (then(SSE_HEAD + b"\r\n", dripping(PIECES)), MODEL, 1, "within"),
    "hang between events": (then(SSE_HEAD + b"\r\n" + PIECES[:-60], silence), MODEL, 1, "within"),
    "error in a choice": (
        _sse(ACTING, {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"message": "up"}}]}),
        MODEL,
        1,
        "answered with an error: up",
    ),
    "error as finish reason in a stream": (_sse(ACTING, piece(finish_reason="error")), MODEL, 1, "finish reason error"),
    "refusal in a stream": (
        _sse(piece(refusal="I will "), piece(refusal="not."), piece(finish_reason="stop")),
        "content_filter",
        1,
        "refused to answer: I will not.",
    ),
    "empty events": (_sse(b"", b""), MODEL, 1, "empty list of choices"),
    "length in a stream": (streamed(ACTION, finish_reason="length"), "protocol_error", 1, ""),
    "content filter in a stream": (streamed(ACTION, finish_reason="content_filter"), "content_filter", 1, ""),
    "a stream of nothing": (_sse(piece(finish_reason="stop")), "protocol_error", 1, ""),
}
CASES = [(name, asked) for name in FAULTS for asked in ("whole", "stream")] + [(name, "stream") for name in STREAMS]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "asked"), CASES, ids=[f"{name}, {asked}" for name, asked in CASES])
async def test_a_fault_has_its_ending_and_acts_on_nothing(
    name: str, asked: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply, reason, requests, words = (FAULTS | STREAMS)[name]
    world = World()
    with caplog.at_level(logging.DEBUG):
        async with serving(reply) as server:
            output = await run(server, world, asked, call_s=CALL_S if words == "within" else 30)
    assert output.finish_reason == reason
    assert output.error is not None
    assert words in output.error["message"]
    assert (output.usage["requests"], len(server.requests)) == (requests, requests)
    assert world.wiped == output.usage["tool_calls"] == 0
    assert words != "within" or f"within {CALL_S:g} seconds" in output.error["message"]
    assert all(request.json().get("stream", False) is (asked == "stream") for request in server.requests)
    rows = [row.data for strand in world.journal.load(output.run_id).values() for row in strand]
    told = orjson.dumps(output.model_dump()) + b"".join(rows) + caplog.text.encode() + repr(world.told).encode()
    for secret in (KEY.encode(), b64encode(KEY.encode()), KEY[:12].encode()):
        assert secret not in told


NATIVE_FAULTS: dict[str, tuple[Reply, str]] = {
    "cut off": (_sse(CALLING, done=False), MODEL),
    "lost": (then(SSE_HEAD + b"content-length: 9999\r\n\r\n" + CALLED, hang_up), MODEL),
    "an error event": (_sse(CALLING, {"error": "busy"}), MODEL),
    "half of the arguments": (_sse(piece(tool_calls=HALF_CALL), piece(finish_reason="tool_calls")), "protocol_error"),
    "length": (_sse(CALLING, piece(finish_reason="length")), "protocol_error"),
    "content filter": (_sse(CALLING, piece(finish_reason="content_filter")), "content_filter"),
    "length, whole": (chat(None, tool_calls=NATIVE, finish_reason="length"), "protocol_error"),
    "content filter, whole": (chat(None, tool_calls=NATIVE, finish_reason="content_filter"), "content_filter"),
    "error beside": (chat(None, tool_calls=NATIVE, error="busy"), MODEL),
}


@pytest.mark.parametrize(("reply", "reason"), NATIVE_FAULTS.values(), ids=NATIVE_FAULTS)
async def test_a_native_call_in_a_fault_is_not_made(reply: Reply, reason: str) -> None:
    world = World()
    async with serving(reply) as server:
        output = await run(server, world, "stream", protocol="tools")
    assert (output.finish_reason, world.wiped, output.usage["tool_calls"]) == (reason, 0, 0)
    assert output.usage["requests"] == len(server.requests)


async def test_a_native_call_in_a_sound_stream_is_made() -> None:
    """The other side of the cases above: it is the faults that keep these calls from being made."""
    world = World()
    async with serving(_sse(CALLING, piece(finish_reason="tool_calls")), chat("done")) as server:
        output = await run(server, world, "stream", protocol="tools")
    assert (output.final_answer, world.wiped) == ("done", 1)


@pytest.mark.parametrize("asked", ["whole", "stream"])
async def test_a_fault_that_passes_is_a_request_more_and_nothing_else(asked: str) -> None:
    world = World()
    async with serving(http(503, BUSY), reset, FINAL) as server:
        output = await run(server, world, asked)
    assert (output.final_answer, output.usage["requests"], world.wiped) == ("ok", 3, 0)


@pytest.mark.parametrize("asked", ["whole", "stream"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_never_reaches_the_other_host(status: int, asked: str) -> None:
    world = World()
    async with serving(chat(ACTION)) as other:
        async with serving(http(status, b"", location=f"{other.url}/chat/completions?key={KEY}")) as server:
            output = await run(server, world, asked)
        assert (other.connections, other.requests, world.wiped) == (0, [], 0)
    assert output.finish_reason == "model_error"
    assert output.error is not None
    assert KEY not in output.error["message"]


async def test_content_in_parts_is_read_like_any_other() -> None:
    """An ending, but no fault: parts are what some vendors send."""
    world = World()
    parts = [{"type": "text", "text": ACTION[:9]}, {"type": "text", "text": ACTION[9:]}]
    async with serving(chat(parts), FINAL) as server:
        output = await run(server, world, "whole")
    assert (output.final_answer, world.wiped) == ("ok", 1)


async def test_fifty_runs_end_beside_one_whose_model_hangs() -> None:
    async with serving(silence) as hung, serving(FINAL) as server:
        stuck = asyncio.create_task(run(hung, World(), "whole"))
        while not hung.requests:
            await asyncio.sleep(0.002)
        runs = (run(server, World(), "whole") for _ in range(50))
        outputs = await asyncio.gather(*runs)
        assert [output.final_answer for output in outputs] == ["ok"] * 50
        assert not stuck.done()
        stuck.cancel()
        await asyncio.wait({stuck})
