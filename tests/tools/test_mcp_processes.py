"""The processes of MCP servers: what a server started ends with it, however it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_servers import FAULTY
from support.mcp_servers.faulty import LETTER
from support.optional import needs
from support.programs_ahead import put_ahead
from utools import ToolContext, ToolRegistry, ToolResult
from utools.sources.manifest import manifest_tools
from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.servers import McpServer, McpServers

pytestmark = needs("mcp")

WITHIN = 15.0
"""Seconds that the end of a process may take; nothing here comes near them, unless it hangs."""

# how a server comes to have a child of its own; the child's process id is written down
HELPED = 'sleep 600 & echo $! >> "$1/started"; exec "$0" "$2" "$1"'
WRAPPED = 'exec 3<&0; "$0" "$2" "$1" <&3 & echo $! >> "$1/started"; exec 3<&-; wait'
STUBBORN = '(trap \'\' TERM HUP; exec sleep 600) & echo $! >> "$1/started"; exec "$0" "$2" "$1"'
QUIET = 'sleep 600 >/dev/null 2>&1 </dev/null & echo $! >> "$1/started"; exec "$0" "$2" "$1"'
DETACHED = 'setsid sleep 5 & exec "$0" "$2" "$1"'
FAMILIES = {"helped": HELPED, "wrapped": WRAPPED, "stubborn": STUBBORN, "quiet": QUIET}


def config(home: Path, script: str) -> McpServer:
    return McpServer(command=["sh", "-c", script, sys.executable, str(home), FAULTY])


@pytest.fixture(params=FAMILIES)
def script(request: pytest.FixtureRequest) -> str:
    return FAMILIES[request.param]


@pytest.fixture
def server(script: str, tmp_path: Path) -> Iterator[McpServers]:
    servers = McpServers({"own": config(tmp_path, script)}, lock=tmp_path / "lock.json", base=tmp_path)
    yield servers
    servers.close()
    for pid in processes(tmp_path):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def processes(home: Path) -> list[int]:
    """All that was started there: the servers and what they started."""
    files = [file for name in ("starts", "started") if (file := home / name).exists()]
    return [int(line) for file in files for line in file.read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def until(true: Callable[[], bool]) -> None:
    """Come back when it is true; TimeoutError if that takes too long."""
    async with asyncio.timeout(WITHIN):
        while not true():
            await asyncio.sleep(0.01)


async def called(registry: ToolRegistry, tool: str, **args: Any) -> ToolResult:
    return await registry.execute(f"mcp.own.{tool}", args, ToolContext(deadline_s=WITHIN))


async def test_server_whose_start_is_cancelled_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sh", "-c", 'echo $$ >> "$0/starts"; sleep 600 & echo $! >> "$0/started"; wait', str(tmp_path)]

    async def connect() -> None:
        from utools.sources.mcp.process import open_pipes

        async with open_pipes(command, {}, tmp_path, ConnectionMonitor()):
            pytest.fail("it was cancelled")

    put_ahead(monkeypatch, lambda: len(processes(tmp_path)) == 2, lambda: starting.cancel())
    starting = asyncio.create_task(connect())
    done, _ = await asyncio.wait({starting}, timeout=WITHIN)
    assert done, "it waits for what the server has started"
    assert starting.cancelled()
    await until(lambda: not any(map(alive, processes(tmp_path))))


async def test_closing_a_server_ends_what_it_started(server: McpServers, tmp_path: Path) -> None:
    registry = ToolRegistry(await asyncio.to_thread(server.tools))
    assert (await called(registry, "echo", text="hi")).output == "hi"
    assert all(map(alive, processes(tmp_path)))
    await asyncio.to_thread(server.close)
    await until(lambda: not any(map(alive, processes(tmp_path))))


async def test_a_server_that_dies_is_noticed_and_takes_along_what_it_started(
    server: McpServers, tmp_path: Path
) -> None:
    registry = ToolRegistry(await asyncio.to_thread(server.tools))
    before = processes(tmp_path)
    died = await asyncio.wait_for(called(registry, "die"), 2)
    assert died.metadata == {"transient": True, "cut_off": True}
    assert "its last words: out of memory" in str(died.error)
    assert (await called(registry, "echo", text="back")).output == "back"
    await until(lambda: not any(map(alive, before)))


async def test_what_follows_the_end_of_a_server_is_asked_of_the_next_one(tmp_path: Path) -> None:
    """What the server started holds its output open, so that the host has not been told of the end yet."""
    servers = McpServers({"own": config(tmp_path, DETACHED)}, lock=tmp_path / "lock.json", base=tmp_path)
    registry, read = ToolRegistry(await asyncio.to_thread(servers.tools)), servers.readers()["own"]

    async def kill() -> None:
        server = processes(tmp_path)[-1]
        os.kill(server, signal.SIGKILL)
        await until(lambda: not alive(server))

    try:
        await kill()
        assert (await called(registry, "echo", text="made")).output == "made"
        await kill()
        assert await read({"uri": "doc:letter"}) == LETTER
    finally:
        await asyncio.to_thread(servers.close)


HOST = """
import asyncio, json, sys
from pathlib import Path
from utools import ToolRegistry
from utools.sources.manifest import manifest_tools
from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.servers import McpServer, McpServers

