"""The host has the last word on definitions, and a program has the very host that the command line has."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_core.models import ScriptedModel
from engine_shim import Engine, load_workflow
from support.by_hand import action, final
from support.command import Cli, Write

pytestmark = pytest.mark.exhaustive

SEED = {
    "model": "gpt-4o-mini",
    "temperature": 0.7,
    "timeout": 120,
    "max_steps": 5,
    "max_tool_calls": 10,
    "allowed_tools": ["http_request", "json_transform", "redis_context", "feishu_bot"],
    "single_call_timeout": 30,
    "total_token_budget": 0,
    "observation_max_len": 256,
    "primary_output": "final_answer",
}
"""The configuration that the node's founding document gives as an example."""
PRESETS = {
    "redis_context": {"prefix": "desk"},
    "feishu_bot": {"webhook_env": "DESK_WEBHOOK"},
    "http_request": {"allowed_domains": ["*.example.com"], "allowed_methods": ["GET"]},
    "shell_command": {"allow": ["git log ..."]},
}
HOST = {"presets": PRESETS, "secret_env": ["DESK_WEBHOOK"]}


def _flow(tool: str, config: Any) -> Any:
    return {"id": "w", "nodes": [{"id": "a", "tool": tool, "config": config}]}


def _agent(*allowed: Any) -> Any:
    return _flow("agent_core", {**SEED, "model": "scripted:r.json", "prompt": "Go.", "allowed_tools": list(allowed)})


