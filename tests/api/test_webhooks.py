"""Webhooks that tell of runs: signed, tried again, in the order of each run, by one of several servers."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from agent_core.errors import Damaged
from engine_shim.errors import DefinitionError
from engine_shim.host.config import read_host_config
from engine_shim.host.notifications import WebhookConfig
from engine_shim.service.deliveries import AT_ONCE, BACKOFF_S, COLLECTED
from engine_shim.service.event_sender import Source
from engine_shim.service.run_view import RunView
from engine_shim.service.webhooks import WebhookSender, open_senders
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import SqliteRunStore
from support.served_host import served, write_host
from support.webhook_receiver import Receiver, receiving

SECRET = "a secret of both"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


class Office:
    """A store whose runs change as a test says, and senders of one webhook with a clock of the test's own."""

    def __init__(self, folder: Path, url: str, **keys: Any) -> None:
        self.now = 1_800_000_000.0
        self.store = SqliteRunStore(folder / "runs.db")
        self.hook = WebhookConfig(url=url, secret_env="HOOK_SECRET", **keys)
        self.senders = [self.open() for _ in range(2)]

    def open(self) -> WebhookSender:
        source = Source(self.store, lambda run: self.view(run), lambda: self.now)
        sender = WebhookSender(self.hook, "webhooks/0", source, timeout=2)
        sender._deliveries.begin()
        return sender

    def view(self, run: str) -> RunView:
        entry = self.store.entry(run)
        assert entry is not None
        return RunView(run, entry.status, workflow=entry.workflow)

    def set(self, run: str, status: str, records: int, workflow: str = "w") -> None:
        self.store.save(RunEntry(run, workflow, "1", status, "2026-01-01T00:00:00Z", ".", records))

    def send(self, *, at: int = 0) -> int:
        async def send() -> int:
            async with httpx2.AsyncClient() as client, asyncio.TaskGroup() as sending:
                return await self.senders[at].send_due(client, sending)

        return asyncio.run(send())


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)


def test_run_that_waits_and_ends_is_told_of_and_signed(receiver: Receiver, tmp_path: Path) -> None:
    hook = {"url": receiver.url, "secret_env": "HOOK_SECRET"}
    with served(tmp_path, webhooks=[hook]) as host:
        run = host.submit("buy", article="W-1")["run_id"]
        _await(lambda: receiver.types == ["run.waiting"])
        host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
        _await(lambda: receiver.types == ["run.waiting", "run.completed"])
    signer = Webhook(SECRET.encode())
    for headers, body in receiver.received:
        told = signer.verify(body, headers)
        assert told["data"]["run_id"] == run
        with pytest.raises(WebhookVerificationError):
            signer.verify(body.replace(b"run.", b"ran."), headers)
    assert json.loads(receiver.received[0][1])["data"]["waiting"][0]["args"]["article"] == "W-1"
    assert json.loads(receiver.received[1][1])["data"]["outputs"] == {"order": "ordered 3 of W-1"}
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 2


@pytest.mark.exhaustive
def test_turn_with_an_agent_is_told_of_when_it_waits_and_ends(receiver: Receiver, tmp_path: Path) -> None:
    hook = {"url": receiver.url, "secret_env": "HOOK_SECRET"}
    with served(tmp_path, webhooks=[hook]) as host:
        turn = host.client.post("/agent/chat", json={"message": "Order three.", "agent": "buyer"}).json()
        _await(lambda: receiver.types == ["run.waiting"])
        host.client.post(f"/runs/{turn['trace_id']}/decide", json={"decision": "approve"})
        _await(lambda: receiver.types == ["run.waiting", "run.completed"])
    told = [json.loads(body)["data"] for _, body in receiver.received]
    assert {each["run_id"] for each in told} == {turn["trace_id"]}
    assert told[1]["agent"] == "buyer"


def _await(holds: Any) -> None:
    import time

    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.exhaustive
