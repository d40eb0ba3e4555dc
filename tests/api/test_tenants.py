"""Tenants of one server: every route, tried with what belongs to another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from support.served_host import Served, served

TENANTS = {
    "acme": {"execute_tools": ["stock"]},
    "globex": {"deny_tools": ["order"], "workflows": "globex-workflows", "agents": "globex-agents"},
}
Header = dict[str, str]


@dataclass
class Office:
    """A served host with two tenants, and the token of each; the host's own is under its name."""

    host: Served
    headers: dict[str, Header]

    def ask(self, who: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        return self.host.client.request(method, path, json=body, headers=self.headers[who])


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("host")
    for name in ("globex-workflows", "globex-agents"):
        (folder / name).mkdir()
    (folder / "globex-workflows" / "own.json").write_text(
        '{"id": "own", "nodes": [{"tool": "echo", "config": {"text": "globex"}}]}'
    )
    with served(folder, is_open=False, tenants=TENANTS) as host:
        headers = {name: host.issue(name, "admin", tenant=name) for name in TENANTS}
        yield Office(host, {**headers, "host": host.issue("host", "admin")})


@pytest.fixture(scope="module")
def run(office: Office) -> str:
    """A run of acme that waits."""
    answer = office.ask("acme", "POST", "/workflows/buy/runs", {"external": {"article": "acme's"}})
    assert answer.json()["status"] == "waiting", answer.text
    return str(answer.json()["run_id"])


@pytest.fixture(scope="module")
def turn(office: Office) -> Any:
    """A turn of acme's conversation `talk`."""
    body = {"message": "acme's secret", "agent": "clerk", "conversation_id": "talk"}
    return office.ask("acme", "POST", "/agent/chat", body).json()


RUN_ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/events", None),
    ("GET", "/journal", None),
    ("GET", "/verify", None),
    ("POST", "/decide", {"decision": "approve"}),
    ("POST", "/resume", None),
    ("POST", "/pause", None),
    ("POST", "/cancel", None),
    ("POST", "/fork", {"at": {"strand": "flow/order.1", "n": 0}}),
    ("POST", "/messages", {"content": "x"}),
]


@pytest.mark.sampled
@pytest.mark.parametrize("who", ["globex", "host"])
@pytest.mark.parametrize(("method", "route", "body"), RUN_ROUTES)
def test_run_of_another_tenant_is_not_found(
    office: Office, run: str, who: str, method: str, route: str, body: Any
) -> None:
    answer = office.ask(who, method, f"/runs/{run}{route}", body)
    unknown = office.ask(who, method, f"/runs/nobody{route}", body)
    assert (answer.status_code, answer.json()["kind"]) == (404, "not_found")
    assert answer.text.replace(run, "nobody") == unknown.text
    assert office.ask("acme", "GET", f"/runs/{run}").json()["status"] == "waiting"


@pytest.mark.parametrize("who", ["globex", "host"])
@pytest.mark.parametrize("query", ["", "&text=acme", "&tool=order", "&tool=stock", "&reason=final"])
def test_lists_have_nothing_of_another_tenant(office: Office, run: str, turn: Any, who: str, query: str) -> None:
    ids = [each["run_id"] for each in office.ask(who, "GET", f"/runs?limit=1000{query}").json()["runs"]]
    assert run not in ids
    assert turn["trace_id"] not in ids
    assert run in [each["run_id"] for each in office.ask("acme", "GET", "/runs?limit=1000").json()["runs"]]


@pytest.mark.parametrize("who", ["globex", "host"])
def test_conversations_of_another_tenant_are_not_listed(office: Office, turn: Any, who: str) -> None:
    assert "acme" not in office.ask(who, "GET", "/agent/conversations").text
    (talk,) = office.ask("acme", "GET", "/agent/conversations").json()["conversations"]
    assert talk["conversation_id"] == "talk"


