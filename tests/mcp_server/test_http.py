"""The server over HTTP: by itself and beside the API, behind tokens, and how it ends."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.mcp_host import PATIENCE_S, McpHost, Person, serving, url_in, write_host
from support.optional import needs

pytestmark = [needs("mcp", "fastapi", "uvicorn"), pytest.mark.timeout(120)]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def host(tmp_path: Path) -> McpHost:
    write_host(tmp_path)
    return McpHost(tmp_path)


@pytest.fixture(params=[("mcp", "--http"), ("serve",)], ids=" ".join)
def url(request: pytest.FixtureRequest, host: McpHost) -> Iterator[str]:
    """The endpoint of a host that has tokens."""
    for name, scopes in {"reader": ["read"], "runner": ["run"], "all": ["admin"]}.items():
        words = [word for scope in scopes for word in ("--scope", scope)]
        made = host.command("token", "new", "--name", name, *words)
        (host.home / name).write_text(next(word for word in made.split() if word.startswith("act_")))
    with serving(host.home, *request.param, "--port", "0") as (line, _):
        yield url_in(line)


@asynccontextmanager
async def connect(url: str, token: str, mode: str = "auto", **options: Any) -> AsyncIterator[Any]:
    """The official client with a token."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client:
            yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_token_decides_what_its_bearer_may_do_and_is_named_in_records(host: McpHost, url: str, mode: str) -> None:
    from mcp.shared.exceptions import MCPError

    token = {name: (host.home / name).read_text() for name in ("reader", "runner", "all")}
    asked = Person("accept", {"decision": "approve"})
    async with connect(url, token["reader"], mode) as client:
        assert (await client.list_tools()).tools
        with pytest.raises(MCPError, match="lacks the scope run"):
            await client.call_tool("run_hello", {"who": "Ada"})
    async with connect(url, token["runner"], mode, elicitation_callback=asked) as client:
        waiting = await client.call_tool("run_order", {})
    assert (waiting.structured_content["status"], asked.asked) == ("waiting", [])
    async with connect(url, token["all"], mode, elicitation_callback=asked) as client:
        done = await client.call_tool("run_order", {})
    (decision,) = [each for each in host.records(done.structured_content["run_id"]) if each.get("decision")]
    assert decision["by"].startswith("all (")


async def test_without_a_token_nothing_is_served(host: McpHost, url: str) -> None:
    async with httpx2.AsyncClient(headers=ACCEPT) as http:
        for headers in ({}, {"Authorization": "Bearer act_1_2"}, {"Authorization": "Basic eDp5"}):
            answer = await http.post(url, json=PING, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_session_of_another_token_does_not_exist(host: McpHost, url: str) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    own, other = ({"Authorization": f"Bearer {(host.home / name).read_text()}"} for name in ("all", "reader"))
    async with httpx2.AsyncClient(headers=ACCEPT) as http:
        opened = await http.post(url, json=body, headers=own)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert (await http.post(url, json=PING, headers=own | session)).status_code == 200
        assert (await http.post(url, json=PING, headers=other | session)).status_code == 404


async def test_other_hosts_and_origins_are_refused(host: McpHost, url: str) -> None:
    token = {"Authorization": f"Bearer {(host.home / 'all').read_text()}"}
    async with httpx2.AsyncClient(headers=ACCEPT | token) as http:
        assert (await http.post(url, json=PING, headers={"Host": "evil.example"})).status_code == 400
        assert (await http.post(url, json=PING, headers={"Origin": "https://evil.example"})).status_code == 403


@pytest.mark.parametrize("words", [("mcp", "--http"), ("serve",)], ids=" ".join)
def test_server_ends_soon_though_clients_are_connected_and_call(host: McpHost, words: tuple[str, ...]) -> None:
    async def call_and_end(url: str, process: Any) -> None:
        with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever a client makes of a server that ends
            async with asyncio.timeout(PATIENCE_S), McpHost(host.home, "legacy", url).connect() as client:
                call = asyncio.create_task(client.call_tool("run_hold", {}))
                await host.begun("hold")
                process.send_signal(signal.SIGTERM)
                await call

    with serving(host.home, *words, "--port", "0") as (line, process):
        since = time.monotonic()
        asyncio.run(call_and_end(url_in(line), process))
        host.let_go("hold")
        assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
        assert time.monotonic() - since < 25
    assert host.command("runs").split()[1] in ("pending", "running", "completed")
