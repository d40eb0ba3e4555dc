"""The catalogue: which tools an agent gets of a host, and what is told of a bad definition."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.conversation import AgentExecutor
from agent_core.agents.definition import choose_skills, config_of, read_agent
from agent_core.agents.errors import AgentError, AgentNotFound
from agent_core.errors import DefinitionError
from agent_core.models import ScriptedModel
from support.by_hand import final
from utools import default_registry

CODES = ["read_file", "send_mail", "shell_command", "agent_core", "mcp.files.read", "mcp.web.get"]
BY_DEFAULT = ["read_file", "send_mail", "mcp.files.read", "mcp.web.get"]


def agent(**more: Any) -> dict[str, Any]:
    return {"name": "support", "model": "scripted:x", "system_prompt": "You help.", **more}


POLICIES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, BY_DEFAULT),
    ({"skill_policy": {"allow": [], "deny": []}}, BY_DEFAULT),
    ({"skill_policy": {"allow": ["read_file", "shell_command"]}}, ["read_file", "shell_command"]),
    ({"skill_policy": {"allow": ["*"]}}, CODES),
    ({"skill_policy": {"deny": ["send_mail"]}}, ["read_file", "mcp.files.read", "mcp.web.get"]),
    ({"skill_policy": {"allow": ["read_file", "send_mail"], "deny": ["send_*"]}}, ["read_file"]),
    ({"skill_policy": {"allow": [{"tool": "send_mail", "max_calls": 1}]}}, ["send_mail"]),
    ({"mcp_policy": {"servers": ["files"]}}, ["read_file", "send_mail", "mcp.files.read"]),
    ({"mcp_policy": {"servers": []}, "skill_policy": {"allow": ["mcp.*", "read_file"]}}, ["read_file"]),
]


@pytest.mark.parametrize(("policy", "kept"), POLICIES, ids=str)
def test_a_policy_chooses_the_tools(policy: dict[str, Any], kept: list[str]) -> None:
    skills = choose_skills(read_agent(agent(**policy)), CODES)
    assert skills.kept == kept
    assert sorted([*skills.kept, *skills.dropped]) == sorted(CODES)


def test_what_was_dropped_has_its_reason() -> None:
    policy = {"skill_policy": {"deny": ["send_mail"]}, "mcp_policy": {"servers": ["web"]}}
    _, note = config_of(read_agent(agent(**policy)), CODES)
    assert note == {
        "name": "support",
        "kept": ["read_file", "mcp.web.get"],
        "dropped": {
            "send_mail": "denied",
            "shell_command": "never by default",
            "agent_core": "never by default",
            "mcp.files.read": "of another MCP server",
        },
        "overrides": [],
    }
    _, note = config_of(read_agent(agent(skill_policy={"allow": ["read_file"]})), ["read_file", "send_mail"])
    assert note["dropped"] == {"send_mail": "not allowed"}


def test_a_runtime_policy_limits_the_run() -> None:
    config, _ = config_of(read_agent(agent(runtime_policy={"max_steps": 3, "temperature": 0})), CODES)
    assert (config["max_steps"], config["temperature"], config["repair_scope"]) == (3, 0, "unreadable")
    assert config_of(read_agent(agent()), CODES)[0]["max_steps"] == 10


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"skill_policy": {"allow": ["read_fil"]}}, "skill_policy/allow/0", "did you mean"),
    ({"skill_policy": {"allow": ["read_file", "sql_*"]}}, "skill_policy/allow/1", "no tool fits this pattern"),
    ({"skill_policy": {"deny": ["sql"]}}, "skill_policy/deny/0", "there is no such tool; there are read_file"),
    ({"skill_policy": {"deny": ["sql*"]}}, "skill_policy/deny/0", "no tool fits this pattern (got 'sql*')"),
    ({"skill_policy": {"alow": []}}, "skill_policy/alow", "unknown key"),
    ({"runtime_policy": {"max_stepz": 3}}, "runtime_policy", "unknown key 'max_stepz'"),
    ({"runtime_policy": {"prompt": "x"}}, "runtime_policy", "unknown key 'prompt'"),
    ({"runtime_policy": {"max_steps": -1}}, "runtime_policy/max_steps", "must be 0 or more (got -1)"),
    (
        {"mcp_policy": {"servers": ["files", "wep"]}},
        "mcp_policy/servers/1",
        "this host has no such MCP server; did you mean web? (got 'wep')",
    ),
    ({"name": "a b"}, "name", "a b"),
    ({"name": "../x"}, "name", "../x"),
    ({"model": ""}, "model", ""),
    ({"descripton": "x"}, "descripton", "did you mean description?"),
]


@pytest.mark.parametrize(("more", "where", "told"), FAULTS, ids=str)
def test_a_fault_is_told_with_its_file_and_line(more: dict[str, Any], where: str, told: str, tmp_path: Path) -> None:
    lines = [f"{key}: {value!r}" for key, value in {**agent(), **more}.items()]
    (tmp_path / "support.yaml").write_text("\n".join(lines).replace("'", '"'))
    with pytest.raises(DefinitionError) as raised:
        AgentCatalog.from_directory(tmp_path, CODES)
    (problem,) = raised.value.problems  # type: ignore[attr-defined]
    assert (problem.where, told in problem.message) == (where, True), problem
    line = next(n for n, text in enumerate(lines, 1) if text.startswith(next(iter(more))))
    assert str(raised.value).startswith(f"{tmp_path / 'support.yaml'}:{line}: ")


@pytest.mark.parametrize(
    ("policy", "where"),
    [
        ({"servers": ["dcos"]}, "servers/0"),
        ({"resources": [{"server": "docs", "uri": "a:b"}, {"server": "dcos", "uri": "a:b"}]}, "resources/1/server"),
        ({"prompts": [{"server": "dcos", "name": "greet"}]}, "prompts/0/server"),
    ],
    ids=str,
)
def test_a_server_that_the_host_does_not_have_is_told_at_load(policy: dict[str, Any], where: str) -> None:
    async def read(document: Any) -> str:
        return ""

    registry = default_registry()
    registry._readers["docs"] = read
    with pytest.raises(DefinitionError) as raised:
        AgentCatalog(registry).register(agent(mcp_policy=policy, skill_policy={"allow": ["red_file"]}))
    server, tool = raised.value.problems  # type: ignore[attr-defined]
    assert server.where == f"mcp_policy/{where}"
    assert server.message == "this host has no such MCP server; did you mean docs? (got 'dcos')"
    assert tool.where == "skill_policy/allow/0"


def test_all_files_are_read_and_all_their_faults_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\nmodel: scripted:x\n")
    (tmp_path / "b.json").write_text('{"name": "b", "model": "scripted:x", "description": "The second."}')
    (tmp_path / "notes.txt").write_text("no agent")
    assert [each.name for each in AgentCatalog.from_directory(tmp_path, CODES).list()] == ["a", "b"]
    (tmp_path / "c.yaml").write_text("name: [\n")
    (tmp_path / "d.yaml").write_text("name: a\nmodel: scripted:x\n")
    with pytest.raises(DefinitionError) as raised:
        AgentCatalog.from_directory(tmp_path, CODES)
    told = str(raised.value)
    assert "c.yaml" in told
    assert "another agent already has this name (got 'a')" in told


def test_an_agent_that_is_not_there_is_told_with_one_that_is() -> None:
    catalog = AgentCatalog(CODES)
    with pytest.raises(AgentNotFound, match="there is no agent 'x'; this host has none"):
        catalog.get("x")
    catalog.register(agent())
    with pytest.raises(AgentNotFound, match="there is no agent 'suport'; did you mean 'support'") as raised:
        catalog.get("suport")
    assert isinstance(raised.value, AgentError)
    assert raised.value.result is None
    assert catalog.get("support").system_prompt == "You help."


def test_a_tool_that_needs_a_preset_of_its_author_is_none_of_the_default_tools() -> None:
    catalog = AgentCatalog(default_registry())
    catalog.register(agent())
    _, note = catalog.config_of(agent()["name"])
    assert note["dropped"]["feishu_bot"] == "needs a preset of its author"
    assert "calculator" in note["kept"]


async def test_an_agent_without_a_policy_answers_with_the_default_tools_of_a_host() -> None:
    catalog = AgentCatalog(default_registry())
    catalog.register(agent())
    desk = AgentExecutor(catalog, model=ScriptedModel([final("Yes.")]))
    assert (await desk.execute_conversation(agent()["name"], "Are you there?")).content == "Yes."


def test_recorded_replies_beside_the_agents_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text('[{"type": "final", "answer": "Hello."}]')
    (tmp_path / "by_strand.json").write_text('{"agent": ["one"], "agent/2.0": ["two"]}')
    (tmp_path / "support.json").write_text('{"name": "support", "model": "scripted:replies.json"}')
    assert [each.name for each in AgentCatalog.from_directory(tmp_path, CODES).list()] == ["support"]
    for file, text in (("nameless.json", '{"model": "m"}'), ("misspelled.yaml", "nmae: x"), ("list.yaml", "- name: x")):
        (tmp_path / file).write_text(text)
        with pytest.raises(DefinitionError, match=file):
            AgentCatalog.from_directory(tmp_path, CODES)
        (tmp_path / file).unlink()


def test_an_agent_may_limit_what_a_whole_conversation_costs() -> None:
    assert read_agent(agent(max_conversation_tokens=500)).max_conversation_tokens == 500
    with pytest.raises(DefinitionError, match="max_conversation_tokens"):
        read_agent(agent(max_conversation_tokens=0))
