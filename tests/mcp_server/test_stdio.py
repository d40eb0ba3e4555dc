"""The server over standard streams: what is written there, and how it ends."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from support.mcp_host import AGENT_CORE, NOISY, PATIENCE_S, McpHost, Person, until, write_host
from support.optional import needs

pytestmark = [needs("mcp"), pytest.mark.timeout(120)]
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}
WITHOUT_MCP = """
import importlib.util as util
find = util.find_spec
util.find_spec = lambda name, *more: None if name in {missing} else find(name, *more)
from engine_shim.cli.main import main
main({words})
"""


@pytest.fixture
def host(tmp_path: Path) -> McpHost:
    write_host(tmp_path)
    return McpHost(tmp_path)


def start(host: McpHost, *words: str) -> "subprocess.Popen[str]":
    """A server at pipes."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([AGENT_CORE, "mcp", *words], cwd=host.home, env=host.env, text=True, **pipes)


def send(server: "subprocess.Popen[str]", method: str, params: Any, request: int | None = None) -> None:
    assert server.stdin is not None
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    server.stdin.write(json.dumps(message | ({} if request is None else {"id": request})) + "\n")
    server.stdin.flush()


def begin_hold(host: McpHost) -> "subprocess.Popen[str]":
    """A server whose client has a call under way."""
    server = start(host)
    send(server, "initialize", INITIALIZE, 1)
    send(server, "notifications/initialized", {})
    send(server, "tools/call", {"name": "run_hold", "arguments": {}}, 2)
    asyncio.run(host.begun("hold"))
    return server


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_workflow_with_a_question_is_served_to_the_official_client(host: McpHost, mode: str) -> None:
    async with McpHost(host.home, mode).connect(Person("accept", {"decision": "approve"})) as client:
        assert "run_order" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("run_order", {})
    assert result.structured_content["status"] == "completed"
    assert host.orders() == ["10"]


async def test_cancellation_reaches_the_run(host: McpHost) -> None:
    async with host.connect() as client:
        call = asyncio.create_task(client.call_tool("run_hold", {}))
        await host.begun("hold")
        call.cancel()
        await until(lambda: host.command("runs").split()[1] == "cancelled")


def test_stdout_has_the_protocol_alone_whatever_tools_print_and_is_logged(host: McpHost) -> None:
    server = start(host, "--log-level", "debug")
    send(server, "initialize", INITIALIZE, 1)
    send(server, "notifications/initialized", {})
    send(server, "tools/call", {"name": "run_order", "arguments": {}}, 2)
    assert server.stdout is not None
    first, second = (json.loads(server.stdout.readline()) for _ in range(2))
    run = second["result"]["structuredContent"]["run_id"]
    assert NOISY in host.command("decide", run, "approve") or host.orders() == ["10"]
    out, err = server.communicate(timeout=PATIENCE_S)
    assert (first["id"], second["id"], out, server.returncode) == (1, 2, "", 0)
    assert "order" in err


@pytest.mark.exhaustive
def test_closed_stdin_ends_the_server_at_once_and_its_run_goes_on_at_the_next_start(host: McpHost) -> None:
    server = begin_hold(host)
    since = time.monotonic()
    server.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - since < 10
    assert server.returncode == 0
    assert "interrupted: `agent-core resume` continues it" in host.command("runs")
    host.let_go("hold")
    again = start(host)
    asyncio.run(until(lambda: host.command("runs").split()[1] == "completed"))
    again.communicate(timeout=PATIENCE_S)


async def test_half_of_a_character_is_replaced_so_that_its_call_is_answered() -> None:
    from engine_shim.mcp_server.stdio import Lines

    sent = {
        rb'{"a": "cut \ud83d"}': '{"a": "cut \\ufffd"}',
        rb'{"a": "whole \uD83D\uDE00, \ude00"}': '{"a": "whole \\uD83D\\uDE00, \\ufffd"}',
        rb'{"a": "\\ud83d"}': '{"a": "\\\\ud83d"}',
        b'{"a": "\xff"}': '{"a": "\ufffd"}',
    }
    lines = Lines(BytesIO(b"".join(line + b"\n" for line in sent)))
    assert [line.rstrip("\n") async for line in lines] == list(sent.values())


def test_messages_of_a_batch_are_answered_one_by_one(host: McpHost) -> None:
    server = start(host)
    send(server, "initialize", {**INITIALIZE, "protocolVersion": "2025-03-26"}, 1)
    send(server, "notifications/initialized", {})
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (2, 3)]
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(pings) + "\n[no json\n")
    server.stdin.flush()
    answers = [json.loads(server.stdout.readline()) for _ in range(3)]
    server.communicate(timeout=PATIENCE_S)
    assert sorted(answer["id"] for answer in answers if "result" in answer) == [1, 2, 3]


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT], ids=lambda word: word.name)
def test_signal_ends_a_server_whose_client_still_holds_its_streams(host: McpHost, word: signal.Signals) -> None:
    server = begin_hold(host)
    server.send_signal(word)
    assert server.wait(PATIENCE_S) == 0
    server.communicate()
    assert "interrupted: `agent-core resume` continues it" in host.command("runs")


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [(["mcp"], ["mcp"], "agent-core[mcp]"), (["fastapi"], ["mcp", "--http"], "agent-core[mcp,web]")],
)
def test_missing_extra_is_named(host: McpHost, missing: list[str], words: list[str], extra: str) -> None:
    code = WITHOUT_MCP.format(missing=missing, words=words)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=host.home, env=host.env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 2
    assert extra in done.stderr
