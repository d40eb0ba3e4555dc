"""The server over HTTP: by itself and beside the API, behind tokens, and how it ends."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.mcp_host import PATIENCE_S, McpHost, Person, serving, until, url_in, write_host
from support.optional import needs

pytestmark = [needs("mcp", "fastapi", "uvicorn"), pytest.mark.xdist_group("mcp_http"), pytest.mark.timeout(120)]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def host(tmp_path: Path) -> McpHost:
    write_host(tmp_path)
    return McpHost(tmp_path)


@pytest.fixture(scope="module", params=[("mcp", "--http"), ("serve",)], ids=" ".join)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpHost]:
    """A host that has tokens, each in the file of its name."""
    home = tmp_path_factory.mktemp("host")
    write_host(home)
    for name, scope in {"reader": "read", "runner": "run", "all": "admin"}.items():
        made = McpHost(home).command("token", "new", "--name", name, "--scope", scope)
        (home / name).write_text(next(word for word in made.split() if word.startswith("act_")))
    with serving(home, *request.param, "--port", "0") as (line, _):
        yield McpHost(home, url=url_in(line))


def url_of(host: McpHost) -> str:
    assert host.url is not None
    return host.url


@asynccontextmanager
async def connect(host: McpHost, token: str, mode: str = "auto", **options: Any) -> AsyncIterator[Any]:
    """The official client with a token."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(url_of(host), http_client=http), mode=mode, **options) as client,
    ):
        yield client


@pytest.mark.parametrize("last", [{"type": "http.disconnect"}, {"type": "http.request", "body": b"}"}])
async def test_client_that_hangs_up_within_its_request_is_no_mistake_of_the_server(last: dict[str, Any]) -> None:
    from engine_shim.mcp_server.http import WholeRequests

    bodies: list[bytes] = []
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, last])

    async def receive() -> Any:
        return next(messages)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        bodies.append((await receive())["body"])

    await WholeRequests(app)({"method": "POST"}, receive, None)
    assert bodies == ([b"{}"] if "body" in last else [])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_token_decides_what_its_bearer_may_do_and_is_named_in_records(served: McpHost, mode: str) -> None:
    from mcp.shared.exceptions import MCPError

    token = {name: (served.home / name).read_text() for name in ("reader", "runner", "all")}
    asked = Person("accept", {"decision": "approve"})
    async with connect(served, token["reader"], mode) as client:
        assert (await client.list_tools()).tools
        with pytest.raises(MCPError, match="lacks the scope run"):
            await client.call_tool("run_hello", {"who": "Ada"})
    async with connect(served, token["runner"], mode, elicitation_callback=asked) as client:
        waiting = await client.call_tool("run_order", {})
    assert (waiting.structured_content["status"], asked.asked) == ("waiting", [])
    async with connect(served, token["all"], mode, elicitation_callback=asked) as client:
        done = await client.call_tool("run_order", {})
    (decision,) = [each for each in served.records(done.structured_content["run_id"]) if each.get("decision")]
    assert decision["by"].startswith("all (")


async def test_without_a_token_nothing_is_served(served: McpHost) -> None:
    async with httpx2.AsyncClient(headers=ACCEPT) as http:
        for headers in ({}, {"Authorization": "Bearer act_1_2"}, {"Authorization": "Basic eDp5"}):
            answer = await http.post(url_of(served), json=PING, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_session_of_another_token_does_not_exist(served: McpHost) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    own, other = ({"Authorization": f"Bearer {(served.home / name).read_text()}"} for name in ("all", "reader"))
    async with httpx2.AsyncClient(headers=ACCEPT) as http:
        opened = await http.post(url_of(served), json=body, headers=own)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert (await http.post(url_of(served), json=PING, headers=own | session)).status_code == 200
        assert (await http.post(url_of(served), json=PING, headers=other | session)).status_code == 404


async def test_pages_of_an_allowed_origin_may_speak_with_the_server_alone(
    host: McpHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine_shim.cli.output import Options
    from engine_shim.cli.serving import mcp, serve

    apps: list[Any] = []
    monkeypatch.setattr(serve, "run_server", lambda app, *_: apps.append(app) or 0)
    options, origin = Options(host.home / "runs.db", host.home / "agent-core.yaml"), {"Origin": "https://desk.example"}
    mcp.serve_http("127.0.0.1", 0, (), tuple(origin.values()), None, options)
    transport = httpx2.ASGITransport(apps[0])
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-session-id"}
        preflight = await http.options("/mcp", headers=origin | asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, origin["Origin"])


async def test_other_hosts_and_origins_are_refused(served: McpHost) -> None:
    token = {"Authorization": f"Bearer {(served.home / 'all').read_text()}"}
    async with httpx2.AsyncClient(headers=ACCEPT | token) as http:
        assert (await http.post(url_of(served), json=PING, headers={"Host": "evil.example"})).status_code == 400
        assert (
            await http.post(url_of(served), json=PING, headers={"Origin": "https://evil.example"})
        ).status_code == 403


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "words", [("mcp", "--http"), pytest.param(("serve",), marks=pytest.mark.exhaustive)], ids=" ".join
)
def test_server_that_ends_answers_first_and_the_next_one_takes_up_the_run(
    host: McpHost, words: tuple[str, ...], mode: str
) -> None:
    async def call_until_the_end(url: str, process: Any) -> Any:
        async with McpHost(host.home, mode, url).connect() as client:
            await client.list_tools()
            call = asyncio.create_task(client.call_tool("run_hold", {}))
            await host.begun("hold")
            process.send_signal(signal.SIGTERM)
            return await call

    with serving(host.home, *words, "--port", "0") as (line, process):
        result = asyncio.run(call_until_the_end(url_in(line), process))
        assert (result.is_error, result.structured_content["status"]) == (False, "running")
        host.let_go("hold")
        process.wait(PATIENCE_S)
    run = result.structured_content["run_id"]
    with serving(host.home, *words, "--port", "0"):
        asyncio.run(until(lambda: host.command("runs").split()[:2] == [run, "completed"]))
