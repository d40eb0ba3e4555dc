"""The command serve as a process: how it starts, ends, is killed, and what the next one goes on with."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import typer
import uvicorn
from fastapi import FastAPI

from engine_shim.cli.output import Options
from engine_shim.cli.serving import serve
from engine_shim.cli.serving.serve import Connection, _listen, describe_served, open_service, write_base
from engine_shim.service.tokens import Tokens
from engine_shim.store.database_sqlite import SqliteDatabase
from support.optional import needs
from support.served_host import served, write_host
from support.served_process import serving


@needs("mcp")
def test_start_says_what_there_is_and_where_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "desk.yaml").write_text("{name: desk, model: 'openai:m'}")
    (tmp_path / "agent-core.yaml").write_text("{}")
    service = open_service("127.0.0.1", (), None, Options(tmp_path / "runs.db", tmp_path / "agent-core.yaml"))
    first, second = describe_served(write_base("127.0.0.1", 8080), service).splitlines()
    assert "  0 workflows, 1 agent; open to every program on this machine" in first
    assert second.endswith("/openapi.json, by MCP at http://127.0.0.1:8080/mcp")
    assert write_base("::1", 8080) == "http://[::1]:8080"


def submit(client: httpx2.Client, until: str) -> str:
    answer = client.post("/workflows/wait/runs?wait=false", json={"external": {"until": until}})
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["run_id"])


def await_file(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


def await_end(client: httpx2.Client, run: str) -> Any:
    deadline = time.monotonic() + 60
    while (found := client.get(f"/runs/{run}").json())["status"] in ("pending", "running"):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


@pytest.mark.exhaustive
def test_killed_server_loses_no_run_that_it_took(tmp_path: Path) -> None:
    write_host(tmp_path)
    with serving(tmp_path) as (process, client):
        runs = [submit(client, name) for name in ("a", "b", "c")]
        waiting = client.post("/workflows/buy/runs", json={"external": {"article": "K-1"}}).json()["run_id"]
        for name in ("a", "b", "c"):
            await_file(tmp_path / f"{name}.begun")
        process.send_signal(signal.SIGKILL)
        process.wait()
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    with serving(tmp_path) as (_, client):
        assert [await_end(client, run)["status"] for run in runs] == ["completed"] * 3
        assert client.get(f"/runs/{waiting}").json()["status"] == "waiting"
        assert all(client.get(f"/runs/{run}/verify").json()["ok"] for run in runs)
        assert client.post(f"/runs/{waiting}/decide", json={"decision": "approve"}).json()["status"] == "completed"
    assert (tmp_path / "orders.txt").read_text() == "K-1 3\n"


@pytest.mark.exhaustive
def test_server_that_is_told_to_end_lets_go_and_the_next_one_goes_on(tmp_path: Path) -> None:
    write_host(tmp_path)
    with serving(tmp_path) as (process, client):
        run = submit(client, "soon")
        await_file(tmp_path / "soon.begun")
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while (answer := _health(client)) == "ok":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert answer in ("ending", None)
        (tmp_path / "soon").touch()
        assert process.wait(30) == 0
    with serving(tmp_path) as (_, client):
        done = await_end(client, run)
        assert (done["status"], done["outputs"]["after"]) == ("completed", "soon")
        assert client.get(f"/runs/{run}/verify").json()["ok"]


def _health(client: httpx2.Client) -> str | None:
    try:
        return str(client.get("/health").json()["status"])
    except httpx2.TransportError:
        return None


@pytest.mark.exhaustive
def test_two_servers_on_one_store_drive_a_run_once(tmp_path: Path) -> None:
    write_host(tmp_path)
    with serving(tmp_path) as (_, first), serving(tmp_path) as (_, second):
        headers = {"Idempotency-Key": "one"}
        body = {"external": {"until": "two"}}
        runs = {
            client.post("/workflows/wait/runs?wait=false", json=body, headers=headers).json()["run_id"]
            for client in (first, second)
        }
        assert len(runs) == 1
        (tmp_path / "two").touch()
        run = runs.pop()
        assert await_end(second, run)["status"] == "completed"
        assert await_end(first, run)["journal"] == await_end(second, run)["journal"]


@pytest.mark.exhaustive
def test_connection_that_sends_no_request_is_closed_and_one_that_waits_for_an_answer_is_not(tmp_path: Path) -> None:
    class Impatient(Connection):
        head_seconds = 0.5

    with served(tmp_path, http=Impatient) as host:
        port = urlsplit(host.url).port
        halves = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(3)]
        whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        halves[1].sendall(b"GET /health HTTP/1.1\r\nHost: ")
        halves[2].sendall(whole)
        assert b'"ok"' in halves[2].recv(1000)
        halves[2].sendall(whole[:20])
        waiting = Thread(target=lambda: host.submit("wait", until="told"))
        waiting.start()
        for half in halves:
            with half:
                assert half.recv(1000) == b""
        (tmp_path / "told").touch()
        waiting.join(20)
        assert [entry.status for entry in host.store.entries()] == ["completed"]


@pytest.mark.exhaustive
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "no token"),
        (["--allow-host", "agents.example.com"], "no token"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--port", "99999"], "65535"),
    ],
)
def test_server_that_cannot_be_as_it_is_told_says_why(tmp_path: Path, options: list[str], told: str) -> None:
    write_host(tmp_path)
    program = "import sys; from engine_shim.cli.main import main; main(sys.argv[1:])"
    words = ["serve", "--store", "runs.db", *options]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (2, 3)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.exhaustive
def test_fault_of_a_workflow_or_a_directory_is_told_at_the_start(tmp_path: Path) -> None:
    write_host(tmp_path)
    (tmp_path / "workflows" / "bad.json").write_text(json.dumps({"id": "bad", "nodes": [{"tool": "ech"}]}))
    program = "from engine_shim.cli.main import main; main(['serve', '--store', 'runs.db'])"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "bad.json" in done.stderr
    assert "'ech'" in done.stderr


@pytest.mark.exhaustive
def test_name_in_the_links_of_a_host_is_one_that_others_call_it_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no open server answers them, and who has a link is answered without --allow-host."""
    monkeypatch.setenv("LINK_KEY", "the key of the links")
    write_host(tmp_path, decision_links={"public_url": "https://agents.example.com", "secret_env": "LINK_KEY"})
    options = Options(tmp_path / "runs.db", tmp_path / "agent-core.yaml")
    with pytest.raises(typer.BadParameter, match="no token"):
        open_service("127.0.0.1", (), None, options)
    Tokens(SqliteDatabase(tmp_path / "runs.db")).issue("n8n", ["run"])
    with serving(tmp_path) as (_, client):
        for host, status in (("agents.example.com", 404), ("127.0.0.1", 404), ("other.example.com", 400)):
            assert client.get("/decide/x", headers={"Host": host}).status_code == status


