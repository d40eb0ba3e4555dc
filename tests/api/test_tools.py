"""Tools over HTTP: where each comes from and who uses it, what changed since its approval, and the approval of that."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.mcp_servers import faulty
from support.optional import needs
from support.served_host import Served, served

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "x", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {"/a": {"get": {"operationId": "find", "responses": {"200": {"description": "x"}}}}},
}


def write_tools(folder: Path, *names: str, says: str = "Does it.") -> None:
    tools = [{"name": name, "description": says, "inputSchema": TEXT} for name in names]
    (folder / "tools.json").write_text(json.dumps(tools))


def server_at(folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return {"command": [sys.executable, str(faulty.__file__), str(folder)]}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    (folder / "shop.json").write_text(json.dumps(OPENAPI))
    with served(folder, openapi={"web": {"file": "shop.json"}}) as found:
        yield found


@pytest.fixture(scope="module")
def tools(host: Served) -> dict[str, Any]:
    return {each["code"]: each for each in host.client.get("/tools").json()["tools"]}


def test_each_tool_says_where_it_comes_from(host: Served, tools: dict[str, Any]) -> None:
    assert tools["stock"]["source"] == "shop.py:TOOLS"
    assert tools["echo"]["source"] == "built in"
    assert tools["agent_core"]["source"] == "built in"
    assert [each["source"] for code, each in tools.items() if code.endswith("find")] == ["openapi.web"]
    assert tools["agent_core"]["output_schema"]["type"] == "object"
    assert tools["order"]["output_schema"] is None or isinstance(tools["order"]["output_schema"], dict)
    assert tools["calculator"]["pinned"] is False
    assert isinstance(tools["calculator"]["idempotent"], bool)
    assert str(host.folder) not in json.dumps([each["source"] for each in tools.values()])


def test_each_tool_says_who_uses_it_in_the_newest_versions(tools: dict[str, Any]) -> None:
    desk = {"workflow": "desk", "version": "2", "node": "agent_core", "how": "agent"}
    assert tools["stock"]["used_by"] == [desk]
    assert tools["order"]["used_by"] == [{"workflow": "buy", "version": "1", "node": "order", "how": "node"}]
    assert {"workflow": "desk", "version": "2", "node": "end", "how": "node"} in tools["echo"]["used_by"]
    assert (tools["stock"]["agents"], tools["order"]["agents"]) == (["clerk"], ["buyer"])
    assert tools["email"]["used_by"] == []


def test_use_by_a_pattern_is_a_use(host: Served) -> None:
    config = {"model": "scripted:desk-replies.json", "max_steps": 1, "allowed_tools": ["st*"], "prompt": "x"}
    text = json.dumps({"id": "globs", "nodes": [{"tool": "agent_core", "config": config}]})
    body = {"text": text, "format": "json", "expects": None}
    assert host.client.put("/workflows/globs", json=body).status_code == 201
    (stock,) = [each for each in host.client.get("/tools").json()["tools"] if each["code"] == "stock"]
    assert "globs" in [each["workflow"] for each in stock["used_by"]]


def test_host_without_sources_has_no_changes(host: Served) -> None:
    found = host.client.get("/tools/changes").json()
    assert (found["changes"], found["faults"]) == ([], [])
    approved = host.client.post("/tools/approve", json={"digest": found["digest"]})
    assert approved.json() == {"approved": 0, "restart_needed": False}


@pytest.mark.parametrize("body", [{}, {"digest": ""}, {"digest": 3}, {"digest": "x" * 129}, {"digest": "x", "more": 1}])
def test_approval_that_is_none_is_refused(host: Served, body: Any) -> None:
    assert host.client.post("/tools/approve", json=body).status_code == 422


@pytest.mark.exhaustive
@needs("mcp")
def test_changes_are_shown_and_exactly_those_are_approved(tmp_path: Path) -> None:
    source = tmp_path / "server"
    server = server_at(source)
    write_tools(source, "keep", "alter", "lose")
    with served(tmp_path, is_open=False, mcp_servers={"own": server}, tenants={"acme": {}}) as host:
        admin, tenant = host.issue("ann", "admin"), host.issue("acme", "admin", tenant="acme")

        def changes() -> Any:
            answer = host.client.get("/tools/changes", headers=admin)
            assert answer.status_code == 200, answer.text
            return answer.json()

        def approve(digest: str, headers: dict[str, str] = admin) -> httpx2.Response:
            return host.client.post("/tools/approve", json={"digest": digest}, headers=headers)

        assert changes()["changes"] == []
        listed = {each["code"]: each for each in host.client.get("/tools", headers=admin).json()["tools"]}
        assert (listed["mcp.own.keep"]["source"], listed["mcp.own.keep"]["pinned"]) == ("mcp.own", True)

        write_tools(source, "keep")
        more = [{"name": "alter", "description": "Other.", "inputSchema": TEXT}]
        more += [{"name": "fresh", "description": "New.", "inputSchema": {"type": "object"}}]
        (source / "tools.json").write_text(json.dumps([*json.loads((source / "tools.json").read_text()), *more]))
        found = changes()
        assert {each["tool"]: each["kind"] for each in found["changes"]} == {
            "fresh": "new",
            "alter": "changed",
            "lose": "gone",
        }
        (altered,) = [each for each in found["changes"] if each["kind"] == "changed"]
        assert altered["source"] == "mcp.own"
        assert (altered["before"]["description"], altered["after"]["description"]) == ("Does it.", "Other.")
        assert altered["after"]["config_schema"] == TEXT

        lock = (tmp_path / "agent-core.lock.json").read_bytes()
        for headers in (tenant, host.issue("bob", "read", "run", "decide")):
            assert approve(found["digest"], headers).status_code == 403
            assert host.client.get("/tools/changes", headers=headers).status_code == 403
        write_tools(source, "keep", "sly", says="Something else.")
        refused = approve(found["digest"])
        assert (refused.status_code, refused.json()["kind"]) == (409, "changed_meanwhile")
        assert (tmp_path / "agent-core.lock.json").read_bytes() == lock

        now = changes()
        assert approve(now["digest"]).json() == {"approved": len(now["changes"]), "restart_needed": True}
        assert b"Something else." in (tmp_path / "agent-core.lock.json").read_bytes()
        assert changes()["changes"] == []


@pytest.mark.exhaustive
@needs("mcp")
def test_source_that_cannot_be_reached_is_a_fault_and_no_error(tmp_path: Path) -> None:
    source = tmp_path / "server"
    server = server_at(source)
    write_tools(source, "keep")
    with served(tmp_path, mcp_servers={"own": server}):
        pass
    config = json.loads((tmp_path / "agent-core.yaml").read_text())
    config["mcp_servers"]["own"]["command"].append("crash")
    (tmp_path / "agent-core.yaml").write_text(json.dumps(config))
    with served(tmp_path) as host:
        found = host.client.get("/tools/changes").json()
        assert found["changes"] == []
        assert [each["source"] for each in found["faults"]] == ["mcp.own"]
        assert found["faults"][0]["message"]