home = Path(sys.argv[1])
server = McpServer(command=json.loads(sys.argv[2]))
registry = ToolRegistry(McpServers({"own": server}, lock=home / "lock.json").tools())
assert asyncio.run(registry.execute("mcp.own.echo", {"text": "hi"})).output == "hi"
print("ready", flush=True)
sys.stdin.read()
"""


def host(home: Path, command: list[str]) -> "subprocess.Popen[str]":
    """A host in a process of its own, which has called the server and goes on until its input ends."""
    words = [sys.executable, "-c", HOST, str(home), json.dumps(command)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


async def test_the_end_of_the_host_ends_what_a_server_started(script: str, tmp_path: Path) -> None:
    process = await asyncio.to_thread(host, tmp_path, list(config(tmp_path, script).command or ()))
    assert await asyncio.to_thread(process.communicate, "", WITHIN) == ("", None)
    assert process.returncode == 0
    await until(lambda: not any(map(alive, processes(tmp_path))))


@pytest.mark.parametrize("word", ["", WRAPPED], ids=["plain", "wrapped"])
async def test_a_host_that_is_killed_leaves_no_server(tmp_path: Path, word: str) -> None:
    plain = [sys.executable, FAULTY, str(tmp_path)]
    process = await asyncio.to_thread(host, tmp_path, list(config(tmp_path, word).command or ()) if word else plain)
    running = processes(tmp_path)
    assert any(map(alive, running))
    process.kill()
    await asyncio.to_thread(process.communicate)
    await until(lambda: not any(map(alive, running)))


# ── which program ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def linked(tmp_path: Path) -> str:
    """A Python that is a link, as that of a virtual environment is, and runs only under the name of the link."""
    program, link = tmp_path / "any", tmp_path / "venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\ncase "$0" in */venv/bin/python) exec "{sys.executable}" "$@";; esac; exit 9\n')
    program.chmod(0o755)
    link.symlink_to(program)
    return "venv/bin/python"


async def test_a_server_is_started_by_the_link_that_was_given(linked: str, tmp_path: Path) -> None:
    config = McpServer(command=[linked, FAULTY, str(tmp_path)])
    servers = McpServers({"own": config}, lock=tmp_path / "lock.json", base=tmp_path)
    assert (await called(ToolRegistry(servers.tools()), "echo", text="hi")).output == "hi"
    servers.close()


async def test_a_command_of_a_manifest_is_run_by_the_link_that_was_given(linked: str, tmp_path: Path) -> None:
    command = {"argv": [f"./{linked}", "-c", "print(6 * 7)"]}
    manifest = {"code": "answer", "description": "Tells it.", "schema": {"type": "object"}, "command": command}
    (tmp_path / "answer.json").write_text(json.dumps(manifest))
    tools = manifest_tools(tmp_path / "answer.json", root=tmp_path, trusted=True)
    assert (await ToolRegistry(tools).execute("answer", {})).output == "42\n"
