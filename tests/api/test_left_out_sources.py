"""A server of which a source of tools is away: it serves the rest, says what is left out, and takes it up again."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from support.mcp_servers import FAULTY
from support.optional import needs
from support.served_host import AGENTS, served, write_host

pytestmark = needs("mcp")
NEEDS = {"id": "needs", "nodes": [{"id": "a", "tool": "mcp.late.echo", "config": {"text": "{{external.text}}"}}]}
HELPER = AGENTS["clerk.yaml"].replace("name: clerk", "name: helper").replace("[stock]", "[mcp.late.echo]")


def write_late_host(folder: Path) -> Path:
    """A host with an MCP server whose program is not there yet."""
    program = folder / "late.sh"
    write_host(folder, mcp_servers={"late": {"command": [str(program)]}})
    needs_text = {**NEEDS, "inputs": {"type": "object", "properties": {"text": {"type": "string"}}}}
    (folder / "workflows" / "needs.json").write_text(json.dumps(needs_text))
    (folder / "triggers").mkdir()
    (folder / "triggers" / "night.json").write_text(json.dumps({"workflow": "needs", "cron": "0 3 * * *"}))
    (folder / "agents" / "helper.yaml").write_text(HELPER)
    return program


def install(program: Path) -> None:
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {FAULTY} {program.parent}\n")
    program.chmod(0o755)


def test_server_serves_what_does_not_need_the_source_and_names_it(tmp_path: Path) -> None:
    write_late_host(tmp_path)
    with served(tmp_path) as host:
        assert host.submit("count", sum="2 + 2")["status"] == "completed"
        found: dict[str, Any] = host.client.get("/tools").json()
        assert [each["name"] for each in found["left_out"]] == ["mcp.late"]
        assert "there is no program" in found["left_out"][0]["why"]
        assert not [each for each in found["tools"] if each["code"].startswith("mcp.")]
        missing = host.client.post("/workflows/needs/runs", json={"external": {"text": "x"}})
        assert missing.status_code == 404
        assert "since mcp.late cannot be used" in missing.json()["detail"]
        assert "helper" not in [each["name"] for each in host.client.get("/agents").json()["agents"]]
        chat = host.client.post("/agent/chat", json={"agent": "helper", "message": "Hello"})
        assert chat.status_code == 404
        assert "since mcp.late cannot be used" in chat.json()["detail"]


def test_source_that_is_back_is_taken_up_with_the_workflows_of_it(tmp_path: Path) -> None:
    program = write_late_host(tmp_path)
    with served(tmp_path) as host:
        tenant = host.service.tenants[None]
        tenant.take_up_again()
        assert [each.name for each in tenant.engine.registry._left_out] == ["mcp.late"]
        install(program)
        tenant.take_up_again()
        assert host.client.get("/tools").json()["left_out"] == []
        assert host.submit("needs", text="here again")["outputs"] == {"a": "here again"}
        assert asyncio.run(tenant.triggers.describe()) is not None
