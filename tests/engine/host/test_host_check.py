"""What a host cannot give to a definition: secrets, keys, programs. Told by `validate`, and by `run` before it acts."""

import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import Cli, Write
from support.mcp_servers import FAULTY
from support.optional import needs

NODE = "nodes/0/config"
AGENT = {"model": "scripted:replies.json", "max_steps": 1, "prompt": "p"}
NOT_ALLOWED = "the secret HOOK is not allowed; the operator lists allowed names in AGENT_CORE_SECRET_ENV"
NOT_SET = "the secret HOOK is not set in the environment of the host"


@pytest.fixture(autouse=True)
def _clean(home: Any, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOOK", "STAGE", "OPENAI_API_KEY", "GATEWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    write("replies.json", ['{"type":"final","answer":"x"}'])


def agent(**config: Any) -> dict[str, Any]:
    return {"tool": "agent_core", "config": {**AGENT, "allowed_tools": [], **config}}


BOT = {"text": "hi", "webhook_env": "HOOK"}
USES: dict[str, tuple[dict[str, Any], str]] = {
    "declared": ({"env": ["HOOK"], "nodes": [{"tool": "echo", "config": {"text": "x"}}]}, "env/0"),
    "named in a config": ({"nodes": [{"tool": "feishu_bot", "config": BOT}]}, f"{NODE}/webhook_env"),
    "named in a list": ({"nodes": [{"tool": "health", "config": {"redis_env": ["HOOK"]}}]}, f"{NODE}/redis_env/0"),
    "named in a preset": (
        {"nodes": [agent(allowed_tools=[{"tool": "feishu_bot", "preset": {"webhook_env": "HOOK"}}])]},
        f"{NODE}/allowed_tools/0/preset/webhook_env",
    ),
}


def places(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["where"], each["message"]) for each in found]


@pytest.mark.sampled
@pytest.mark.parametrize(("definition", "where"), USES.values(), ids=USES)
def test_secret_that_the_host_does_not_allow_is_a_problem(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch, definition: dict[str, Any], where: str
) -> None:
    flow = str(write("flow.json", {"id": "w", **definition}))
    monkeypatch.setenv("HOOK", "https://example.com/hook")
    ran = cli("validate", flow, "--json")
    assert (ran.code, [each["where"] for each in ran.json["problems"]]) == (3, [where])
    assert ran.json["problems"][0]["message"].startswith(NOT_ALLOWED)
    ran = cli("run", flow, "--json")
    assert (ran.code, ran.json["error"]["where"]) == (3, where)
    assert cli("runs").out == "no runs\n"


@pytest.mark.sampled
@pytest.mark.parametrize(("definition", "where"), USES.values(), ids=USES)
def test_secret_that_is_not_set_stops_a_run_and_is_a_warning_where_none_is_needed(
    cli: Cli, write: Write, definition: dict[str, Any], where: str
) -> None:
    flow = str(write("flow.json", {"id": "w", **definition}))
    write("agent-core.yaml", {"secret_env": ["HOOK"]})
    ran = cli("validate", flow, "--json")
    assert (ran.code, ran.json["problems"]) == (0, [])
    assert places(ran.json["warnings"]) == [(where, NOT_SET)]
    ran = cli("run", flow, "--json")
    assert (ran.code, ran.json["error"]["where"], ran.json["error"]["message"]) == (3, where, NOT_SET)


def test_plain_variable_that_is_not_set_is_a_warning_too(cli: Cli, write: Write) -> None:
    echo = {"tool": "echo", "config": {"text": "{{env.STAGE}}"}}
    flow = str(write("flow.json", {"id": "w", "env": [{"name": "STAGE", "plain": True}], "nodes": [echo]}))
    ran = cli("validate", flow, "--json")
    assert (ran.code, places(ran.json["warnings"])) == (0, [("env/0", "this variable is not set (got 'STAGE')")])
    assert cli("run", flow).code == 3


def test_secret_of_a_sub_workflow_is_told_with_both_places(cli: Cli, write: Write) -> None:
    write("below.json", {"id": "b", "nodes": [{"tool": "feishu_bot", "config": BOT}]})
    node = {"tool": "invoke_workflow", "config": {"workflow": "below.json"}}
    ran = cli("run", str(write("flow.json", {"id": "w", "nodes": [node]})), "--json")
    assert (ran.code, ran.json["error"]["where"]) == (3, f"{NODE}/workflow")
    assert ran.json["error"]["message"].startswith("below.json:1: nodes/0 (feishu_bot)/config/webhook_env: the secret")


