"""Who may ask what: tokens and scopes, hosts and origins, sizes and slow bodies."""

import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import Depends, FastAPI, HTTPException
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from engine_shim.api.app import create_router
from engine_shim.api.guard import Guard
from engine_shim.host.config import read_host_config
from engine_shim.service.service import Service
from engine_shim.service.tokens import Tokens
from engine_shim.store.database_sqlite import SqliteDatabase
from support.served_host import Served, served, write_host

ROUTES = [
    ("GET", "/workflows", "read"),
    ("GET", "/workflows/desk", "read"),
    ("GET", "/workflows/desk/source", "read"),
    ("PUT", "/workflows/desk", "admin"),
    ("POST", "/workflows/desk/runs", "run"),
    ("POST", "/drafts/check", "read"),
    ("POST", "/drafts/runs", "admin"),
    ("GET", "/runs", "read"),
    ("GET", "/runs/x", "read"),
    ("GET", "/runs/x/events", "read"),
    ("GET", "/runs/x/journal", "read"),
    ("GET", "/runs/x/verify", "read"),
    ("POST", "/runs/x/replay", "read"),
    ("POST", "/runs/x/decide", "decide"),
    ("POST", "/runs/x/links", "decide"),
    ("POST", "/runs/x/resume", "run"),
    ("POST", "/runs/x/pause", "run"),
    ("POST", "/runs/x/cancel", "run"),
    ("POST", "/runs/x/fork", "run"),
    ("POST", "/runs/x/messages", "run"),
    ("POST", "/runs/x/signals/s", "run"),
    ("GET", "/agents", "read"),
    ("POST", "/agent/chat", "run"),
    ("GET", "/agent/conversations", "read"),
    ("GET", "/agent/conversations/x", "read"),
    ("DELETE", "/agent/conversations/x", "run"),
    ("GET", "/tools", "read"),
    ("GET", "/tools/changes", "admin"),
    ("POST", "/tools/approve", "admin"),
    ("POST", "/tools/stock/execute", "admin"),
    ("GET", "/triggers", "read"),
    ("GET", "/v1/models", "read"),
    ("GET", "/v1/models/{model}", "read"),
    ("POST", "/v1/chat/completions", "run"),
    ("GET", "/report", "read"),
    ("GET", "/ledger/checkpoint", "read"),
    ("GET", "/ledger/tile/{path}", "read"),
    ("GET", "/metrics", "admin"),
]
SCOPES = ("read", "run", "decide", "admin")
BODIES = {"decide": {"decision": "approve"}, "messages": {"content": "x"}, "chat": {"message": "x"}}
BODIES["approve"] = {"digest": "x"}
BODIES["completions"] = {"model": "x", "messages": [{"role": "user", "content": "x"}]}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), is_open=False) as found:
        yield found


def ask(host: Served, method: str, path: str, headers: dict[str, str] | None = None) -> httpx2.Response:
    draft = {"text": "[", "format": "yaml"}
    known = draft if "drafts" in path else BODIES.get(path.rpartition("/")[2], {})
    body = draft if method == "PUT" else known if method == "POST" else None
    return host.client.request(method, path, json=body, headers=headers)


def test_every_route_is_in_the_table_of_this_test(host: Served) -> None:
    paths = host.client.get("/openapi.json").json()["paths"]
    found = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    table = {(method, _template(path)) for method, path, _ in ROUTES}
    signed = {("POST", "/triggers/{name}"), ("POST", "/tenants/{tenant}/triggers/{name}")}
    signed |= {("GET", "/decide/{token}"), ("POST", "/decide/{token}")}
    assert found - table == {("GET", "/health"), ("GET", "/me"), *signed}


