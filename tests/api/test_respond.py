"""`respond`: a caller who waits gets what a node of the workflow says, and the run goes on."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from engine_shim import load_workflow
from engine_shim.definition.validate import validate
from support.served_host import Served, served, write_host
from utools import default_registry
from utools.context.store_memory import MemoryContextStore

SECRET = "a secret of the host"
SAY = {"id": "said", "tool": "respond", "config": {"status": 202, "body": {"got": "{{external.name}}"}}}
LINGER = {"id": "linger", "tool": "linger", "config": {"until": "{{external.until}}"}, "timeout": 60}
INPUTS = {"properties": {"name": {"type": "string"}, "until": {"type": "string"}, "fails": {"type": "boolean"}}}
FLOWS: dict[str, Any] = {
    "says": {"nodes": [SAY, LINGER], "edges": [{"from": "said", "to": "linger"}]},
    "late": {"nodes": [LINGER, SAY], "edges": [{"from": "linger", "to": "said"}]},
    "plain": {"nodes": [{**SAY, "config": {"body": "{{external.name}}"}}]},
    "silent": {"nodes": [{**SAY, "config": {"status": 204, "body": {"got": "{{external.name}}"}}}]},
    "stops": {
        "nodes": [{"tool": "read_file", "config": {"path": "none.txt"}}, SAY],
        "edges": [{"from": "read_file", "to": "said"}],
    },
    "waits": {
        "nodes": [{"id": "stock", "tool": "stock", "approval": "always", "config": {"article": "A-17"}}, SAY],
        "edges": [{"from": "stock", "to": "said"}],
    },
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    write_host(folder)
    for name, keys in FLOWS.items():
        (folder / "workflows" / f"{name}.json").write_text(json.dumps({"id": name, "inputs": INPUTS, **keys}))
    (folder / "triggers").mkdir()
    trigger = {
        "workflow": "says",
        "webhook": {"secret_env": "HOOK"},
        "inputs": {"name": "{{external.name}}", "until": "x"},
    }
    (folder / "triggers" / "hook.json").write_text(json.dumps(trigger))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOK", SECRET)
        with served(folder) as found:
            yield found


def post(host: Served, workflow: str, **external: Any) -> httpx2.Response:
    return host.client.post(f"/workflows/{workflow}/runs", json={"external": external})


def run_of(answer: httpx2.Response) -> str:
    return answer.headers["location"].removeprefix("/runs/")


def test_caller_gets_the_response_while_the_run_goes_on(host: Served) -> None:
    answer = post(host, "says", name="Ann", until="first")
    assert (answer.status_code, answer.json()) == (202, {"got": "Ann"})
    assert host.client.get(f"/runs/{run_of(answer)}").json()["status"] == "running"
    (host.folder / "first").touch()
    ended = host.await_status(run_of(answer), "completed")
    assert ended["outputs"]["said"] == {"status": 202, "body": {"got": "Ann"}}


def test_response_that_comes_late_is_waited_for(host: Served) -> None:
    (host.folder / "second").touch()
    answer = post(host, "late", name="Bob", until="second")
    assert (answer.status_code, answer.json()) == (202, {"got": "Bob"})


def test_response_without_a_status_is_200_and_any_json(host: Served) -> None:
    answer = post(host, "plain", name="Cy")
    assert (answer.status_code, answer.json()) == (200, "Cy")


def test_status_without_a_body_comes_without_one(host: Served) -> None:
    answer = post(host, "silent", name="Ada")
    assert (answer.status_code, answer.content) == (204, b"")
    assert host.client.get(answer.headers["location"]).json()["status"] == "completed"


@pytest.mark.parametrize(("workflow", "status"), [("stops", "failed"), ("waits", "waiting")])
def test_run_that_ends_or_waits_before_its_response_is_answered_as_any_other(
    host: Served, workflow: str, status: str
) -> None:
    answer = post(host, workflow, name="Di")
    assert (answer.status_code, answer.json()["status"]) == (200, status)


def test_caller_who_does_not_wait_gets_the_run(host: Served) -> None:
    answer = host.client.post("/workflows/plain/runs", params={"wait": False}, json={"external": {"name": "Ed"}})
    assert answer.json()["run_id"] == run_of(answer)


def test_same_idempotency_key_gets_the_same_response(host: Served) -> None:
    headers = {"Idempotency-Key": "once"}
    answers = [
        host.client.post("/workflows/plain/runs", json={"external": {"name": "Flo"}}, headers=headers) for _ in range(2)
    ]
    assert [each.json() for each in answers] == ["Flo", "Flo"]
    assert run_of(answers[0]) == run_of(answers[1])


def test_caller_who_may_not_read_gets_the_response_of_their_own_run_alone(tmp_path: Path) -> None:
    write_host(tmp_path)
    (tmp_path / "workflows" / "plain.json").write_text(json.dumps({"id": "plain", "inputs": INPUTS, **FLOWS["plain"]}))
    with served(tmp_path, is_open=False) as host:
        ann, bob, cy = host.issue("ann", "run"), host.issue("bob", "run"), host.issue("cy", "run", "read")

        def ask(caller: dict[str, str]) -> Any:
            headers = {**caller, "Idempotency-Key": "of-ann"}
            return host.client.post("/workflows/plain/runs", json={"external": {"name": "Ann"}}, headers=headers).json()

        assert ask(ann) == "Ann"
        assert (ask(bob)["status"], sorted(ask(bob))) == ("completed", ["run_id", "status"])
        assert (ask(ann), ask(cy)) == ("Ann", "Ann")


def test_signed_webhook_gets_the_response(host: Served) -> None:
    content, now = json.dumps({"name": "Gil"}).encode(), datetime.now(UTC)
    headers = {
        "webhook-id": "w1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET.encode()).sign("w1", now, content.decode()),
        "content-type": "application/json",
    }
    answer = host.client.post("/triggers/hook", content=content, headers=headers)
    assert (answer.status_code, answer.json()) == (202, {"got": "Gil"})
    (host.folder / "x").touch()


def test_status_that_is_none_of_http_is_refused_before_a_run(tmp_path: Path) -> None:
    node = {"tool": "respond", "config": {"status": 99, "body": 1}}
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"id": "bad", "nodes": [node]}))
    found = validate(load_workflow(file), default_registry(context_store=MemoryContextStore()))
    assert [each.where for each in found] == ["nodes/0/config/status"]