def test_the_configuration_of_the_founding_document_runs_as_it_stands(
    write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_WEBHOOK", "https://open.feishu.cn/hook/1")
    file = write("agent-core.yaml", HOST)
    engine = Engine.from_config(
        file, model=ScriptedModel([action("json_transform", data=[1], query="[0]"), final("1")])
    )
    flow = _flow("agent_core", {**SEED, "prompt": "What is the first?"})
    result = engine.run_sync(load_workflow(flow))
    assert (result.status, result.outputs["a"]["final_answer"]) == ("completed", "1")
    started = engine.store.journal.load(result.run_id)["flow/a.1"][0].record()
    assert started["tools"]["redis_context"]["schema"]["properties"]["prefix"]["default"] == "desk"
    assert "prefix" not in json.dumps(started["messages"])


WIDER: dict[str, tuple[Any, str]] = {
    "a node": (
        _flow("http_request", {"method": "GET", "url": "https://evil.org", "allowed_domains": ["evil.org"]}),
        "allowed_domains",
    ),
    "an agent's preset": (_agent({"tool": "redis_context", "preset": {"prefix": "other"}}), "prefix"),
    "commands": (_agent({"tool": "shell_command", "preset": {"allow": ["bash -c *"]}}), "allow"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("flow", "key"), WIDER.values(), ids=WIDER)
def test_a_definition_that_widens_a_preset_is_refused(cli: Cli, write: Write, flow: Any, key: str) -> None:
    write("agent-core.yaml", HOST)
    write("r.json", [final()])
    write("flow.json", flow)
    validated = cli("validate", "flow.json")
    assert validated.code == 3
    assert f"; presets of agent-core.yaml bind {key} of" in validated.out
    assert cli("run", "flow.json").code == 3


def test_a_widening_that_shows_only_in_the_run_is_refused_there(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", HOST)
    wide = {"method": "GET", "url": "https://evil.org", "allowed_domains": ["{{external.where}}"]}
    write("flow.json", _flow("http_request", wide))
    ran = cli("run", "flow.json", "--input", "where=evil.org")
    assert (ran.code, "allowed_domains" in ran.out) == (3, True)


DENIED: dict[str, tuple[Any, Any, str]] = {
    "a node": (
        {"deny_tools": ["http_*"]},
        _flow("http_request", {"method": "GET", "url": "https://x.org"}),
        "deny_tools",
    ),
    "a whitelist": ({"allow_tools": ["echo"]}, _agent("calculator"), "not in allow_tools"),
    "commands": ({}, _agent("shell_command"), "is off until the host sets allow, in presets of agent-core.yaml"),
    "agents": ({"deny_tools": ["agent_core"]}, _agent("echo"), "deny_tools"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("host", "flow", "why"), DENIED.values(), ids=DENIED)
def test_a_tool_that_the_host_does_not_offer_says_so(cli: Cli, write: Write, host: Any, flow: Any, why: str) -> None:
    write("agent-core.yaml", host)
    write("r.json", [final()])
    write("flow.json", flow)
    assert why in cli("validate", "flow.json").out
    refused = cli("run", "flow.json")
    assert (refused.code, why in refused.err) == (3, True)


def test_a_secret_that_only_the_host_presets_is_looked_for(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"presets": {"feishu_bot": {"webhook_env": "NOWHERE"}}})
    write("flow.json", _flow("feishu_bot", {"text": "Hi."}))
    refused = cli("run", "flow.json")
    assert refused.code == 3
    assert "nodes/0 (a)/config/webhook_env: the secret NOWHERE is not allowed" in refused.err


def test_presets_that_came_later_bind_a_run_that_waits(cli: Cli, write: Write, home: Path) -> None:
    (home / "data").mkdir()
    write("secret.txt", "private")
    host: dict[str, Any] = {}
    write("agent-core.yaml", host)
    nodes = [
        {"id": "a", "tool": "agent_core", "config": {**WAITING, "allowed_tools": ["calculator"]}},
        {"id": "b", "tool": "read_file", "config": {"path": "secret.txt", "root": "."}},
    ]
    write("r.json", [action("calculator", operation="sum", numbers=[1]), final("Done.")])
    write("flow.json", {"id": "w", "nodes": nodes, "edges": [{"from": "a", "to": "b"}]})
    run = cli("run", "flow.json", "--json").json["run_id"]
    write("agent-core.yaml", {"presets": {"read_file": {"root": "data"}}})
    before = cli("show", run).out
    refused = cli("decide", run, "approve")
    assert refused.code == 3
    assert "presets of agent-core.yaml bind root of read_file to 'data' or less" in refused.err
    assert cli("show", run).out == before


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("before", "after", "code"), [({}, 1000, 0), ({"max_bytes": 9}, 1000, 0), ({"max_bytes": 9}, 8, 3)]
)
def test_a_preset_that_came_later_refuses_what_was_given_alone(
    cli: Cli, write: Write, before: Any, after: int, code: int
) -> None:
    write("agent-core.yaml", {"presets": {"http_request": before}})
    write("r.json", [action("calculator", operation="sum", numbers=[1]), final("Done.")])
    allowed = ["http_request", {"tool": "calculator", "approval": "always"}]
    write("flow.json", _flow("agent_core", {**WAITING, "approval": "never", "allowed_tools": allowed}))
    run = cli("run", "flow.json", "--json").json["run_id"]
    write("agent-core.yaml", {"presets": {"http_request": {"max_bytes": after}}})
    assert cli("decide", run, "approve").code == code


def test_no_symlink_leads_out_of_a_directory_that_the_host_presets(cli: Cli, write: Write, home: Path) -> None:
    (home / "data").mkdir()
    (home / "beside").mkdir()
    (home / "data" / "link").symlink_to("../beside")
    write("agent-core.yaml", {"presets": {"write_file": {"root": "data"}}})
    write("flow.json", _flow("write_file", {"path": "x.txt", "text": "x", "root": "data/link"}))
    refused = cli("run", "flow.json")
    assert (refused.code, list((home / "beside").iterdir())) == (1, [])
    assert "a symlink leads to the directory 'data/link'; name the directory itself" in refused.out


def test_a_denial_that_denies_nothing_is_told(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"deny_tools": ["calculatr"]})
    told = cli("tools")
    assert (told.code, "deny_tools/0: no tool is called 'calculatr'; did you mean calculator" in told.err) == (3, True)
    write("agent-core.yaml", {})
    write("r.json", [final()])
    flow = _agent("*")
    flow["nodes"][0]["config"]["deny_tools"] = ["calculatr"]
    write("flow.json", flow)
    assert "deny_tools/0: no tool is called 'calculatr'; did you mean calculator" in cli("validate", "flow.json").out


def test_a_configuration_of_another_name_or_another_user_is_named(
    cli: Cli, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("below/agent-core.yml", "deny_tools: [echo]")
    write("agent-core.yaml", OWN)
    monkeypatch.chdir(home / "below")
    told = cli("tools")
    assert "agent-core.yml is not read; call it agent-core.yaml" in told.err
    assert "calculator" not in told.out
    monkeypatch.setattr("os.geteuid", lambda: os.stat(home / "agent-core.yaml").st_uid + 1)
    if os.stat(home / "agent-core.yaml").st_uid:
        told = cli("tools")
        assert f"{home / 'agent-core.yaml'} belongs to another user and is not used" in told.err


def test_a_preset_of_no_tool_is_told_with_its_place(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"presets": {"htp_request": {}, "http_request": {"allowed_domain": []}}})
    told = cli("tools")
    assert told.code == 3
    assert "agent-core.yaml:1: presets/http_request/allowed_domain: http_request has no such key" in told.err
    write("agent-core.yaml", {"presets": {"htp_request": {}}})
    told = cli("tools")
    assert told.code == 3
    assert (
        "agent-core.yaml:1: presets/htp_request: no tool is called 'htp_request'; did you mean http_request" in told.err
    )


# ── where the configuration is found ─────────────────────────────────────────────────────────────

ECHO = _flow("echo", {"text": "hello"})
OWN = {"deny_tools": ["calculator"]}
"""A host that can be told by what it does not offer."""


def _codes(cli: Cli) -> set[str]:
    return {each["code"] for each in cli("tools", "--json").json}


def test_the_configuration_is_found_upwards(
    cli: Cli, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("agent-core.yaml", OWN)
    write("below/deep/flow.json", ECHO)
    monkeypatch.chdir(home / "below" / "deep")
    assert "calculator" not in _codes(cli)
    told = cli("run", "flow.json", "--verbose")
    assert (told.code, f"host configuration: {home / 'agent-core.yaml'}" in told.err) == (0, True)


@pytest.mark.exhaustive
def test_one_beside_the_definition_counts_only_beneath_the_working_directory(
    cli: Cli, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("here/flows/agent-core.yaml", {"deny_tools": ["echo"]})
    flow = write("here/flows/flow.json", ECHO)
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    ran = cli("run", str(flow))
    assert ran.code == 0
    assert f"{flow.parent / 'agent-core.yaml'} lies beside the definition and is not used; --config takes it" in ran.err
    assert cli("run", str(flow), "--config", str(flow.parent / "agent-core.yaml")).code == 3
    monkeypatch.chdir(home / "here")
    assert cli("run", "flows/flow.json").code == 3
    write("here/agent-core.yaml", {})
    ran = cli("run", "flows/flow.json")
    assert (ran.code, "is not used" in ran.err) == (0, True)


WAITING = {"model": "scripted:r.json", "max_steps": 3, "prompt": "Go.", "approval": "always", "allowed_tools": ["own"]}


def test_a_run_goes_on_from_any_directory_on_the_host_that_began_it(
    cli: Cli, write: Write, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        "own.py",
        "from utools import tool\n\n@tool(effect='read')\ndef own(q: str) -> str:\n    'Acts.'\n    return q\n",
    )
    write("agent-core.yaml", {"tools": ["own.py:own"]})
    write("r.json", [action("own"), final("Done.")])
    write("flow.json", _flow("agent_core", WAITING))
    waits = cli("run", "flow.json", "--json")
    run = waits.json["run_id"]
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert cli("replay", run).code == 0
    (home / "agent-core.yaml").rename(home / "moved.yaml")
    lost = cli("decide", run, "approve")
    assert lost.code == 3
    assert f"{home / 'agent-core.yaml'}: run '{run}' began with this host configuration, which is gone" in lost.err
    (home / "moved.yaml").rename(home / "agent-core.yaml")
    done = cli("decide", run, "approve", "--json")
    assert (done.code, done.json["outputs"]["a"]["final_answer"]) == (0, "Done.")
    assert cli("replay", run).code == 0


def test_a_program_and_the_command_line_have_one_conversation(cli: Cli, write: Write, home: Path) -> None:
    write("agent-core.yaml", {})
    turn = {"op": "persist", "session_id": "s", "user_message": "Hi.", "final_answer": "Hello.", "turn_id": "1"}
    Engine.from_config().run_sync(load_workflow(_flow("context_manager", turn)))
    write("load.json", _flow("context_manager", {"op": "load", "session_id": "s"}))
    loaded = cli("run", "load.json", "--json").json["outputs"]["a"]
    assert [message["content"] for message in loaded] == ["Hi.", "Hello."]


def test_no_tool_writes_a_host_configuration_anywhere(cli: Cli, write: Write, home: Path) -> None:
    (home / "out").mkdir()
    write("flow.json", _flow("write_file", {"path": "agent-core.yaml", "text": "{}", "root": "out"}))
    refused = cli("run", "flow.json")
    assert (refused.code, list((home / "out").iterdir())) == (1, [])
    assert "says what this host does" in refused.out


def test_an_engine_of_a_file_that_is_wrong_says_where(write: Write, home: Path) -> None:
    file = write("host.yaml", "presets: {echo: {nix: 1}}")
    with pytest.raises(Exception, match=r"host\.yaml:1: presets/echo/nix: echo has no such key; there are text"):
        asyncio.run(asyncio.to_thread(Engine.from_config, file))
