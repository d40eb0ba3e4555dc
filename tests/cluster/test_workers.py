"""`agent-core serve` whose runs workers at Temporal drive, on one PostgreSQL, with a tenant."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")
pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

from standardwebhooks import Webhook

from engine_shim.store.open import open_store
from support.cluster import STEPS, Cluster, Host, Model, assert_proven, cluster, counting_model, settle_doubts
from support.optional import needs
from support.postgres_server import Postgres
from support.served_host import read_events
from support.temporal.fleet import Server

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("temporal"), needs("fastapi")]
SECRET = "a secret of the shop"
LONG_AGO = "2020-01-01T00:00:00+00:00"


class Office:
    """A cluster with workers: the hosts of the test, and what came before there was a Temporal server."""

    def __init__(self, made: Cluster, model: Model, server: Server) -> None:
        self.cluster, self.model, self.server = made, model, server
        self.acme = self._make_token("acme")
        self.own = self._make_token(None)
        self.host = self.serve()
        body = {"external": {"name": "early", "until": ""}}
        self.early, self.ended = (
            self.host.client.post("/workflows/look/runs", params={"wait": wait}, json=body) for wait in (False, True)
        )
        self.cancelled = self.host.client.post(f"/runs/{self.ended.json()['run_id']}/cancel")

    def _make_token(self, tenant: str | None) -> dict[str, str]:
        words = ["token", "new", "--name", tenant or "own", "--scope", "admin"]
        token = self.cluster.run_command(*words, *(["--tenant", tenant] if tenant else [])).strip()
        return {"Authorization": f"Bearer {token}"}

    def serve(self) -> Host:
        host = self.cluster.serve()
        host.client.headers.update(self.own)
        return host


@pytest.fixture(scope="module")
def office(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A host that was started, and given a run, before its Temporal server was there; then a worker came."""
    folder, store = tmp_path_factory.mktemp("office"), postgres.make_database()
    server = Server(tmp_path_factory.mktemp("temporal"))
    server.kill()
    keys: dict[str, Any] = {
        "engine": "temporal",
        "temporal": {"address": server.address, "queue": folder.name},
        "tenants": {"acme": {"workflows": "acme"}},
    }
    with pytest.MonkeyPatch.context() as patch, counting_model() as model:
        patch.setenv("SHOP_SECRET", SECRET)
        with cluster(folder, store, model=model, base_urls={model.url: "OPENAI_API_KEY"}, **keys) as made:
            made.write("triggers/yearly.yaml", trigger("yearly", cron="0 0 1 1 *"))
            made.write("triggers/called.yaml", trigger("called", webhook={"secret_env": "SHOP_SECRET"}))
            made.write("triggers/acme/yearly.yaml", trigger("acme-yearly", cron="0 0 1 1 *"))
            (folder / "acme").mkdir()
            (folder / "acme" / "look.json").write_text((folder / "workflows" / "look.json").read_text())
            for tenant in (None, "acme"):
                note_last_time(store, tenant, "yearly")
            office = Office(made, model, server)
            office.host.await_log("no Temporal server answers")
            server.start()
            made.start_worker()
            yield office
    server.kill()


def trigger(name: str, **source: Any) -> dict[str, Any]:
    return {"workflow": "look", "inputs": {"name": name, "until": ""}, **source}


def note_last_time(store: str, tenant: str | None, name: str) -> None:
    """Let a trigger have been dealt with long ago, so that it is due now."""
    with closing(open_store(store, tenant=tenant)) as opened, opened.database.writing() as db:
        db.execute("INSERT INTO trigger_times (name, at, run) VALUES (?, ?, NULL)", (name, LONG_AGO))


def test_run_that_came_before_the_temporal_server_is_kept_and_goes_on(office: Office) -> None:
    assert (office.early.status_code, office.early.json()["status"]) == (202, "pending")
    run = office.early.json()["run_id"]
    assert office.host.await_status(run, "completed")["outputs"]["said"] == "early"
    assert (office.cancelled.status_code, office.cancelled.json()["kind"]) == (503, "engine_away")
    assert office.host.await_status(office.ended.json()["run_id"], "cancelled")
    log = office.host.log.read_text()
    assert f"no Temporal server answers at {office.server.address}" in log
    assert "Traceback" not in log


def test_run_is_driven_by_a_worker_and_followed_at_the_host(office: Office) -> None:
    host = office.host
    run = host.submit("errand", wait=False, name="followed", steps=STEPS)["run_id"]
    events = host.events(run)
    assert events[-1]["status"] == "completed"
    assert Counter(event["event"] for event in events if event.get("tool") == "ship")["action"] == len(STEPS)
    assert host.events(run, after=events[3]["position"]) == events[4:]
    assert host.submit("count", sum="1 + 1")["outputs"] == {"calculator": 2}
    assert {pid for name, pid in office.cluster.begun("ship")}.isdisjoint({host.process.pid, os.getpid()})
    assert_proven(host, run)