def test_all_that_a_host_lacks_is_told_at_once(cli: Cli, write: Write) -> None:
    nodes = [{"tool": "feishu_bot", "config": BOT}, agent(model="openai:gpt-4o-mini")]
    err = cli("run", str(write("flow.json", {"id": "w", "nodes": nodes}))).err
    assert [word for word in ("webhook_env: ", "model: the model needs a key: set OPENAI_API_KEY") if word in err] != []
    assert len(err.splitlines()) == 2


# ── keys of endpoints ────────────────────────────────────────────────────────────────────────────

GATEWAY = "https://gateway.example/v1"
KEYS: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "not paired": (
        {"base_url": GATEWAY},
        {},
        f"no key is sent to {GATEWAY}: base_urls of the host's configuration pairs it with none",
    ),
    "paired, not set": (
        {"base_url": GATEWAY},
        {"base_urls": {GATEWAY: "GATEWAY_TOKEN"}},
        f"no key is sent to {GATEWAY}: GATEWAY_TOKEN is not set",
    ),
    "on this machine, paired, not set": (
        {"base_url": "http://127.0.0.1:8080/v1"},
        {"base_urls": {"http://127.0.0.1:8080/v1/": "GATEWAY_TOKEN"}},
        "no key is sent to http://127.0.0.1:8080/v1: GATEWAY_TOKEN is not set",
    ),
    "on this machine": ({"base_url": "http://127.0.0.1:8080/v1"}, {}, None),
    "in this network": ({"base_url": "http://10.1.2.3/v1"}, {}, None),
    "by a name of this machine": ({"base_url": "http://localhost:8080/v1"}, {}, None),
    "a vendor's own": ({}, {}, "the model needs a key: set OPENAI_API_KEY"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("config", "host", "message"), KEYS.values(), ids=KEYS)
def test_endpoint_that_gets_no_key_is_warned_of(
    cli: Cli, write: Write, config: dict[str, Any], host: dict[str, Any], message: str | None
) -> None:
    write("agent-core.yaml", host)
    node = agent(**{"model": "openai:m", **config})
    ran = cli("validate", str(write("flow.json", {"id": "w", "nodes": [node]})), "--json")
    assert (ran.code, ran.json["problems"]) == (0, [])
    assert places(ran.json.get("warnings", [])) == ([] if message is None else [(f"{NODE}/model", message)])


def test_endpoint_whose_key_is_set_is_not(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "g")
    write("agent-core.yaml", {"base_urls": {GATEWAY: "GATEWAY_TOKEN"}})
    flow = write("flow.json", {"id": "w", "nodes": [agent(model="openai:m", base_url=GATEWAY)]})
    assert cli("validate", str(flow), "--json").json == {"ok": True, "problems": []}


# ── programs ─────────────────────────────────────────────────────────────────────────────────────

COMMAND = {"code": "count", "description": "Counts.", "schema": {"type": "object", "properties": {}}}


def manifest(*argv: str) -> dict[str, Any]:
    return {**COMMAND, "command": {"argv": list(argv)}}


