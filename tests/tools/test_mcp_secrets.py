"""Secrets that an MCP server may know and writes into its descriptions reach neither a model nor the lock file."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.loopback import http
from support.mcp_servers import FAULTY
from support.mcp_servers.scripted import ScriptedMcp, reply, scripted, text
from support.optional import needs
from utools import ToolContext, ToolRegistry
from utools.sources.mcp.servers import McpServer, McpServers

pytestmark = needs("mcp")

TOKEN = "t0-of-the-office"
HIDDEN = "[redacted:OFFICE_TOKEN]"
Start = Callable[..., McpServers]


def telling(token: str) -> list[dict[str, Any]]:
    """Tools whose definitions hold the token wherever they can."""
    schema = {"type": "object", "properties": {"text": {"type": "string", "default": token}}, f"x-{token}": [token]}
    return [
        {"name": "echo", "description": f"Echoes as {token}.", "inputSchema": schema},
        {"name": "typed", "description": "Gives it back.", "inputSchema": schema, "outputSchema": schema},
        {"name": f"as-{token}", "description": "Its name tells.", "inputSchema": {"type": "object"}},
    ]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("OFFICE_TOKEN", TOKEN)
    made: list[McpServers] = []

    def start(**config: Any) -> McpServers:
        server = McpServer.model_validate(config)
        made.append(McpServers({"own": server}, lock=tmp_path / "lock.json", base=tmp_path, secret=lambda name: TOKEN))
        return made[-1]

    yield start
    for servers in made:
        servers.close()


async def test_a_definition_tells_no_secret_that_its_server_was_started_with(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(telling(TOKEN)))
    servers = start(command=[sys.executable, FAULTY, str(tmp_path)], env=["OFFICE_TOKEN"])
    tool, _ = servers.tools()
    assert tool.description == f"Echoes as {HIDDEN}."
    assert tool.config_schema["properties"]["text"]["default"] == HIDDEN
    assert f"x-{HIDDEN}" in tool.config_schema
    assert TOKEN not in f"{tool}{servers.offered(['own'])}{(tmp_path / 'lock.json').read_text()}{caplog.text}"
    assert f"as-{HIDDEN}" in caplog.text
    assert (await ToolRegistry([tool]).execute("mcp.own.echo", {"text": "hi"}, ToolContext(deadline_s=20))).success
    assert servers.review().changes == []


async def test_a_definition_tells_no_secret_that_its_server_was_sent(start: Start, tmp_path: Path) -> None:
    async def answer(server: ScriptedMcp, message: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, reply(message, text("done")), connection="close"))

    async with scripted(answer, tools=telling(TOKEN)) as server:
        servers = start(url=server.url, token_env="OFFICE_TOKEN", secret_headers={"X-Key": "OFFICE_TOKEN"})
        tool, _ = await asyncio.to_thread(servers.tools)
        assert (tool.description, TOKEN in (tmp_path / "lock.json").read_text()) == (f"Echoes as {HIDDEN}.", False)
        assert (await ToolRegistry([tool]).execute("mcp.own.echo", {}, ToolContext(deadline_s=20))).output == "done"
        await asyncio.to_thread(servers.close)
