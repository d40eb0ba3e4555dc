"""Callbacks: the caller of a run is told at the URL that it named, which can be none of an inner host."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from agent_core.errors import JournalAway
from engine_shim.host.notifications import CallbackConfig
from engine_shim.service.callbacks import CallbackSender
from engine_shim.service.deliveries import AT_ONCE, BACKOFF_S
from engine_shim.service.event_sender import Source
from engine_shim.service.run_view import RunView
from engine_shim.store.callbacks import HOOK, RunCallback, read_callback, save_callback
from engine_shim.store.copy import copy_runs
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import SqliteRunStore
from support.served_host import Served, served, write_host
from support.temporal_project import until
from support.webhook_receiver import Receiver, receiving

SECRET, KEY = "a secret of both", "the key of the links"
LOCAL = {"allowed_domains": ["127.0.0.1"], "allow_cidrs": ["127.0.0.1/32"], "secret_env": "CALLBACK_SECRET"}
LINKS = {"public_url": "https://agents.example.com", "secret_env": "LINK_KEY"}
TYPES = ["run.waiting", "run.completed"]


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLBACK_SECRET", SECRET)
    monkeypatch.setenv("LINK_KEY", KEY)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@contextmanager
def calling(folder: Path, **keys: Any) -> Iterator[Served]:
    write_host(folder, **{"callbacks": LOCAL, **keys})
    with served(folder, is_open=False) as host:
        yield host


def submit(host: Served, url: str, *scopes: str, key: str = "", article: str = "W-1", name: str = "n8n") -> Any:
    """What a start with a callback is answered."""
    headers = host.issue(name, *(scopes or ("run", "read"))) | ({"Idempotency-Key": key} if key else {})
    body = {"external": {"article": article}, "callback_url": url}
    return host.client.post("/workflows/buy/runs", params={"wait": False}, json=body, headers=headers)


def decide(host: Served, run: str) -> None:
    answer = host.client.post(f"/runs/{run}/decide", json={"decision": "approve"}, headers=host.issue("d", "decide"))
    assert answer.status_code == 200, answer.text


def told_to(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in receiver.received]


def test_caller_is_told_when_its_run_waits_and_ends_and_nobody_else_is(receiver: Receiver, tmp_path: Path) -> None:
    with calling(tmp_path) as host:
        run = submit(host, receiver.url).json()["run_id"]
        until(lambda: receiver.types == TYPES[:1], "it waits")
        host.client.post(
            "/workflows/count/runs", json={"external": {"sum": "1 + 1"}}, headers=host.issue("o", "run")
        ).raise_for_status()
        decide(host, run)
        until(lambda: receiver.types == TYPES, "it ends")
    signer = Webhook(SECRET.encode())
    for headers, body in receiver.received:
        assert signer.verify(body, headers)["data"]["run_id"] == run
    assert "link" not in told_to(receiver)[0]["data"]["waiting"][0]
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 2


@pytest.mark.exhaustive
def test_what_was_not_taken_is_sent_again_with_the_same_id(receiver: Receiver, tmp_path: Path) -> None:
    receiver.statuses[:] = [500]
    with calling(tmp_path) as host:
        submit(host, receiver.url)
        until(lambda: len(receiver.received) == 1, "the first attempt")
        with host.store.database.writing() as db:  # the time of the next attempt has come
            db.execute("UPDATE webhook_deliveries SET due = due - ? WHERE hook = ?", (BACKOFF_S[0], HOOK))
        until(lambda: len(receiver.received) == 2, "the second attempt")
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(("scopes", "has_links"), [(("run", "read"), False), (("run", "decide"), True)])
def test_links_go_to_callers_who_may_decide_alone(
    scopes: tuple[str, ...], has_links: bool, receiver: Receiver, tmp_path: Path
) -> None:
    with calling(tmp_path, callbacks={**LOCAL, "decision_links": True}, decision_links=LINKS) as host:
        submit(host, receiver.url, *scopes)
        until(lambda: receiver.types == TYPES[:1], "it waits")
        (call,) = told_to(receiver)[0]["data"]["waiting"]
        assert ("link" in call) == has_links
        if has_links:
            path = call["link"]["url"].removeprefix(LINKS["public_url"])
            assert host.client.post(path, json={"decision": "approve"}).status_code == 200
            until(lambda: receiver.types == TYPES, "it ends")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/hook",
        "https://127.0.0.1/hook",
        "http://169.254.169.254/latest/meta-data",
        "https://n8n.example.com.evil.example/hook",
        "https://evil.example/n8n.example.com",
        "https://n8n.example.com@evil.example/",
        "https://user:password@n8n.example.com/",
        "http://n8n.example.com/hook",
        "https://n8n.example.com:8443/hook",
        "https://[::1]/hook",
        "https://0x7f.1/",
        "ftp://n8n.example.com/",
        "file:///etc/passwd",
        "https://n8n.example.com/\r\nX: y",
        "//n8n.example.com/",
        "",
        "https://n8n.example.com/" + "a" * 5000,
    ],
)
def test_url_of_a_host_that_is_not_allowed_begins_nothing(url: str, hosts: Served) -> None:
    answer = submit(hosts, url)
    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (422, "body/callback_url"), answer.text
    assert hosts.client.get("/runs", headers=hosts.issue("r", "read")).json()["runs"] == []


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host that calls one public host alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALLBACK_SECRET", SECRET)
        config = {"allowed_domains": ["n8n.example.com"], "secret_env": "CALLBACK_SECRET"}
        with calling(tmp_path_factory.mktemp("host"), callbacks=config) as host:
            yield host


@pytest.mark.exhaustive
def test_name_that_leads_to_an_inner_host_is_not_called(receiver: Receiver, tmp_path: Path) -> None:
    """A host may be allowed by its name, and its name lead elsewhere: what is connected to counts."""
    port = receiver.url.rpartition(":")[2].partition("/")[0]
    config = {"allowed_domains": ["localhost"], "allowed_ports": [int(port)], "secret_env": "CALLBACK_SECRET"}
    with calling(tmp_path, callbacks=config) as host:
        submit(host, f"https://localhost:{port}/hook").raise_for_status()
        sender = host.service.tenants[None].senders[0]
        until(lambda: sender.outcomes["postponed"] == 1, "it is tried")
    assert receiver.received == []


@pytest.mark.exhaustive
def test_host_without_callbacks_takes_none(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        body = {"external": {"article": "W-1"}, "callback_url": "https://n8n.example.com/"}
        answer = host.client.post("/workflows/buy/runs", json=body)
        assert (answer.status_code, "`callbacks`" in answer.json()["detail"]) == (422, True)


@pytest.mark.exhaustive
def test_callbacks_of_a_host_are_none_of_its_tenants(receiver: Receiver, tmp_path: Path) -> None:
    with calling(tmp_path, tenants={"acme": {"workflows": "workflows"}}) as host:
        body = {"external": {"article": "W-1"}, "callback_url": receiver.url}
        headers = host.issue("a", "run", tenant="acme")
        assert host.client.post("/workflows/buy/runs", json=body, headers=headers).status_code == 422


@pytest.mark.exhaustive
def test_same_key_is_one_run_and_tells_whoever_waits_for_it_now(receiver: Receiver, tmp_path: Path) -> None:
    with calling(tmp_path) as host, receiving() as later:
        first = submit(host, receiver.url, key="order 17").json()["run_id"]
        assert submit(host, receiver.url, key="order 17").json()["run_id"] == first
        until(lambda: receiver.types == TYPES[:1], "it waits")
        again = submit(host, later.url, key="order 17")  # another execution, which has a URL of its own
        assert again.json()["run_id"] == first
        until(lambda: later.types == TYPES[:1], "the other one is told as well")
        decide(host, first)
        until(lambda: later.types == TYPES, "it ends")
        assert receiver.types == TYPES[:1]
        ids = [headers["webhook-id"] for found in (receiver, later) for headers, _ in found.received]
        assert ids[0] == ids[1]
        stranger = submit(host, receiver.url, key="order 17", name="somebody else")
        assert (stranger.status_code, stranger.json()["errors"][0]["where"]) == (422, "body/callback_url")
        other = submit(host, receiver.url, key="order 17", article="W-2")
        assert (other.status_code, other.json()["kind"]) == (422, "key_reused")


@pytest.mark.exhaustive
def test_callback_of_a_deleted_run_is_forgotten(receiver: Receiver, tmp_path: Path) -> None:
    with calling(tmp_path) as host:
        run = submit(host, receiver.url).json()["run_id"]
        until(lambda: receiver.types == TYPES[:1], "it waits")
        assert read_callback(host.store.contents, run) == RunCallback(receiver.url, False)
        host.store.forget(run)
        assert read_callback(host.store.contents, run) is None


@pytest.mark.exhaustive
def test_copied_run_tells_the_same_caller_of_what_is_to_come(receiver: Receiver, tmp_path: Path) -> None:
    with calling(tmp_path) as host:
        run = submit(host, receiver.url).json()["run_id"]
        until(lambda: receiver.types == TYPES[:1], "it waits")
        until(lambda: not host.store.leases.holder(run), "nobody drives it")
        target = SqliteRunStore(tmp_path / "copy.db")
        copy_runs(host.store, target)
        assert read_callback(target.contents, run) == read_callback(host.store.contents, run)
        assert target.database.rows("webhook_deliveries", "SELECT * FROM webhook_deliveries") == []
        target.close()


@pytest.mark.exhaustive
def test_log_names_no_url_of_a_callback(receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It may carry a secret of its own."""
    receiver.statuses[:] = [404]
    with calling(tmp_path) as host:
        submit(host, f"{receiver.url}?signature=abc")
        sender = host.service.tenants[None].senders[0]
        until(lambda: sender.outcomes["postponed"] == 1, "it is tried")
    told = [record.getMessage() for record in caplog.records if record.name == "engine_shim"]
    assert any("the callback answered 404" in line for line in told)
    assert not any("signature=abc" in line for line in told)


