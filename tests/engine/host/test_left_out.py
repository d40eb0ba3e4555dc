"""A source of tools that is away or odd: it is left out and named, by all that need it; everything else works."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_core.agents.errors import AgentNotFound
from engine_shim.host.config import read_host_config
from engine_shim.host.registry import build_registry
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.engine import Engine
from engine_shim.runs.prepare import with_runs
from support.command import Cli, Write
from support.mcp_servers import FAULTY
from support.optional import needs

pytestmark = needs("mcp")

SOURCES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no_program": ({"mcp_servers": {"b": {"command": ["nope-nope"]}}}, "mcp.b", "mcp_servers/b", "is it installed?"),
    "crash": ({"mcp_servers": {"b": {"command": ["false"]}}}, "mcp.b", "mcp_servers/b", "cannot be used"),
    "silent": (
        {"mcp_servers": {"b": {"command": ["sleep", "60"], "start_timeout": 0.5}}},
        *("mcp.b", "mcp_servers/b", "not ready within 0.5 seconds"),
    ),
    "nobody_listens": ({"mcp_servers": {"b": {"url": "http://127.0.0.1:9/"}}}, "mcp.b", "mcp_servers/b", "cannot be"),
    "glob": (
        {"mcp_servers": {"b": {"command": [sys.executable, FAULTY, "."], "read_only": ["ecko"]}}},
        *("mcp.b", "mcp_servers/b/read_only/0", "no tool of this server matches"),
    ),
    "document": ({"openapi": {"b": {"file": "nope.yaml"}}}, "b", "nope.yaml", "the OpenAPI document cannot be read"),
    "remote": (
        {"remote": {"b": {"url": "http://127.0.0.1:9", "allow_cidrs": ["127.0.0.0/8"]}}},
        *("b", "remote/b", "cannot be asked for its tools: 127.0.0.1 cannot be reached"),
    ),
}
PLAIN = {"id": "plain", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]}


def needing(tool: str) -> dict[str, Any]:
    return {"id": "needs", "nodes": [{"id": "a", "tool": tool, "config": {}}]}


def agent_needing(*tools: str) -> dict[str, Any]:
    config = {"model": "scripted:replies.json", "max_steps": 2, "prompt": "Go.", "allowed_tools": list(tools)}
    return {"id": "agent", "nodes": [{"id": "a", "tool": "agent_core", "config": config}]}


def describe_agent(name: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "description": "x", "system_prompt": "x", "model": "scripted:replies.json", **keys}


@pytest.mark.parametrize(("config", "name", "where", "why"), SOURCES.values(), ids=SOURCES)
def test_one_source_that_is_away_takes_nothing_else_with_it(
    cli: Cli, write: Write, config: dict[str, Any], name: str, where: str, why: str
) -> None:
    good = {"command": [sys.executable, FAULTY, "."]}
    servers = {**config.get("mcp_servers", {}), "good": good}
    write("agent-core.yaml", {**config, "mcp_servers": servers})
    write("plain.json", PLAIN)
    write("needs.json", needing(f"{name}.x"))
    ran = cli("run", "plain.json")
    assert (ran.code, "a: x" in ran.out) == (0, True)
    listed = cli("tools")
    assert (listed.code, "mcp.good.echo" in listed.out) == (0, True)
    assert f"left out: {name}: " in listed.err
    assert where in listed.err
    assert why in listed.err
    for command in ("run", "validate"):
        refused = cli(command, "needs.json")
        assert refused.code == 3
        assert f"there is no {name}.x, since {name} cannot be used: " in refused.err + refused.out
        assert why in refused.err + refused.out


def test_agent_that_needs_a_tool_or_a_glob_of_the_source_is_told(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"mcp_servers": {"b": {"command": ["nope-nope"]}}})
    write("replies.json", ['{"type":"final","answer":"fine"}'])
    for needed in ("mcp.b.x", "mcp.b.*", "mcp.*"):
        write("flow.json", agent_needing("echo", needed))
        refused = cli("run", "flow.json")
        assert refused.code == 3
        assert f"there is no {needed}, since mcp.b cannot be used" in refused.err
    write("flow.json", {**agent_needing("echo")})
    assert cli("run", "flow.json").code == 0


def test_host_may_preset_and_deny_tools_of_a_source_that_is_away(cli: Cli, write: Write) -> None:
    keys = {"presets": {"mcp.b.x": {"a": 1}}, "deny_tools": ["mcp.b.y"]}
    write("agent-core.yaml", {"mcp_servers": {"b": {"command": ["nope-nope"]}}, **keys})
    write("plain.json", PLAIN)
    assert cli("run", "plain.json").code == 0


def test_agents_of_the_source_are_left_out_and_the_others_stay(home: Path, write: Write) -> None:
    write("agent-core.yaml", {"mcp_servers": {"b": {"command": ["nope-nope"]}}})
    write("agents/server.json", describe_agent("server", mcp_policy={"servers": ["b"]}))
    write("agents/reader.json", describe_agent("reader", mcp_policy={"resources": [{"server": "b", "uri": "x:y"}]}))
    write("agents/tool.json", describe_agent("tool", skill_policy={"allow": ["mcp.b.x"]}))
    write("agents/plain.json", describe_agent("plain", skill_policy={"allow": ["echo"], "deny": ["mcp.b.*"]}))
    config = read_host_config(home / "agent-core.yaml")
    catalog = build_catalog(config, with_runs(build_registry(config), None))
    assert [each.name for each in catalog.list()] == ["plain"]
    assert set(catalog.left_out) == {"server", "reader", "tool"}
    for name in catalog.left_out:
        with pytest.raises(AgentNotFound, match=f"the agent '{name}' cannot be used: .*nope-nope"):
            catalog.get(name)


def test_fault_of_an_agent_is_still_refused(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"mcp_servers": {"b": {"command": ["nope-nope"]}}})
    write("agents/wrong.json", describe_agent("wrong", skill_policy={"allow": ["mcp.b.x", "ecko"]}))
    ran = cli("agents")
    assert (ran.code, "no tool is called 'ecko'" in ran.err) == (3, True)


async def test_engine_from_config_does_without_the_source(home: Path, write: Write) -> None:
    write("agent-core.yaml", {"mcp_servers": {"b": {"command": ["nope-nope"]}}})
    engine = Engine.from_config(home / "agent-core.yaml", store=home / "runs.db")
    try:
        assert (await engine.run(PLAIN)).status == "completed"
        assert [each.name for each in engine.registry._left_out] == ["mcp.b"]
    finally:
        await engine.close()


def test_lock_that_was_changed_by_hand_leaves_that_source_out(cli: Cli, write: Write, home: Path) -> None:
    servers = {name: {"command": [sys.executable, FAULTY, "."]} for name in ("a", "b")}
    write("agent-core.yaml", {"mcp_servers": servers})
    assert cli("tools").code == 0
    lock = home / "agent-core.lock.json"
    found = json.loads(lock.read_text())
    found["sources"]["mcp_servers/b"][0]["description"] = "Anything."
    lock.write_text(json.dumps(found))
    ran = cli("tools")
    assert (ran.code, "mcp.a.echo" in ran.out, "mcp.b." in ran.out) == (0, True, False)
    assert "mcp_servers/b/echo: was changed by hand" in ran.err


def test_doctor_names_what_is_away_and_looks_at_the_rest(cli: Cli, write: Write) -> None:
    sources = {"mcp_servers": {"b": {"command": ["nope-nope"]}}, "openapi": {"shop": {"file": "nope.yaml"}}}
    write("agent-core.yaml", {**sources, "remote": {"lab": {"url": "http://127.0.0.1:9"}}})
    write("workflows/plain.json", PLAIN)
    write("workflows/needs.json", needing("mcp.b.x"))
    found = {(each["name"], each["status"]): each["message"] for each in cli("doctor", "--json").json["findings"]}
    assert "nope-nope" in found["mcp_servers/b", "problem"]
    assert "nope.yaml" in found["shop", "problem"]
    assert "cannot be asked for its tools" in found["remote/lab", "problem"]
    assert "since mcp.b cannot be used" in found["workflows", "problem"]
    assert found["workflows", "ok"] == "plain@1"


def test_operation_that_is_not_openapi_is_left_out_alone(cli: Cli, write: Write) -> None:
    in_query = {"name": "x", "in": "query"}
    paths: dict[str, Any] = {
        "/good": {"get": {"operationId": "good", "responses": {}}},
        "/odd/{x}": {"get": {"operationId": "odd", "parameters": [in_query], "responses": {}}},
        "evil": {"get": {"operationId": "evil", "responses": {}}},
        "/查询": {"get": {"operationId": "查询", "responses": {}}},
        "/天气": {"get": {"operationId": "天气", "responses": {}}},
    }
    document = {"openapi": "3.1.0", "info": {}, "servers": [{"url": "https://shop.example"}], "paths": paths}
    write("shop.json", document)
    write("agent-core.yaml", {"openapi": {"shop": {"file": "shop.json"}}})
    ran = cli("tools")
    codes = [line.split()[0] for line in ran.out.splitlines() if line.startswith("shop.")]
    assert codes == ["shop.:5929:6c14", "shop.:67e5:8be2", "shop.good"]
    assert "no parameter describes this part of the path" in ran.err
    assert "must begin with a slash" in ran.err