PROGRAMS: dict[str, tuple[str, str | None]] = {
    "not installed": (
        "no-such-program",
        "'no-such-program': it is not installed on this host",
    ),
    "no such file": (
        "./no-such-program",
        "'./no-such-program': there is no such executable file",
    ),
    "installed": (sys.executable, None),
}
WAYS: dict[str, tuple[dict[str, Any], str]] = {
    "node": ({"tool": "count"}, NODE),
    "agent": (agent(allowed_tools=["count"]), f"{NODE}/allowed_tools/0"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("node", "where"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("program", "message"), PROGRAMS.values(), ids=PROGRAMS)
def test_command_whose_program_is_not_there_is_a_problem_where_it_is_used(
    cli: Cli, write: Write, program: str, message: str | None, node: dict[str, Any], where: str
) -> None:
    write("count.json", manifest(program))
    write("agent-core.yaml", {"manifests": ["count.json"]})
    flow = str(write("flow.json", {"id": "w", "nodes": [node]}))
    ran = cli("validate", flow, "--json")
    told = [(where, f"the tool count starts the program {message}")]
    assert places(ran.json["problems"]) == ([] if message is None else told)
    if message is not None:
        assert (ran.code, cli("run", flow, "--json").json["error"]["where"]) == (3, where)
        assert cli("validate", str(write("other.json", {"id": "w", "nodes": [agent()]}))).code == 0


UNCALLED: dict[str, tuple[dict[str, Any], str]] = {
    "every tool": (agent(allowed_tools=["*"]), f"{NODE}/allowed_tools/0"),
    "a node that may fail": ({"tool": "count", "on_error": "continue"}, NODE),
}


@pytest.mark.parametrize(("node", "where"), UNCALLED.values(), ids=UNCALLED)
def test_program_that_a_run_may_do_without_is_a_warning(
    cli: Cli, write: Write, node: dict[str, Any], where: str
) -> None:
    write("count.json", manifest("no-such-program"))
    write("agent-core.yaml", {"manifests": ["count.json"]})
    below = write("below.json", {"id": "b", "nodes": [node]})
    invoke = {"tool": "invoke_workflow", "config": {"workflow": below.name}}
    flow = write("flow.json", {"id": "w", "nodes": [invoke]})
    for file, shown in (below, where), (flow, f"{NODE}/workflow"):
        ran = cli("validate", str(file), "--json")
        told = [each for each in ran.json["warnings"] if "starts the program" in each["message"]]
        assert (ran.code, [each["where"] for each in told]) == (0, [shown])
        assert cli("run", str(file)).code == 0


@needs("mcp")
def test_mcp_server_whose_program_is_not_there_is_a_problem_where_its_tool_is_used(
    cli: Cli, write: Write, home: Path
) -> None:
    program = write("server", f'#!/bin/sh\nexec {sys.executable} {FAULTY} "$@"\n')
    program.chmod(0o755)
    write("agent-core.yaml", {"mcp_servers": {"own": {"command": ["./server", str(home)], "tools": ["echo"]}}})
    flow = str(write("flow.json", {"id": "w", "nodes": [agent(allowed_tools=["mcp.own.echo"])]}))
    assert cli("validate", flow).code == 0
    program.unlink()
    ran = cli("validate", flow, "--json")
    why = "the MCP server 'own' starts the program './server': there is no such executable file"
    assert places(ran.json["problems"]) == [(f"{NODE}/allowed_tools/0", why)]
    assert cli("run", flow).code == 3


def test_no_key_is_missed_that_is_set(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test")
    write("flow.json", {"id": "w", "nodes": [agent(model="openai:m")]})
    assert cli("validate", "flow.json").out == "ok\n"


# ── another model, and several definitions ───────────────────────────────────────────────────────


def test_a_fault_of_the_model_option_is_told_as_one(cli: Cli, write: Write) -> None:
    write("flow.json", {"id": "w", "nodes": [agent(model="scripted:a.json")]})
    write("a.json", ["Hello."])
    for command in ("run", "validate"):
        ran = cli(command, "flow.json", "--model", "scripted:below/none.json")
        told = "--model: the script cannot be read: No such file or directory (got 'below/none.json')"
        assert (ran.code, told in ran.out + ran.err, "flow.json" in ran.out + ran.err) == (3, True, False)
    assert cli("validate", "flow.json", "--model", "").out.startswith("--model: must be at least 1 character")


def test_a_definition_is_validated_with_the_model_of_the_option(cli: Cli, write: Write) -> None:
    write("flow.json", {"id": "w", "nodes": [agent(model="scripted:none.json")]})
    write("a.json", ["Hello."])
    assert cli("validate", "flow.json").code == 3
    assert cli("validate", "flow.json", "--model", "scripted:a.json").out == "ok\n"


def test_several_definitions_are_validated_at_once(cli: Cli, write: Write) -> None:
    write("good.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    for name in ("a.json", "b.json"):
        write(name, {"id": "w", "nodes": [{"tool": "ecko"}]})
    assert cli("validate", "good.json", "good.json").out == "ok\n"
    ran = cli("validate", "a.json", "good.json", "b.json", "--json")
    assert (ran.code, ran.json["ok"]) == (3, False)
    assert [each["file"] for each in ran.json["problems"]] == ["a.json", "b.json"]
