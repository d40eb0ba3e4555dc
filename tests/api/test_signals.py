"""Runs that wait for a time or a signal, on a server: what a signal does, and who wakes a run whose time has come."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine_shim.store.run_store import SqliteRunStore
from support.served_host import Served, served, write_host

FLOWS: dict[str, Any] = {
    "pay": [
        {"id": "paid", "tool": "wait", "config": {"signal": "paid"}},
        {"tool": "echo", "config": {"text": "got {{nodes.paid.data}}"}},
    ],
    "later": [{"id": "later", "tool": "wait", "config": {"seconds": 5.2}}],
    "both": [
        {"id": "order", "tool": "order", "config": {"article": "lamp", "pieces": 1}, "approval": "always"},
        {"id": "paid", "tool": "wait", "config": {"signal": "paid"}},
    ],
}


def write_flows(folder: Path) -> None:
    write_host(folder)
    for name, nodes in FLOWS.items():
        edges = [] if name == "both" else [{"from": a["id"], "to": "echo"} for a in nodes[:-1]]
        flow = {"id": name, "nodes": nodes, "edges": edges}
        (folder / "workflows" / f"{name}.json").write_text(json.dumps(flow))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    write_flows(folder)
    with served(folder) as found:
        yield found


def begin(host: Served, workflow: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    answer = host.client.post(f"/workflows/{workflow}/runs", json={"external": {}}, headers=headers)
    found: dict[str, Any] = answer.json()
    return found


def test_run_waits_for_its_signal_and_goes_on_by_it(host: Served) -> None:
    run = begin(host, "pay")
    assert (run["status"], run["waiting"][0]["signal"]) == ("waiting", "paid")
    sent = host.client.post(f"/runs/{run['run_id']}/signals/paid", json={"data": {"amount": 5}})
    assert sent.status_code == 200
    ended = host.await_status(run["run_id"], "completed")
    assert ended["outputs"]["echo"] == 'got {"amount":5}'
    assert ended["outputs"]["paid"]["by"] == "local"


def test_signal_needs_no_body(host: Served) -> None:
    run = begin(host, "pay")["run_id"]
    assert host.client.post(f"/runs/{run}/signals/paid").status_code == 200
    assert host.await_status(run, "completed")["outputs"]["paid"]["data"] is None


def test_signal_that_no_node_waits_for_leaves_the_run_as_it_is(host: Served) -> None:
    run = begin(host, "pay")["run_id"]
    assert host.client.post(f"/runs/{run}/signals/other").json() == {"run_id": run, "status": "waiting"}


@pytest.mark.parametrize(
    ("run", "name", "body", "status"),
    [
        ("none", "paid", {}, 404),
        ("ended", "paid", {}, 409),
        ("waits", "a b", {}, 422),
        ("waits", "paid", {"date": 1}, 422),
        ("waits", "paid", [], 422),
    ],
)
def test_signal_that_cannot_be_is_refused(host: Served, run: str, name: str, body: Any, status: int) -> None:
    ids = {"none": "20260101-000000-00000000"}
    if run == "ended":
        ids[run] = host.client.post("/workflows/count/runs", json={"external": {"sum": "1"}}).json()["run_id"]
    elif run == "waits":
        ids[run] = begin(host, "pay")["run_id"]
    answer = host.client.post(f"/runs/{ids[run]}/signals/{name}", json=body)
    assert answer.status_code == status, answer.text


def test_decision_needs_no_place_beside_a_node_that_waits_for_a_signal(host: Served) -> None:
    run = begin(host, "both")
    assert sorted(each["reason"] for each in run["waiting"]) == ["awaiting_approval", "awaiting_event"]
    decided = host.client.post(f"/runs/{run['run_id']}/decide", json={"decision": "approve"}).json()
    assert [each["reason"] for each in decided["waiting"]] == ["awaiting_event"]
    again = host.client.post(f"/runs/{run['run_id']}/decide", json={"decision": "approve"})
    assert (again.status_code, "no call waits" in again.json()["detail"]) == (409, True)


def test_signal_needs_the_scope_run(tmp_path: Path) -> None:
    write_flows(tmp_path)
    with served(tmp_path, is_open=False) as host:
        ann, eve = host.issue("ann", "run", "read"), host.issue("eve", "read", "decide")
        run = begin(host, "pay", ann)["run_id"]
        assert host.client.post(f"/runs/{run}/signals/paid", headers=eve).status_code == 403
        assert host.client.post(f"/runs/{run}/signals/paid", headers=ann).status_code == 200


@pytest.mark.exhaustive
def test_server_wakes_a_run_whose_time_came_while_there_was_none(tmp_path: Path) -> None:
    write_flows(tmp_path)
    with served(tmp_path) as host:
        run = begin(host, "later")["run_id"]
        assert host.client.get(f"/runs/{run}").json()["status"] == "waiting"
    with closing(SqliteRunStore(tmp_path / "runs.db")) as store:
        assert store.list_due("", "2999") in ([run], [])  # that of its host alone
        due = store.due(run)
    assert due is not None
    with served(tmp_path) as host:
        ended = host.await_status(run, "completed")
    assert ended["outputs"]["later"]["until"] == due
    assert ended["outputs"]["later"]["at"] >= due
