"""A server while its PostgreSQL says nothing: who wants nothing of the database is answered, and nothing is lost."""

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from engine_shim.service.link_token import LinkGrant, write_token
from support.bad_link import BadLink, bad_link
from support.postgres_server import Postgres
from support.served_host import Served, served
from support.temporal_project import until
from utools.databases.store_address import read_address

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres")]
ANSWERS = (200, 202, 409, 503)
LINK_KEY = "the key of the links"
LINKS = {"public_url": "https://agents.example.com", "secret_env": "LINK_KEY"}
CALLBACKS = {"allowed_domains": ["127.0.0.1"], "allow_cidrs": ["127.0.0.1/32"], "secret_env": "HOOK_SECRET"}
Ask = Callable[[httpx2.Client, str], httpx2.Response]
ROUTES: dict[str, Ask] = {
    "list": lambda client, run: client.get("/runs"),
    "search": lambda client, run: client.get("/runs", params={"text": "A-17"}),
    "show": lambda client, run: client.get(f"/runs/{run}"),
    "follow": lambda client, run: begin_to_follow(client, run),
    "export": lambda client, run: client.get(f"/runs/{run}/journal"),
    "verify": lambda client, run: client.get(f"/runs/{run}/verify"),
    "metrics": lambda client, run: client.get("/metrics"),
    "submit": lambda client, run: client.post("/workflows/count/runs", json={"external": {"sum": "1 + 1"}}),
    "submit with a key": lambda client, run: client.post(
        "/workflows/count/runs", json={"external": {"sum": "1 + 1"}}, headers={"Idempotency-Key": "k"}
    ),
    "decide": lambda client, run: client.post(f"/runs/{run}/decide", json={"decision": "approve"}),
    "pause": lambda client, run: client.post(f"/runs/{run}/pause"),
    "cancel": lambda client, run: client.post(f"/runs/{run}/cancel"),
    "tell": lambda client, run: client.post(f"/runs/{run}/messages", json={"content": "hurry"}),
    "fork": lambda client, run: client.post(f"/runs/{run}/fork", json={"at": {"strand": "flow/order.1", "n": 0}}),
    "execute a tool": lambda client, run: client.post("/tools/stock/execute", json={"args": {"article": "A-17"}}),
}

MORE_ROUTES: dict[str, Ask] = {
    "make a link": lambda client, run: client.post(f"/runs/{run}/links", json={}),
    "show a link": lambda client, run: client.get(f"/decide/{make_token(run)}"),
    "decide by a link": lambda client, run: client.post(f"/decide/{make_token(run)}", json={"decision": "approve"}),
    "submit with a callback": lambda client, run: client.post(
        "/workflows/count/runs", json={"external": {"sum": "1 + 1"}, "callback_url": "http://127.0.0.1:9/"}
    ),
    "replay": lambda client, run: client.post(f"/runs/{run}/replay"),
    "resume": lambda client, run: client.post(f"/runs/{run}/resume"),
    "send a signal": lambda client, run: client.post(f"/runs/{run}/signals/paid", json={}),
    "chat": lambda client, run: client.post("/agent/chat", json={"agent": "clerk", "message": "A-17?"}),
    "conversations": lambda client, run: client.get("/agent/conversations"),
    "complete": lambda client, run: client.post(
        "/v1/chat/completions", json={"model": "agent/clerk", "messages": [{"role": "user", "content": "A-17?"}]}
    ),
    "agents": lambda client, run: client.get("/agents"),
    "triggers": lambda client, run: client.get("/triggers"),
    "workflows": lambda client, run: client.get("/workflows"),
    "tools": lambda client, run: client.get("/tools"),
    "health": lambda client, run: client.get("/health"),
    "me": lambda client, run: client.get("/me"),
}


def make_token(run: str) -> str:
    return write_token(LinkGrant(run, "flow/order.1", 0, 2**33, "test"), LINK_KEY.encode())


def begin_to_follow(client: httpx2.Client, run: str) -> httpx2.Response:
    with client.stream("GET", f"/runs/{run}/events") as answer:
        next(answer.iter_bytes())
        return answer


@pytest.fixture
def link(postgres: Postgres) -> Iterator[BadLink]:
    with bad_link(postgres.port) as made:
        yield made


@pytest.fixture
def host(tmp_path: Path, new_database: Callable[[], str], postgres: Postgres, link: BadLink) -> Iterator[Served]:
    url = new_database().replace(f":{postgres.port}/", f":{link.port}/")
    webhooks = [{"url": "http://127.0.0.1:9/told", "secret_env": "HOOK_SECRET"}]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        patched.setenv("LINK_KEY", LINK_KEY)
        keys = {"webhooks": webhooks, "callbacks": CALLBACKS, "decision_links": LINKS}
        with served(tmp_path, store=read_address(url), **keys) as made:
            yield made


def test_server_answers_while_every_route_waits_for_the_database(host: Served, link: BadLink) -> None:
    run = host.submit("buy", article="A-17")["run_id"]
    with ThreadPoolExecutor(len(ROUTES)) as threads, httpx2.Client(base_url=host.url, timeout=60) as client:
        link.become("silent")
        asked = {name: threads.submit(ask, client, run) for name, ask in ROUTES.items()}
        for _ in range(50):
            assert host.client.get("/health").status_code == 200
            time.sleep(0.01)
        answered = [name for name, each in asked.items() if each.done()]
        assert not answered, "they wait for the database, and the event loop for nothing"
        link.become("pass")
        link.reset_all()
        answers = {name: each.result() for name, each in asked.items()}
    assert {name: each.status_code for name, each in answers.items() if each.status_code not in ANSWERS} == {}
    assert host.submit("count", sum="2 + 2")["status"] == "completed"


def test_no_route_waits_for_the_database_in_the_event_loop(host: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.event_loops import watch_event_loops

    run = host.submit("buy", article="A-17")["run_id"]
    in_loops = watch_event_loops(monkeypatch)
    with httpx2.Client(base_url=host.url, timeout=60) as client:
        for name, ask in {**MORE_ROUTES, **ROUTES}.items():
            in_loops.clear()
            answer = ask(client, run)
            assert answer.status_code < 500, (name, answer.text)
            assert in_loops == [], name


def test_server_answers_while_runs_that_it_drives_wait_for_the_database(host: Served, link: BadLink) -> None:
    names = [f"go-{n}" for n in range(20)]
    runs = [host.submit("wait", wait=False, until=name)["run_id"] for name in names]
    for name in names:
        host.await_file(f"{name}.begun")
    link.become("silent")
    for name in names:
        (host.folder / name).touch()
    for _ in range(50):
        assert host.client.get("/health").status_code == 200
        time.sleep(0.01)
    link.become("pass")
    link.reset_all()
    assert {host.await_status(run, "completed", "failed", seconds=60)["status"] for run in runs} == {"completed"}


def test_metrics_say_afterwards_that_the_database_was_away(host: Served, link: BadLink) -> None:
    def read_failures() -> float:
        (line,) = re.findall(r"^agent_core_store_failures_total\S+ (\S+)$", host.client.get("/metrics").text, re.M)
        return float(line)

    assert read_failures() == 0
    link.become("refuse")
    assert host.client.get("/metrics").status_code == 503
    until(lambda: host.service.store_failures > 0, "a part of the background work fails")
    link.become("pass")
    until(lambda: host.client.get("/metrics").status_code == 200, "the database is back")
    assert read_failures() > 0