class Away(CallbackSender):
    """Its store cannot be reached."""

    def _collect(self) -> bool:
        raise JournalAway("the database is away")


async def test_a_store_that_is_away_is_told_as_that(tmp_path: Path) -> None:
    """A server counts it, and says so in a line; of anything else its log has a traceback."""
    source = Source(SqliteRunStore(tmp_path / "runs.db"), lambda run: RunView(run, "completed"), time.time)
    with pytest.raises(JournalAway, match="the database is away"):
        await Away(CallbackConfig.model_validate(LOCAL), "callbacks", source).run_forever()


async def test_receivers_that_hang_keep_nobody_else_from_being_told(receiver: Receiver, tmp_path: Path) -> None:
    """Also not those whose runs end while the others' receivers hang."""
    released = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    def end_run(number: int, url: str) -> None:
        save_callback(store.contents, f"r{number}", RunCallback(url, False))
        store.save(RunEntry(f"r{number}", "w", "1", "completed", "2026-01-01T00:00:00Z", ".", 3))

    store = SqliteRunStore(tmp_path / "runs.db")
    source = Source(store, lambda run: RunView(run, "completed"), time.time)
    sender = CallbackSender(CallbackConfig.model_validate(LOCAL), "callbacks", source, timeout=60)
    async with (
        asyncio.timeout(10),
        await asyncio.start_server(hang, "127.0.0.1", 0) as hanging,
        httpx2.AsyncClient() as client,
        asyncio.TaskGroup() as sending,
    ):
        for number in range(AT_ONCE):
            end_run(number, f"http://127.0.0.1:{hanging.sockets[0].getsockname()[1]}/hook")
        assert await sender.send_due(client, sending) == AT_ONCE
        end_run(AT_ONCE, receiver.url)
        assert await sender.send_due(client, sending) == 1
        while not receiver.received:
            await asyncio.sleep(0.01)
        released.set()
    assert told_to(receiver)[0]["data"]["run_id"] == f"r{AT_ONCE}"
