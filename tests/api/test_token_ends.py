"""Tokens that end, and a server that closes: at once, for streams too, whichever process has the store."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine_shim.service.tokens import Tokens
from engine_shim.store.copy import copy_runs
from engine_shim.store.database import Database
from engine_shim.store.open import open_store
from support.call_stores import POSTGRES
from support.optional import needs
from support.served_host import Served, served

pytestmark = pytest.mark.exhaustive
LONGEST = 30.0
"""Seconds after which a stream that goes on is a failure; five are promised, and a test machine may be slow."""


@pytest.fixture(params=["file", POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Where a store can be: a file, or a PostgreSQL."""
    return request.getfixturevalue("new_database")() if request.param == "postgres" else tmp_path / "own.db"


def other_process(store: Any) -> Database:
    """The store as another process has it."""
    return open_store(store).database


def read_to_end(host: Served, path: str, headers: dict[str, str], begun: Callable[[], None]) -> int:
    """Follow a stream until it ends, and how many lines it had; `begun` is called once it has."""
    lines = 0
    with host.client.stream("GET", path, headers=headers, timeout=LONGEST) as answer:
        assert answer.status_code == 200
        begun()
        for _ in answer.iter_lines():
            lines += 1
    return lines


def test_first_token_closes_a_running_server(store: Any, tmp_path: Path) -> None:
    with served(tmp_path / "host", store=store, closes_by_token=True) as host:
        run = host.submit("wait", wait=False, until="now")["run_id"]
        assert host.client.get("/me").json()["is_open"] is True
        issued: list[str] = []

        def close() -> None:
            issued.append(Tokens(other_process(store)).issue("first", ["read"]))
            assert host.client.get("/runs").status_code == 401

        read_to_end(host, f"/runs/{run}/events", {}, close)
        header = {"Authorization": f"Bearer {issued[0]}"}
        assert host.client.get("/me", headers=header).json()["is_open"] is False
        assert host.client.get("/runs", headers=header).status_code == 200
        (host.folder / "now").touch()


def test_store_whose_last_token_was_revoked_stays_closed(store: Any, tmp_path: Path) -> None:
    tokens = Tokens(other_process(store))
    identity = tokens.issue("only", ["admin"]).split("_")[1]
    assert tokens.revoke(identity)
    assert (tokens.all(), tokens.revoke(identity), tokens.any_existed()) == ([], False, True)
    with served(tmp_path / "host", store=store, closes_by_token=True) as host:
        assert host.client.get("/runs").status_code == 401


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_stream_ends_with_its_token(store: Any, tmp_path: Path, how: str) -> None:
    with served(tmp_path / "host", store=store, is_open=False) as host:
        lasting = host.issue("lasting", "admin")
        run = host.client.post(
            "/workflows/wait/runs?wait=false", json={"external": {"until": "now"}}, headers=lasting
        ).json()["run_id"]
        lifetime = timedelta(seconds=2) if how == "expired" else None
        text = host.service.tokens.issue("short", ["read"], None, lifetime)

        def end() -> None:
            if how == "revoked":
                assert Tokens(other_process(store)).revoke(text.split("_")[1])

        read_to_end(host, f"/runs/{run}/events", {"Authorization": f"Bearer {text}"}, end)
        assert host.client.get(f"/runs/{run}", headers=lasting).json()["status"] == "running"
        (host.folder / "now").touch()
        with host.client.stream("GET", f"/runs/{run}/events", headers=lasting, timeout=LONGEST) as answer:
            assert "finished" in "".join(answer.iter_lines())


def test_tokens_travel_with_the_store(store: Any, tmp_path: Path) -> None:
    source, target = open_store(tmp_path / "from.db"), open_store(store)
    tokens = Tokens(source.database)
    kept, gone = tokens.issue("kept", ["read"], "acme"), tokens.issue("gone", ["admin"])
    found = Tokens(target.database)
    copy_runs(source, target)
    assert {each.principal.name for each in found.all()} == {"kept", "gone"}
    assert tokens.revoke(gone.split("_")[1])
    copy_runs(source, target)
    principal = found.find(kept)
    assert principal is not None
    assert (principal.name, principal.tenant, found.find(gone)) == ("kept", "acme", None)
    assert [each.principal.name for each in found.all()] == ["kept"]


def test_run_or_decide_alone_sees_id_and_status(tmp_path: Path) -> None:
    with served(tmp_path, is_open=False) as host:
        owner, runner, boss = host.issue("owner", "admin"), host.issue("runner", "run"), host.issue("boss", "decide")

        def post(path: str, body: Any, headers: dict[str, str]) -> Any:
            answer = host.client.post(path, json=body, headers=headers)
            assert answer.is_success, answer.text
            return answer.json()

        def begin() -> str:
            return str(post("/workflows/buy/runs", {"external": {"article": "S-1"}}, owner)["run_id"])

        decided = post(f"/runs/{begin()}/decide", {"decision": "approve"}, boss)
        assert decided.keys() == {"run_id", "status"}
        at = {"strand": "flow/order.1", "n": 0}
        forked = post(f"/runs/{begin()}/fork", {"at": at, "repeat_writes": True}, runner)
        assert forked.keys() == {"run_id", "status"}
        own = post("/workflows/count/runs", {"external": {"sum": "1 + 1"}}, runner)
        assert own["outputs"]
        keyed = {**owner, "Idempotency-Key": "same"}
        post("/workflows/count/runs", {"external": {"sum": "1 + 1"}}, keyed)
        again = post("/workflows/count/runs", {"external": {"sum": "1 + 1"}}, {**runner, "Idempotency-Key": "same"})
        assert again.keys() == {"run_id", "status"}


def test_run_adds_messages_of_a_user_alone(tmp_path: Path) -> None:
    with served(tmp_path, is_open=False) as host:
        owner, runner = host.issue("owner", "admin"), host.issue("runner", "run")
        body = {"external": {"until": "go"}}
        run = host.client.post("/workflows/wait/runs?wait=false", json=body, headers=owner).json()["run_id"]
        host.await_file("go.begun")
        path = f"/runs/{run}/messages"
        for role, headers, status in (("user", runner, 200), ("assistant", runner, 403), ("assistant", owner, 200)):
            answer = host.client.post(path, json={"content": "x", "role": role}, headers=headers)
            assert answer.status_code == status, answer.text
        (host.folder / "go").touch()
        deadline = time.monotonic() + LONGEST
        while host.client.get(f"/runs/{run}", headers=owner).json()["status"] != "completed":
            assert time.monotonic() < deadline
            time.sleep(0.05)


@needs("mcp", extra="mcp")
def test_stream_of_mcp_ends_with_its_token(store: Any, tmp_path: Path) -> None:
    with served(tmp_path / "host", store=store, is_open=False, with_mcp=True) as host:
        text = host.service.tokens.issue("client", ["run"], None)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        headers = {"Authorization": f"Bearer {text}", "Accept": "application/json, text/event-stream"}
        answer = host.client.post("/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]

        def end() -> None:
            assert Tokens(other_process(store)).revoke(text.split("_")[1])

        read_to_end(host, "/mcp", headers, end)
        assert host.client.post("/mcp", json={**body, "id": 2}, headers=headers).status_code == 401