def test_what_was_not_taken_is_tried_again_later_and_in_the_order_of_the_run(
    receiver: Receiver, tmp_path: Path
) -> None:
    office = Office(tmp_path, receiver.url)
    receiver.statuses[:] = [500, 302]
    office.set("a", "waiting", 3)
    office.set("a", "completed", 5)
    office.set("b", "failed", 2)
    assert office.send() == 2  # of each run the first one
    assert sorted(receiver.types) == ["run.failed", "run.waiting"]
    assert office.send() == 0  # nothing is due, and a's end waits for its beginning
    office.now += BACKOFF_S[0]
    receiver.received.clear()
    while office.send():
        pass
    assert receiver.types.index("run.waiting") < receiver.types.index("run.completed")
    assert sorted(receiver.types) == ["run.completed", "run.failed", "run.waiting"]
    assert office.send() == 0


@pytest.mark.exhaustive
def test_what_nobody_ever_takes_is_given_up_and_lets_the_next_one_pass(receiver: Receiver, tmp_path: Path) -> None:
    office = Office(tmp_path, receiver.url)
    office.set("a", "waiting", 3)
    office.set("a", "completed", 5)
    receiver.statuses[:] = [500] * (len(BACKOFF_S) + 1)
    for delay in (0.0, *BACKOFF_S):
        office.now += delay
        assert office.send() == 1
    assert receiver.types == ["run.waiting"] * (len(BACKOFF_S) + 1)
    assert office.send() == 1
    assert receiver.types[-1] == "run.completed"
    assert office.senders[0].outcomes == {"delivered": 1, "postponed": len(BACKOFF_S), "given_up": 1}


@pytest.mark.exhaustive
def test_of_two_servers_one_tells_and_a_third_that_starts_later_goes_on(receiver: Receiver, tmp_path: Path) -> None:
    office = Office(tmp_path, receiver.url)
    for at in range(20):
        office.set(f"r{at}", "completed", 3)
    assert [office.send(at=0), office.send(at=1), office.send(at=0)] == [10, 10, 0]
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 20
    office.set("late", "completed", 3)
    office.senders = [office.open()]
    assert office.send() == 1


@pytest.mark.exhaustive
def test_new_webhook_is_not_told_of_the_past_nor_any_of_a_status_twice(receiver: Receiver, tmp_path: Path) -> None:
    SqliteRunStore(tmp_path / "runs.db").save(RunEntry("old", "w", "1", "completed", "2026-01-01T00:00:00Z", ".", 3))
    office = Office(tmp_path, receiver.url)
    assert office.send() == 0
    office.set("a", "waiting", 3)
    office.set("a", "running", 3)
    office.set("a", "waiting", 3)
    assert office.send() == 1
    office.set("a", "waiting", 7)  # another call of it
    assert office.send() == 1


def test_only_what_the_operator_wants_is_told(receiver: Receiver, tmp_path: Path) -> None:
    office = Office(tmp_path, receiver.url, statuses=["failed"], workflows=["order_*"])
    office.set("a", "completed", 3, "order_desk")
    office.set("b", "failed", 3, "other")
    office.set("c", "failed", 3, "order_desk")
    office.send()
    assert [json.loads(body)["data"]["run_id"] for _, body in receiver.received] == ["c"]


def test_event_behind_many_that_nobody_wants_is_told_at_the_next_look(receiver: Receiver, tmp_path: Path) -> None:
    office = Office(tmp_path, receiver.url, statuses=["failed"])
    for number in range(COLLECTED + 1):
        office.set(f"r{number}", "completed", 3)
    office.set("last", "failed", 3)
    assert office.send() == 1
    assert [json.loads(body)["data"]["run_id"] for _, body in receiver.received] == ["last"]


@pytest.mark.exhaustive
def test_webhook_that_answers_nothing_keeps_the_server_from_nothing(tmp_path: Path) -> None:
    hook = {"url": "http://127.0.0.1:9/nobody", "secret_env": "HOOK_SECRET"}
    with served(tmp_path, webhooks=[hook]) as host:
        assert host.submit("count", sum="1 + 1")["status"] == "completed"