def _template(path: str) -> str:
    """The path as the document has it: what follows these words is a name."""
    names = {
        "workflows": "{name}",
        "runs": "{run_id}",
        "conversations": "{conversation_id}",
        "tools": "{code}",
        "signals": "{name}",
    }
    words = path.split("/")
    if words[1] == "drafts" or words[-1] in ("changes", "approve"):
        return path
    return "/".join(names.get(before, word) for before, word in zip(["", *words], words, strict=False))


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_route_needs_its_scope_and_no_other_will_do(host: Served, method: str, path: str, scope: str) -> None:
    for given in SCOPES:
        answer = ask(host, method, path, host.issue(given, given))
        if given in (scope, "admin"):
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert answer.status_code == 403
            assert scope in answer.text


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
@pytest.mark.parametrize("shown", [None, "Bearer", "Bearer act_0_0", "Basic YTpi", "Bearer act_{id}_x", "act_{id}"])
@pytest.mark.sampled
def test_route_answers_nobody_without_a_token(
    host: Served, method: str, path: str, scope: str, shown: str | None
) -> None:
    identity = host.issue("known", scope)["Authorization"].split("_")[1]
    headers = {} if shown is None else {"Authorization": shown.replace("{id}", identity)}
    answer = ask(host, method, path, headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "agent-core" not in answer.text  # nothing of the host


def test_records_name_the_bearer_of_the_token(host: Served) -> None:
    ann, bob = host.issue("ann", "run", "read"), host.issue("bob", "decide")
    run = host.client.post("/workflows/buy/runs", json={"external": {"article": "T-1"}}, headers=ann).json()
    assert run["submitted_by"] == "ann"
    assert host.client.post(f"/runs/{run['run_id']}/decide", json={"decision": "approve"}, headers=bob).is_success
    records = [row.record() for rows in host.store.journal.load(run["run_id"]).values() for row in rows]
    assert [record["by"] for record in records if record["kind"] == "resolved"] == ["bob"]


def test_revoked_token_is_known_no_more(host: Served) -> None:
    header = host.issue("gone", "read")
    assert ask(host, "GET", "/runs", header).status_code == 200
    assert host.service.tokens.revoke(header["Authorization"].split("_")[1])
    assert ask(host, "GET", "/runs", header).status_code == 401


def test_token_is_stored_as_a_hash_and_expires(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    database = SqliteDatabase(tmp_path / "runs.db")
    tokens = Tokens(database, clock=lambda: now[0])
    assert not tokens.any_existed()
    text = tokens.issue("ci", ["read"], lifetime=timedelta(days=1))
    secret = text.split("_", 2)[2]
    assert secret.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    found = tokens.find(text)
    assert found is not None
    assert (found.name, found.scopes) == ("ci", frozenset({"read"}))
    now[0] += timedelta(days=1)
    assert tokens.find(text) is None


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "localhost.evil.example"}, {"Host": ""}, {"Host": "127.0.0.1.evil.example:80"}],
)
def test_request_for_another_host_is_refused(host: Served, headers: dict[str, str]) -> None:
    answer = host.client.get("/health", headers=headers)
    assert (answer.status_code, answer.json()["kind"]) == (400, "host")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", 403),
        ("null", 403),
        ("http://localhost.evil.example", 403),
        ("http://[", 403),
        ("http://localhost:3000", 200),
        ("http://127.0.0.1:1", 200),
    ],
)
def test_page_of_another_origin_is_refused(host: Served, origin: str, status: int) -> None:
    assert host.client.get("/health", headers={"Origin": origin}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: evil.example\r\nHost: localhost", 400),
        ("Host: localhost\r\nHost: evil.example", 400),
        ("Host: localhost\r\nOrigin: http://evil.example\r\nOrigin: http://localhost", 403),
    ],
)
def test_header_that_comes_twice_has_to_hold_both_times(host: Served, headers: str, status: int) -> None:
    port = urlsplit(host.url).port
    assert port is not None
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(f"GET /health HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        assert f" {status} ".encode() in connection.recv(1000)


def test_page_of_an_allowed_origin_may_call_and_read(tmp_path: Path) -> None:
    with served(tmp_path, origins=["https://desk.example"]) as host:
        asked = {"Origin": "https://desk.example", "Access-Control-Request-Method": "POST"}
        preflight = host.client.options("/workflows/desk/runs", headers=asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, asked["Origin"])
        answer = host.client.get("/runs", headers={"Origin": asked["Origin"]})
        assert answer.headers["access-control-allow-origin"] == asked["Origin"]
        exposed = answer.headers["access-control-expose-headers"]
        assert {"Retry-After", "Mcp-Session-Id"} <= {*exposed.split(", ")}
        large = host.client.post("/drafts/check", content=b"x" * 5_000_000, headers={"Origin": asked["Origin"]})
        assert (large.status_code, large.headers["access-control-allow-origin"]) == (413, asked["Origin"])
        assert host.client.get("/runs", headers={"Origin": "https://evil.example"}).status_code == 403


def test_body_that_is_too_large_is_refused_before_it_is_read(host: Served) -> None:
    header = host.issue("big", "admin")
    large = b'{"external": {"message": "' + b"x" * 5_000_000 + b'"}}'
    answer = host.client.post("/workflows/desk/runs", content=large, headers=header)
    assert (answer.status_code, answer.json()["kind"]) == (413, "too_large")

    def pieces() -> Iterator[bytes]:  # of which no length is told
        yield from (large[at : at + 65536] for at in range(0, len(large), 65536))

    headers = {**header, "content-type": "application/json"}
    assert host.client.post("/workflows/desk/runs", content=pieces(), headers=headers).status_code == 413


def test_client_that_sends_all_before_it_reads_hears_that_it_was_too_much(host: Served) -> None:
    port, size = urlsplit(host.url).port, 6_000_000
    assert port is not None
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        head = f"POST /workflows/desk/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode() + b"x" * size)
        assert b" 413 " in connection.recv(1000)


def test_body_that_never_ends_is_refused_in_time(host: Served) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async def never() -> Message:
        import asyncio

        return await asyncio.sleep(3600)  # type: ignore[return-value]

    async def send(message: Message) -> None:
        raise AssertionError(message)

    import asyncio

    scope = {"type": "http", "headers": [(b"host", b"localhost")]}
    with pytest.raises(Exception, match="408"):
        asyncio.run(Guard(app, body_seconds=0.01)(scope, never, send))


@pytest.mark.parametrize("told", [[(b"content-length", b"4")], []], ids=["told", "not told"])
async def test_body_may_be_as_large_as_the_limit(told: list[tuple[bytes, bytes]]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(await receive())

    async def receive() -> Message:
        return {"type": "http.request", "body": b"four"}

    async def send(message: Message) -> None:
        echoed.append(message["body"])

    echoed: list[bytes] = []
    await Guard(app, max_body=4)({"type": "http", "headers": [(b"host", b"localhost"), *told]}, receive, send)
    assert echoed == [b"four"]


@pytest.mark.parametrize(("host", "status"), [("[2001:db8::1]:8080", 200), ("[2001:db8::2]", 400), ("2001", 400)])
def test_an_ipv6_address_that_a_server_listens_at_is_a_name_of_it(host: str, status: int) -> None:
    app = FastAPI()
    app.add_middleware(Guard, hosts=["2001:DB8::1"])
    app.add_api_route("/", lambda: None)
    assert TestClient(app).get("/", headers={"host": host}).status_code == status


def test_header_that_no_http_allows_ends_the_connection_alone(host: Served) -> None:
    port = urlsplit(host.url).port
    assert port is not None
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"GET /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n")
        assert b" 400 " in connection.recv(1000)
    assert host.client.get("/health").status_code == 200


def test_white_space_around_a_header_is_none_of_it(host: Served) -> None:
    port = urlsplit(host.url).port
    assert port is not None
    header = host.issue("spaces", "read")["Authorization"].encode()
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"GET /runs HTTP/1.1\r\nHost: \tlocalhost \r\nAuthorization:  %b \t\r\n\r\n" % header)
        assert b" 200 " in connection.recv(1000)