@pytest.mark.parametrize("who", ["globex", "host"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_conversation_of_another_tenant_is_not_found(office: Office, turn: Any, who: str, method: str) -> None:
    assert office.ask(who, method, "/agent/conversations/talk").status_code == 404
    assert office.ask("acme", "GET", "/agent/conversations/talk").status_code == 200


def test_same_conversation_id_is_another_conversation_for_another_tenant(office: Office, turn: Any) -> None:
    body = {"message": "the host's", "agent": "clerk", "conversation_id": "talk"}
    assert office.ask("host", "POST", "/agent/chat", body).json()["success"]
    found = office.ask("host", "GET", "/agent/conversations/talk").json()["messages"]
    assert "acme" not in str(found)
    assert "the host's" not in office.ask("acme", "GET", "/agent/conversations/talk").text


def test_same_idempotency_key_is_another_run_for_another_tenant(office: Office) -> None:
    def submit(who: str) -> Any:
        body, headers = {"external": {"sum": "1 + 1"}}, {**office.headers[who], "Idempotency-Key": "same"}
        return office.host.client.post("/workflows/count/runs", json=body, headers=headers).json()

    submit("acme")
    assert office.ask("host", "GET", "/runs?workflow=count").json() == {"runs": [], "next": None}
    submit("host")
    assert len(office.ask("host", "GET", "/runs?workflow=count").json()["runs"]) == 1


def test_drafts_of_a_tenant_are_checked_with_its_tools(office: Office) -> None:
    draft = {"text": "id: x\nnodes: [{tool: order, config: {article: A, pieces: 1}}]", "format": "yaml"}
    assert office.ask("acme", "POST", "/drafts/check", draft).json()["problems"] == []
    (problem,) = office.ask("globex", "POST", "/drafts/check", draft).json()["problems"]
    assert "deny_tools" in problem["message"]
    assert office.ask("globex", "POST", "/drafts/runs", draft).status_code == 422
    run = office.ask("acme", "POST", "/drafts/runs", draft).json()["run_id"]
    assert office.ask("host", "GET", f"/runs/{run}").status_code == 404
    assert office.ask("globex", "GET", "/workflows/desk/source").status_code == 404
    peek = {**draft, "text": "id: x\nnodes: [{tool: invoke_workflow, config: {workflow: ../workflows/desk.json}}]"}
    assert "not below" in office.ask("globex", "POST", "/drafts/check", peek).json()["problems"][0]["message"]


def test_tenant_saves_where_nobody_else_reads_alone(office: Office) -> None:
    folder = office.host.folder
    body = {"text": "id: saved\nnodes: [{tool: echo, config: {text: x}}]", "format": "yaml", "expects": None}
    shared = office.ask("acme", "PUT", "/workflows/saved", body)
    assert (shared.status_code, shared.json()["kind"]) == (403, "shared")
    assert not (folder / "workflows" / "saved@1.yaml").exists()
    assert office.ask("globex", "PUT", "/workflows/saved", body).status_code == 201
    assert office.ask("acme", "GET", "/workflows/saved").status_code == 404
    (folder / "globex-workflows" / "saved@1.yaml").unlink()
    assert office.ask("host", "PUT", "/workflows/saved", body).status_code == 201
    assert office.ask("acme", "GET", "/workflows/saved").status_code == 200  # it has the host's directory
    (folder / "workflows" / "saved@1.yaml").unlink()


def test_approval_is_the_hosts(office: Office) -> None:
    for method, path, body in (("GET", "/tools/changes", None), ("POST", "/tools/approve", {"digest": "x"})):
        answer = office.ask("acme", method, path, body)
        assert (answer.status_code, answer.json()["kind"]) == (403, "host_only")
    assert office.ask("host", "GET", "/tools/changes").json()["changes"] == []


def test_workflows_and_agents_are_the_tenants_own(office: Office) -> None:
    listed = office.ask("globex", "GET", "/workflows").json()["workflows"]
    assert [each["id"] for each in listed] == ["own"]
    assert office.ask("globex", "POST", "/workflows/buy/runs", {"external": {"article": "x"}}).status_code == 404
    assert office.ask("globex", "GET", "/agents").json() == {"agents": []}
    assert office.ask("globex", "POST", "/agent/chat", {"message": "x", "agent": "clerk"}).status_code == 404
    assert office.ask("globex", "POST", "/workflows/own/runs", {}).json()["outputs"]["echo"] == "globex"


def test_tools_are_those_that_the_tenant_may_use(office: Office) -> None:
    def codes(who: str) -> dict[str, bool]:
        tools = office.ask(who, "GET", "/tools").json()["tools"]
        return {tool["code"]: tool["executable"] for tool in tools}

    assert "order" not in codes("globex")
    assert codes("acme")["stock"] is True
    assert codes("acme")["order"] is False  # the host's own list is not a tenant's
    assert codes("host")["order"] is True
    body = {"args": {"article": "A", "pieces": 1}}
    assert office.ask("acme", "POST", "/tools/order/execute", body).status_code == 404
    assert office.ask("globex", "POST", "/tools/stock/execute", {"args": {"article": "A"}}).status_code == 404


@pytest.mark.exhaustive
def test_token_of_a_tenant_that_is_gone_is_unknown(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("gone")
    with served(folder, is_open=False, tenants={"acme": {}}) as host:
        header = host.issue("ann", "read", tenant="acme")
        assert host.client.get("/runs", headers=header).status_code == 200
    (folder / "agent-core.yaml").write_text('{"tools": ["shop.py:TOOLS"]}')
    with served(folder, is_open=False) as host:
        assert host.client.get("/runs", headers=header).status_code == 401
