"""Runs over HTTP: handed in, waited for, listed, decided, stopped, forked, verified."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import httpx2
import pytest

from agent_core.audit.verify import verify
from engine_shim.runs.conversations import AGENT_STRAND
from support.served_host import Served, served

ASKED = [{"role": "user", "content": "How many?"}]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host")) as found:
        yield found


def fault_of(answer: httpx2.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


def test_workflows_are_listed_by_version_and_shown_by_name(host: Served) -> None:
    listed = host.client.get("/workflows").json()["workflows"]
    desks = [(each["id"], each["version"]) for each in listed if each["id"] == "desk"]
    assert desks == [("desk", "2"), ("desk", "1")]
    assert [each["description"] for each in listed if each["id"] == "buy"] == [""]
    assert host.client.get("/workflows/desk").json()["version"] == "2"
    assert host.client.get("/workflows/desk@1").json()["definition"]["nodes"][0]["tool"] == "agent_core"
    problem = fault_of(host.client.get("/workflows/desk@3"), 404)
    assert problem["kind"] == "not_found"
    assert "desk@2" in problem["detail"]


def test_submitted_run_is_waited_for_and_has_its_outputs(host: Served) -> None:
    run = host.submit("desk", message="How many?")
    assert (run["status"], run["version"], run["error"]) == ("completed", "2", None)
    assert run["outputs"]["agent_core"]["final_answer"] == "There are 12."
    assert run["submitted_by"] == "local"
    assert host.client.get(f"/runs/{run['run_id']}").json() == run


def test_older_version_stays_callable(host: Served) -> None:
    run = host.submit("desk@1", message="How many?")
    assert (run["version"], run["path"]) == ("1", ["agent_core"])


def test_run_that_is_not_waited_for_answers_at_once(host: Served) -> None:
    run = host.submit("wait", wait=False, until="later")
    assert run["status"] in ("pending", "running")
    host.await_file("later.begun")
    assert host.client.get(f"/runs/{run['run_id']}").json()["status"] == "running"
    (host.folder / "later").touch()
    assert host.await_status(run["run_id"], "completed")["outputs"]["after"] == "later"


def test_failed_run_says_where_and_why(host: Served) -> None:
    run = host.submit("count", sum="1 / 0")
    assert run["status"] == "failed"
    assert run["error"] == {
        "kind": "tool_error",
        "message": 'division by zero; read was "1 / 0"',
        "where": "calculator",
    }


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"external": {}}, "body/external/message"),
        ({"external": {"message": 3}}, "body/external/message"),
        ({"external": []}, "body/external"),
        ({"externals": {}}, "body/externals"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_at_their_field(host: Served, body: Any, where: str) -> None:
    before, submitters = len(host.client.get("/runs?limit=1000").json()["runs"]), count_submitters(host)
    problem = fault_of(host.client.post("/workflows/desk/runs", json=body), 422)
    assert [fault["where"] for fault in problem["errors"]] == [where]
    assert problem["detail"].startswith(f"{where}: ")
    assert len(host.client.get("/runs?limit=1000").json()["runs"]) == before
    assert count_submitters(host) == submitters


def count_submitters(host: Served) -> int:
    found = host.store.database.rows("run_submissions", "SELECT count(*) FROM run_submissions")
    return int(found[0][0]) if found else 0


@pytest.mark.parametrize(
    ("content", "status"), [(b"", 422), (b"{", 422), (b'{"external": NaN}', 422), (b"\xff", 422), (b'"text"', 422)]
)
def test_body_that_is_not_of_the_form_is_a_problem(host: Served, content: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    assert fault_of(host.client.post("/workflows/desk/runs", content=content, headers=headers), status)["detail"]


def test_same_key_is_the_same_run_and_of_other_inputs_a_problem(host: Served) -> None:
    def submit(message: str) -> httpx2.Response:
        body = {"external": {"message": message}}
        return host.client.post("/workflows/desk/runs", json=body, headers={"Idempotency-Key": "order 17"})

    first, second = submit("a"), submit("a")
    assert first.json() == second.json()
    assert fault_of(submit("b"), 422)["kind"] == "key_reused"


def test_same_key_is_the_same_run_though_a_newer_version_came_in_between(host: Served) -> None:
    file = host.folder / "workflows" / "moved.json"

    def submit(text: str, version: str) -> Any:
        nodes = [{"tool": "echo", "config": {"text": text}}]
        file.write_text(f'{{"id": "moved", "version": "{version}", "nodes": {json.dumps(nodes)}}}')
        return host.client.post("/workflows/moved/runs", json={}, headers={"Idempotency-Key": "m"}).json()

    first, second = submit("old", "1"), submit("new text", "2")
    assert (first["outputs"]["echo"], first) == ("old", second)
    file.unlink()


def test_same_key_at_the_same_moment_is_one_run(host: Served) -> None:
    answers: list[Any] = []

    def submit() -> None:
        body, headers = {"external": {"until": "both"}}, {"Idempotency-Key": "both"}
        answers.append(httpx2.post(f"{host.url}/workflows/wait/runs", json=body, headers=headers, timeout=30).json())

    threads = [Thread(target=submit) for _ in range(5)]
    for thread in threads:
        thread.start()
    host.await_file("both.begun")
    other = {"external": {"until": "neither"}}
    answer = host.client.post("/workflows/wait/runs", json=other, headers={"Idempotency-Key": "both"})
    assert fault_of(answer, 422)["kind"] == "key_reused"  # while the run goes on
    (host.folder / "both").touch()
    for thread in threads:
        thread.join(30)
    assert {answer["status"] for answer in answers} == {"completed"}
    assert len({answer["run_id"] for answer in answers}) == 1


def test_runs_are_listed_by_status_workflow_and_time(host: Served) -> None:
    run = host.submit("count", sum="2 / 0")["run_id"]
    listed = host.client.get("/runs", params={"status": "failed", "workflow": "count"}).json()["runs"]
    about = {"run_id": run, "workflow": "count", "version": "1", "status": "failed", **_begun(listed[0])}
    assert listed[0].items() >= about.items()
    assert host.client.get("/runs", params={"since": "2999-01-01T00:00:00Z"}).json() == {"runs": [], "next": None}
    assert len(host.client.get("/runs?limit=1").json()["runs"]) == 1
    assert fault_of(host.client.get("/runs?since=2026-01-01T00:00:00"), 422)["errors"][0]["where"] == "query/since"
    assert fault_of(host.client.get("/runs?status=done"), 422)["errors"][0]["where"] == "query/status/0"
    assert fault_of(host.client.get("/runs?limit=0"), 422)["errors"][0]["where"] == "query/limit"


def _begun(entry: dict[str, Any]) -> dict[str, Any]:
    return {"started_at": entry["started_at"]}


def test_waiting_call_is_approved_and_the_journal_says_by_whom(host: Served) -> None:
    run = host.submit("buy", article="B-1")
    assert run["status"] == "waiting"
    assert run["waiting"][0]["args"] == {"article": "B-1", "pieces": 3}
    done = host.client.post(f"/runs/{run['run_id']}/decide", json={"decision": "approve"}).json()
    assert (done["status"], done["outputs"]["order"]) == ("completed", "ordered 3 of B-1")
    tape = host.store.journal.load(run["run_id"])
    resolved = [row.record() for rows in tape.values() for row in rows if row.record()["kind"] == "resolved"]
    assert [record["by"] for record in resolved] == ["local"]


def test_call_is_edited_and_denied(host: Served) -> None:
    run = host.submit("buy", article="B-2")["run_id"]
    args = {"article": "B-2", "pieces": 5}
    assert host.client.post(f"/runs/{run}/decide", json={"decision": "edit", "args": args}).json()["outputs"] == {
        "order": "ordered 5 of B-2"
    }
    run = host.submit("buy", article="B-3")["run_id"]
    denied = host.client.post(f"/runs/{run}/decide", json={"decision": "deny", "message": "Enough"}).json()
    assert denied["status"] == "failed"
    assert "Enough" in denied["error"]["message"]
    assert "B-3" not in (host.folder / "orders.txt").read_text()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"decision": "approve", "at": {"strand": "flow/order.1", "n": 7}}, 409),
        ({"decision": "edit", "args": {"article": 3, "pieces": 1}}, 409),
        ({"decision": "edit"}, 422),
        ({"decision": "approve", "args": {}}, 422),
        ({"decision": "approve", "message": "x"}, 422),
        ({"decision": "perhaps"}, 422),
        ({"decision": "approve", "at": {"strand": "", "n": 0}}, 422),
        ({"decision": "retry"}, 409),
    ],
)
def test_decision_that_does_not_fit_leaves_the_call_waiting(host: Served, body: Any, status: int) -> None:
    run = host.submit("buy", article="B-4")["run_id"]
    fault_of(host.client.post(f"/runs/{run}/decide", json=body), status)
    assert host.client.get(f"/runs/{run}").json()["status"] == "waiting"


def test_of_two_who_decide_at_once_one_is_told_that_it_is_done(host: Served) -> None:
    run = host.submit("buy", article="B-5")["run_id"]
    place = {"strand": "flow/order.1", "n": 0}
    first = host.client.post(f"/runs/{run}/decide", json={"decision": "approve", "at": place})
    second = host.client.post(f"/runs/{run}/decide", json={"decision": "deny", "at": place})
    assert (first.status_code, second.status_code) == (200, 409)
    assert (host.folder / "orders.txt").read_text().count("B-5") == 1


def test_paused_run_begins_nothing_until_it_is_resumed(host: Served) -> None:
    run = host.submit("wait", wait=False, until="pause")["run_id"]
    host.await_file("pause.begun")
    pausing = Thread(target=lambda: httpx2.post(f"{host.url}/runs/{run}/pause", timeout=30))
    pausing.start()
    while "control" not in host.store.journal.load(run):
        pausing.join(0.01)
    (host.folder / "pause").touch()
    pausing.join(30)
    paused = host.await_status(run, "paused")
    assert "after" not in paused["outputs"]
    assert host.client.post(f"/runs/{run}/resume").json()["status"] == "completed"
    assert fault_of(host.client.post(f"/runs/{run}/pause"), 409)["kind"] == "decision"


def test_cancelled_run_ends_while_its_call_is_under_way(host: Served) -> None:
    run = host.submit("wait", wait=False, until="never")["run_id"]
    host.await_file("never.begun")
    assert host.client.post(f"/runs/{run}/cancel").json() == {"run_id": run, "status": "cancelled"}
    assert "after" not in host.client.get(f"/runs/{run}").json()["outputs"]


def test_message_reaches_the_run_and_only_a_run_that_goes_on(host: Served) -> None:
    run = host.submit("wait", wait=False, until="message")["run_id"]
    host.await_file("message.begun")
    assert host.client.post(f"/runs/{run}/messages", json={"content": "Hurry."}).json()["status"] == "running"
    (host.folder / "message").touch()
    host.await_status(run, "completed")
    records = [row.record() for row in host.store.journal.load(run)["control"]]
    assert [(record["content"], record["by"]) for record in records] == [("Hurry.", "local")]
    assert fault_of(host.client.post(f"/runs/{run}/messages", json={"content": "Late."}), 409)["kind"] == "decision"


def test_fork_begins_anew_at_a_record(host: Served) -> None:
    run = host.submit("desk", message="How many?")["run_id"]
    forked = host.client.post(f"/runs/{run}/fork", json={"at": {"strand": "flow/end.1", "n": 0}}).json()
    assert forked["status"] == "completed"
    assert forked["run_id"] != run
    fault_of(host.client.post(f"/runs/{run}/fork", json={"at": {"strand": "flow/nowhere.1", "n": 0}}), 422)


def test_fork_that_would_repeat_a_write_is_refused_until_it_is_said(host: Served) -> None:
    run = host.submit("buy", article="B-6")["run_id"]
    host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
    at = {"strand": "flow/order.1", "n": 0}
    assert fault_of(host.client.post(f"/runs/{run}/fork", json={"at": at}), 409)["kind"] == "writes_repeated"
    again = host.client.post(f"/runs/{run}/fork", json={"at": at, "repeat_writes": True}).json()
    assert again["status"] == "waiting"


def test_run_is_verified_and_exported_as_a_journal_that_verifies(host: Served, tmp_path: Path) -> None:
    run = host.submit("desk", message="How many?")["run_id"]
    verdict = host.client.get(f"/runs/{run}/verify").json()
    assert (verdict["ok"], verdict["complete"], verdict["seal"]) == (True, True, "not sealed")
    file = tmp_path / "run.jsonl"
    file.write_bytes(host.client.get(f"/runs/{run}/journal").content)
    found = verify(file)
    assert (found.ok, found.head, found.count) == (True, verdict["head"], verdict["count"])


@pytest.mark.parametrize("route", ["", "/events", "/verify", "/journal"])
def test_unknown_run_is_not_found(host: Served, route: str) -> None:
    assert fault_of(host.client.get(f"/runs/nobody{route}"), 404)["kind"] == "not_found"


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("pause", None),
        ("resume", None),
        ("cancel", None),
        ("fork", {}),
        ("decide", {"decision": "approve"}),
        ("messages", {"content": "x"}),
    ],
)
def test_unknown_run_cannot_be_steered(host: Served, route: str, body: Any) -> None:
    assert fault_of(host.client.post(f"/runs/nobody/{route}", json=body), 404)["kind"] == "not_found"


def test_changed_directory_is_taken_up_and_a_fault_in_it_is_not(host: Served) -> None:
    file = host.folder / "workflows" / "new.json"
    file.write_text('{"id": "new", "nodes": [{"tool": "echo", "config": {"text": "new"}}]}')
    assert host.submit("new")["outputs"]["echo"] == "new"
    file.write_text('{"id": "new", "nodes": [{"tool": "ech", "config": {"text": "broken"}}]}')
    assert host.submit("new")["outputs"]["echo"] == "new"
    other = file.with_name("other.json")
    other.write_text('{"id": "other", "nodes": [{"tool": "echo", "config": {"text": "other"}}]}')
    told = fault_of(host.client.post("/workflows/other/runs", json={}), 404)["detail"]
    assert re.search(
        r"not in use before these faults are mended: new\.json:1: nodes/0 \(ech\)/tool: no tool is called 'ech'", told
    )
    file.unlink()
    assert "faults" not in fault_of(host.client.post("/workflows/new/runs", json={}), 404)["detail"]
    assert host.submit("other")["outputs"]["echo"] == "other"
    other.unlink()


def test_tool_is_executed_by_itself_as_a_recorded_run(host: Served) -> None:
    done = host.client.post("/tools/stock/execute", json={"args": {"article": "A-1"}}).json()
    assert (done["success"], done["output"]) == (True, {"article": "A-1", "pieces": 12})
    assert host.client.get(f"/runs/{done['run_id']}/verify").json()["ok"]
    listed = {tool["code"]: tool["executable"] for tool in host.client.get("/tools").json()["tools"]}
    assert (listed["stock"], listed["calculator"]) == (True, False)
    assert fault_of(host.client.post("/tools/calculator/execute", json={"args": {}}), 404)["kind"] == "not_found"
    problem = fault_of(host.client.post("/tools/stock/execute", json={"args": {"article": 3}}), 422)
    assert [fault["where"] for fault in problem["errors"]] == ["body/args/article"]


def test_caller_of_a_tool_cannot_set_what_guards_it(tmp_path: Path) -> None:
    with served(tmp_path, execute_tools=["read_file", "http_request"]) as host:
        for code, args in (
            ("read_file", {"path": "passwd", "root": "/etc"}),
            ("http_request", {"url": "http://127.0.0.1:1/", "allow_cidrs": ["127.0.0.0/8"]}),
        ):
            problem = fault_of(host.client.post(f"/tools/{code}/execute", json={"args": args}), 422)
            assert problem["errors"][0]["message"] == "only the operator sets this, in presets of agent-core.yaml"
        assert host.client.get("/runs").json() == {"runs": [], "next": None}


def test_health_and_document_are_there(host: Served) -> None:
    assert host.client.get("/health").json()["status"] == "ok"
    assert "/runs/{run_id}/decide" in host.client.get("/openapi.json").json()["paths"]
    assert fault_of(host.client.get("/nothing"), 404)["status"] == 404
    assert fault_of(host.client.put("/runs"), 405)["status"] == 405


@pytest.mark.parametrize(
    ("body", "media_type", "detail"),
    [
        (b'{"message": "x"}', "application/json", "body/message: unknown key; there are external, callback_url"),
        (b'{"external": {}', "application/json", "body: is no JSON: Expecting ',' delimiter at character 15"),
        (b'{"external": {}}', "text/plain", "body: must be a JSON object, sent with `Content-Type: application/json`"),
    ],
)
def test_body_that_cannot_be_read_says_how_it_is_sent(host: Served, body: bytes, media_type: str, detail: str) -> None:
    answer = host.client.post("/workflows/desk/runs", content=body, headers={"Content-Type": media_type})
    assert fault_of(answer, 422)["detail"] == detail


def test_path_or_method_that_is_not_there_says_what_there_is(host: Served) -> None:
    assert "/openapi.json" in fault_of(host.client.get("/"), 404)["detail"]
    assert "agent-core[mcp]" in fault_of(host.client.post("/mcp", json={}), 404)["detail"]
    assert "takes GET; /openapi.json" in fault_of(host.client.post("/runs"), 405)["detail"]
    foreign = host.client.post("/v1/responses", json={}).json()["error"]
    assert (foreign["type"], foreign["code"]) == ("invalid_request_error", "http")
    assert "/v1/chat/completions" in foreign["message"]


def test_decision_where_nothing_waits_says_so(host: Served) -> None:
    run = host.submit("desk", message="How many?")["run_id"]
    problem = fault_of(host.client.post(f"/runs/{run}/decide", json={"decision": "approve"}), 409)
    assert problem["detail"] == f"no call waits in run {run!r}"


def test_run_beyond_what_the_server_takes_is_told_to_come_later(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        driven = host.service.tenants[None].runs.driven
        driven._share.most = 2
        run = host.submit("wait", wait=False, until="room")["run_id"]
        answer = host.client.post("/workflows/count/runs", json={"external": {"sum": "1 + 1"}})
        assert fault_of(answer, 429)["kind"] == "too_many_runs"
        assert int(answer.headers["retry-after"]) > 0
        (host.folder / "room").touch()
        host.await_status(run, "completed")
        while run in driven:  # its driver ends a little later than the run
            time.sleep(0.01)
        assert host.submit("count", sum="1 + 1")["outputs"]["calculator"] == 2
        assert len(host.client.get("/runs").json()["runs"]) == count_submitters(host) == 2


@pytest.mark.parametrize("route", ["verify", "journal"])
def test_others_are_answered_while_the_records_of_a_long_run_are_read(host: Served, route: str) -> None:
    run = host.submit("count", sum="1 + 1")["run_id"]
    answered, store = Event(), host.store

    class Slow:
        """The journal, which takes its time."""

        threads = None

        def __getattr__(self, name: str) -> Any:
            assert answered.wait(10)
            return getattr(journal, name)

    journal = store.journal
    vars(store)["journal"] = Slow()
    try:
        asked = Thread(target=lambda: host.client.get(f"/runs/{run}/{route}"))
        asked.start()
        with httpx2.Client(base_url=host.url, timeout=5) as other:
            assert other.get("/health").status_code == 200
        answered.set()
        asked.join(10)
    finally:
        answered.set()
        vars(store)["journal"] = journal


def test_store_that_cannot_be_used_is_told_without_its_place(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        (tmp_path / "runs.db").write_text("this is no database, but a text that is long enough to be none" * 10)
        for body in (
            host.client.post("/workflows/count/runs", json={"external": {"sum": "1 + 1"}}),
            host.client.get("/runs"),
            host.client.post("/v1/chat/completions", json={"model": "agent/clerk", "messages": ASKED}),
        ):
            assert body.status_code == 503
            assert "its log says why" in body.text
            assert "runs.db" not in body.text
            assert str(tmp_path) not in body.text


def test_run_whose_records_are_damaged_is_a_problem_that_says_so(host: Served) -> None:
    run = host.submit("count", sum="1 + 1")["run_id"]
    with host.store.database.writing() as db:
        db.execute("UPDATE rows SET data = x'ff00' WHERE run = ? AND n = 1", (run,))
    host.service.tenants[None].runs.driven._results.clear()
    answer = host.client.get(f"/runs/{run}")
    assert (answer.status_code, answer.json()["kind"]) == (409, "damaged")


@pytest.mark.exhaustive
@pytest.mark.parametrize("record", [0, 1, 5])
@pytest.mark.parametrize("data", [b"{}", b"\xff", b"", "text"])
@pytest.mark.parametrize("kind", ["workflow", "turn"])
def test_damaged_run_says_where_it_is_damaged(damaged: Served, kind: str, data: Any, record: int) -> None:
    run = damaged.submit("desk", message="x")["run_id"]
    if kind == "turn":
        run = damaged.client.post("/agent/chat", json={"message": "x", "agent": "clerk"}).json()["trace_id"]
    with closing(sqlite3.connect(damaged.folder / "runs.db", isolation_level=None)) as db:
        where = (data, run, AGENT_STRAND, record)
        db.execute("UPDATE rows SET data = ? WHERE run = ? AND strand = ? AND n = ?", where)
    verdict = damaged.client.get(f"/runs/{run}/verify")
    assert verdict.status_code == 200, verdict.text
    found = verdict.json()
    assert (found["ok"], found["seal"]) == (False, "seal not checked: a record is damaged")
    assert (found["first_bad"]["strand"], found["first_bad"]["n"]) == (AGENT_STRAND, record)
    assert damaged.client.post(f"/runs/{run}/replay", json={}).json()["outcome"] == "damaged"


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("damaged")) as found:
        yield found


@pytest.mark.exhaustive
@pytest.mark.parametrize("releases", [True, False])
def test_run_at_rest_is_decided_once_its_driver_has_released_it(host: Served, releases: bool) -> None:
    run = host.submit("buy", article="F-7")["run_id"]
    driver = "another-machine:1:token"
    assert host.store.leases.acquire(run, driver) is None
    timer = Timer(0.2, lambda: host.store.leases.release(run, driver) if releases else None)
    timer.start()
    answer = host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
    timer.join()
    assert answer.status_code == (200 if releases else 409), answer.text
    assert host.client.get(f"/runs/{run}").json()["status"] == ("completed" if releases else "waiting")
    host.store.leases.release(run, driver)


def test_caller_gets_the_declared_outputs_alone_and_those_of_the_nodes_when_asked(host: Served) -> None:
    echo = {"id": "page", "tool": "echo", "config": {"text": "the whole page"}}
    (host.folder / "workflows" / "declares.json").write_text(
        json.dumps({"id": "declares", "nodes": [echo], "outputs": {"page": "a page", "answer": "short"}})
    )
    run = host.submit("declares")
    assert run["outputs"] == {"page": "a page", "answer": "short"}
    assert "nodes" not in run
    asked = host.client.get(f"/runs/{run['run_id']}", params={"nodes": "true"}).json()
    assert (asked["outputs"], asked["nodes"]) == (run["outputs"], {"page": "the whole page"})
    posted = host.client.post("/workflows/declares/runs?nodes=true", json={"external": {}}).json()
    assert posted["nodes"] == {"page": "the whole page"}
    assert host.client.get(f"/runs/{run['run_id']}").json() == run


async def test_server_that_ends_waits_for_no_run_that_another_process_drives(host: Served) -> None:
    run, runs = host.submit("count", sum="1")["run_id"], host.service.tenants[None].runs
    assert host.store.leases.acquire(run, "another:1:process") is None
    try:
        waiting = asyncio.create_task(runs.wait(run, 600))
        await asyncio.sleep(0)
        runs.let_go()
        await asyncio.wait_for(waiting, 20)
    finally:
        host.store.leases.release(run, "another:1:process")
        runs.driven.open()