def test_router_answers_the_same_within_another_program(host: Served) -> None:
    app = FastAPI()
    app.include_router(create_router(host.service), prefix="/agents-of-ours")
    header = host.issue("mounted", "read")

    async def get(path: str) -> Any:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://program") as client:
            return await client.get(path, headers=header)

    import asyncio

    answer = asyncio.run(get("/agents-of-ours/runs/nobody"))
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert asyncio.run(get("/agents-of-ours/workflows")).json()["workflows"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/runs"), ("POST", "/workflows/count/runs"), ("POST", "/v1/chat/completions")],
)
def test_router_whose_service_was_never_started_begins_nothing(tmp_path: Path, method: str, path: str) -> None:
    service = Service.of_host(read_host_config(write_host(tmp_path)), tmp_path / "runs.db", is_open=True)
    app = FastAPI()
    app.include_router(create_router(service))

    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://program") as client:
            body: Any = {
                "model": "agent/clerk",
                "messages": [{"role": "user", "content": "x"}],
                "external": {"sum": "1"},
            }
            return await client.request(method, path, json=body)

    import asyncio

    answer = asyncio.run(ask())
    assert answer.status_code == 503
    assert "service.running()" in answer.text
    assert service.tenants[None].store.entries() == []


def test_a_caller_is_told_who_he_is_and_what_he_may_do(host: Served) -> None:
    assert host.client.get("/me").status_code == 401
    reader = host.client.get("/me", headers=host.issue("watcher", "read")).json()
    assert (reader["name"], reader["scopes"], reader["is_open"]) == ("watcher", ["read"], False)
    assert host.client.get("/me", headers=host.issue("boss", "admin")).json()["scopes"] == list(SCOPES)


@pytest.mark.exhaustive
def test_routes_of_a_service_that_was_never_started_are_all_refused(tmp_path: Path) -> None:
    service = Service.of_host(read_host_config(write_host(tmp_path)), tmp_path / "runs.db", is_open=True)
    routes = [each for each in create_router(service).routes if isinstance(each, APIRoute)]

    app = FastAPI()
    app.include_router(create_router(service))

    async def ask(route: APIRoute) -> int:
        path = re.sub(r"\{[^}]*\}", "x", route.path)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://program") as client:
            return (await client.request(next(iter(route.methods)), path, json={})).status_code

    import asyncio

    assert len(routes) > 30
    assert {route.path: asyncio.run(ask(route)) for route in routes} == {route.path: 503 for route in routes}


def test_program_that_includes_the_router_may_check_callers_first(host: Served) -> None:
    async def refuse() -> None:
        raise HTTPException(418, "not today")

    async def ask(path: str) -> httpx2.Response:
        app = FastAPI()
        app.include_router(create_router(host.service), dependencies=[Depends(refuse)])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://program") as client:
            return await client.get(path, headers=host.issue("checked", "read"))

    import asyncio

    for path in ("/runs/nobody", "/workflows", "/v1/models"):
        answer = asyncio.run(ask(path))
        assert (answer.status_code, "not today" in answer.text) == (418, True)