def test_secret_that_is_not_set_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK_SECRET")
    hook = {"url": "http://127.0.0.1:9/", "secret_env": "HOOK_SECRET"}
    with pytest.raises(DefinitionError, match="HOOK_SECRET") as told, served(tmp_path, webhooks=[hook]):
        pass
    assert "webhooks/0/secret_env" in str(told.value)
    assert "HOOK_SECRET is not set: set it, or put HOOK_SECRET=… into .env" in str(told.value)


@contextmanager
def answering(*parts: bytes) -> Iterator[str]:
    """A server that answers by the parts, the last of them again and again; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = Event()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                for part in parts:
                    connection.sendall(part)
                while not over.wait(0.05):
                    connection.sendall(parts[-1])

        thread = Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"
        over.set()
        thread.join(10)


@pytest.mark.timeout(60)
@pytest.mark.exhaustive
def test_answer_that_never_ends_holds_nobody_up(tmp_path: Path) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n", b"X-More: yes\r\n") as url:
        office = Office(tmp_path, url)
        office.set("a", "completed", 3)
        assert office.send() == 1
        office.now += BACKOFF_S[0]
        assert [each.run for each in office.senders[0]._deliveries.claim()] == ["a"]


@pytest.mark.timeout(60)
def test_status_alone_counts_whatever_body_follows(tmp_path: Path) -> None:
    begin = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(begin, b"1\r\nx\r\n") as url:
        office = Office(tmp_path, url)
        office.set("a", "completed", 3)
        assert office.send() == 1
        office.now += BACKOFF_S[-1]
        assert office.send() == 0


def test_webhooks_of_one_url_are_told_of_what_each_of_them_wants(receiver: Receiver, tmp_path: Path) -> None:
    hooks = [{"url": receiver.url, "secret_env": "HOOK_SECRET", "workflows": [name]} for name in ("w", "v")]
    office = Office(tmp_path, receiver.url)
    source = Source(office.store, office.view, lambda: office.now)
    office.senders = open_senders(read_host_config(write_host(tmp_path, webhooks=hooks)), source)  # type: ignore[assignment]
    for sender in office.senders:
        sender._begin()
    office.set("a", "completed", 3)
    office.set("b", "failed", 3, "v")
    assert [office.send(at=at) for at in (0, 1)] == [1, 1]
    assert receiver.types == ["run.completed", "run.failed"]


def test_what_was_not_taken_waits_behind_what_is_told_for_the_first_time(tmp_path: Path) -> None:
    office = Office(tmp_path, "http://127.0.0.1:9/hook")
    deliveries = office.senders[0]._deliveries
    for number in range(AT_ONCE):
        office.set(f"r{number}", "completed", 3)
    office.senders[0]._collect()
    for delivery in deliveries.claim():
        deliveries.postpone(delivery)
    office.now += BACKOFF_S[0]
    office.set("new", "completed", 3)
    office.senders[0]._collect()
    assert next(iter(deliveries.claim())).run == "new"


def test_run_that_cannot_be_read_keeps_no_other_from_being_told(receiver: Receiver, tmp_path: Path) -> None:
    office = Office(tmp_path, receiver.url)
    view = office.view

    def fail(run: str) -> RunView:
        if run == "broken":
            raise Damaged("flow", 0, "it is no record")
        return view(run)

    office.view = fail  # type: ignore[method-assign]
    office.senders = [office.open()]
    office.set("broken", "completed", 3)
    office.set("b", "completed", 3)
    assert office.send() == 2
    assert [json.loads(body)["data"]["run_id"] for _, body in receiver.received] == ["b"]
    assert office.send() == 0


def test_log_of_a_failed_delivery_does_not_have_the_url(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    office = Office(tmp_path, "http://ann:pass@127.0.0.1:9/services/a-secret?token=b-secret")
    office.set("a", "completed", 3)
    assert office.send() == 1
    assert "the webhook to 127.0.0.1" in caplog.text
    assert not any(part in caplog.text for part in ("pass", "a-secret", "b-secret"))