def test_decision_is_taken_and_the_write_made_once(office: Office) -> None:
    run = office.host.submit("buy", article="A-9")["run_id"]
    decided = office.host.client.post(f"/runs/{run}/decide", json={"decision": "approve"}).json()
    assert (decided["status"], decided["outputs"]) == ("completed", {"order": "ordered 3 of A-9"})
    assert (office.cluster.folder / "orders.txt").read_text().count("A-9 3") == 1


def test_run_is_paused_told_something_resumed_and_another_cancelled(office: Office) -> None:
    host = office.host
    paused = host.submit("errand", wait=False, name="paused", steps=list(range(12)))["run_id"]
    cancelled = host.submit("look", wait=False, name="cancelled", until="never")["run_id"]
    office.cluster.await_begun("look", "paused-0", "cancelled")
    assert host.client.post(f"/runs/{paused}/pause").json()["status"] == "paused"
    assert host.client.post(f"/runs/{cancelled}/cancel").json()["status"] == "cancelled"
    told = host.client.post(f"/runs/{paused}/messages", json={"content": "hurry up"})
    assert told.status_code == 200, told.text
    assert host.client.post(f"/runs/{paused}/resume").json()["status"] == "completed"
    assert any("hurry up" in question for question in office.model.asked)
    for run in (paused, cancelled):
        assert_proven(host, run)


def test_key_is_one_run(office: Office) -> None:
    runs = {office.host.submit("look", key="once", name="keyed", until="")["run_id"] for _ in range(2)}
    assert len(runs) == 1
    assert [name for name, _ in office.cluster.begun("look")].count("keyed") == 1


def test_triggers_start_runs_of_the_host_and_of_a_tenant(office: Office) -> None:
    office.cluster.await_begun("look", "yearly", "acme-yearly")
    (due,) = [each for each in office.host.client.get("/triggers").json()["triggers"] if each["name"] == "yearly"]
    assert office.host.await_status(due["last_run"], "completed")["submitted_by"] == "trigger yearly"
    answers = [call_trigger(office.host.client) for _ in range(2)]
    assert {answer.status_code for answer in answers} == {202}, answers[0].text
    (run,) = {answer.json()["run_id"] for answer in answers}
    assert office.host.await_status(run, "completed")["outputs"]["said"] == "called"
    begun = Counter(name for name, _ in office.cluster.begun("look"))
    assert (begun["yearly"], begun["acme-yearly"], begun["called"]) == (1, 1, 1)


def call_trigger(client: httpx2.Client) -> httpx2.Response:
    now, body = datetime.now(UTC), json.dumps({"order": 17})
    signature = Webhook(SECRET.encode()).sign("call-1", now, body)
    headers = {
        "content-type": "application/json",
        "webhook-id": "call-1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
    }
    return client.post("/triggers/called", content=body, headers=headers)


def test_tenant_has_a_queue_and_runs_of_its_own(office: Office) -> None:
    client = office.host.client
    body = {"external": {"name": "acme-look", "until": ""}}
    run = client.post("/workflows/look/runs", json=body, headers=office.acme).json()
    assert (run["status"], run["submitted_by"]) == ("completed", "acme")
    assert client.get(f"/runs/{run['run_id']}").status_code == 404
    assert client.get(f"/runs/{run['run_id']}", headers=office.acme).status_code == 200
    assert client.post("/workflows/ship/runs", json=body, headers=office.acme).status_code == 404


def test_runs_go_on_while_no_host_is_there_and_the_next_one_has_them(office: Office) -> None:
    first = office.serve()
    run = first.submit("look", wait=False, name="alone", until="alone")["run_id"]
    waits = first.submit("buy", article="A-10")["run_id"]
    office.cluster.await_begun("look", "alone")
    first.kill()
    office.cluster.allow("alone")
    second = office.serve()
    assert second.await_status(run, "completed")["outputs"]["said"] == "alone"
    assert second.client.post(f"/runs/{waits}/decide", json={"decision": "approve"}).json()["status"] == "completed"
    with second.client.stream("GET", f"/runs/{run}/events") as answer:
        assert [event["event"] for event in read_events(answer.iter_lines())][-1] == "finished"
    assert second.end() == 0


def test_worker_that_is_killed_leaves_its_runs_to_another(office: Office) -> None:
    office.cluster.start_worker()
    runs = [
        office.host.submit("errand", wait=False, name=f"worked-{n}", steps=list(range(8)))["run_id"] for n in range(4)
    ]
    begun = office.cluster.await_call("ship", "worked-")
    os.kill(begun, signal.SIGKILL)
    for run in runs:
        assert settle_doubts(office.host, run)["status"] == "completed"
        assert_proven(office.host, run)
    shipped = Counter(name for name, _ in office.cluster.begun("ship") if name.startswith("worked"))
    assert set(shipped.values()) == {1}, shipped