@pytest.mark.exhaustive
def test_server_with_tokens_asks_for_them(tmp_path: Path) -> None:
    write_host(tmp_path)
    store = ["--store", str(tmp_path / "runs.db")]
    program = "import sys; from engine_shim.cli.main import main; main(sys.argv[1:])"
    environment = {**os.environ, "AGENT_CORE_STORE": store[1]}
    made = subprocess.run(
        [sys.executable, "-c", program, "token", "new", "--name", "ann", "--scope", "run"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    with serving(tmp_path) as (_, client):
        assert client.get("/agents").status_code == 401
        header = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert client.get("/agents", headers=header).status_code == 403
        body = {"external": {"sum": "1 + 1"}}
        run = client.post("/workflows/count/runs", json=body, headers=header).json()
        assert (run["outputs"]["calculator"], run["submitted_by"]) == (2, "ann")


def test_what_to_choose_instead_is_the_port_or_the_address() -> None:
    with _listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(typer.BadParameter, match=rf"{port}: Address already in use; choose another port"):
            _listen("127.0.0.1", port)
    with pytest.raises(typer.BadParameter, match=r"choose an address of this machine by --host$"):
        _listen("192.0.2.1", 0)


def test_idle_connection_is_kept_for_longer_than_proxies_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[float] = []

    class Watched:
        def __init__(self, config: uvicorn.Config, service: Any) -> None:
            kept.append(config.timeout_keep_alive)

        def run(self, sockets: list[socket.socket]) -> None:
            sockets[0].close()

    monkeypatch.setattr(serve, "Server", Watched)
    service: Any = SimpleNamespace(grace=5)
    serve.run_server(FastAPI(), service, "127.0.0.1", 0, str)
    assert kept == [75]
