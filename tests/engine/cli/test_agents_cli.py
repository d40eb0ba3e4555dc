"""agent-core agents: what is listed, what is shown of one, and what is told of a bad one."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from agent_core import SqliteJournal, agent_tool
from agent_core.agents import AgentCatalog, AgentExecutor, ConversationOptions
from agent_core.models import ScriptedModel
from support.by_hand import action, final
from support.command import Cli, Write
from utools import ToolRegistry, default_registry

SUPPORT = {
    "name": "support",
    "model": "openai:gpt-4o-mini",
    "description": "Answers customers.",
    "skill_policy": {"allow": ["calc*", "echo"], "deny": ["echo"]},
}


def test_agents_are_listed_with_model_and_description(cli: Cli, write: Write) -> None:
    write("agents/support.json", SUPPORT)
    write("agents/other.yaml", "name: other\nmodel: scripted:x\n")
    ran = cli("agents")
    assert ran.out.splitlines() == [
        "name     model               description",
        "other    scripted:x",
        "support  openai:gpt-4o-mini  Answers customers.",
    ]
    assert [each["name"] for each in cli("agents", "--json").json] == ["other", "support"]


def test_one_is_shown_with_the_tools_that_it_has_and_why_it_lacks_the_others(cli: Cli, write: Write) -> None:
    write("agents/support.json", SUPPORT)
    shown = cli("agents", "show", "support").json
    assert (shown["name"], shown["tools"]) == ("support", ["calculator"])
    assert (shown["dropped"]["echo"], shown["dropped"]["read_file"]) == ("denied", "not allowed")
    missing = cli("agents", "show", "suport")
    assert (missing.code, missing.out) == (2, "")
    assert "there is no agent 'suport'; did you mean 'support'?" in missing.err


def test_a_host_without_agents_says_how_to_write_one(cli: Cli) -> None:
    assert cli("agents").out.startswith("no agents: write one as agents/NAME.yaml")
    assert cli("agents", "--json").json == []


def test_a_bad_agent_is_told_with_file_and_line(cli: Cli, write: Write) -> None:
    write("agents/support.yaml", "name: support\nmodel: scripted:x\nskill_policy:\n  allow: [calculater]\n")
    ran = cli("agents")
    assert (ran.code, ran.out) == (3, "")
    assert "agents/support.yaml:4: skill_policy/allow/0: " in ran.err
    assert "calculator" in ran.err


def test_the_directory_may_have_another_name(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {"agents": "people"})
    write("people/support.json", SUPPORT)
    assert cli("agents", "--json").json[0]["name"] == "support"
    write("agent-core.yaml", {"agents": "nobody"})
    ran = cli("agents")
    assert (ran.code, "agents: there is no such directory (got 'nobody')" in ran.err) == (3, True)


def test_other_words_are_told(cli: Cli) -> None:
    assert "write `agents`, `agents show NAME`, or `agents check NAME`" in cli("agents", "list").err
    assert cli("agents", "show").code == 2


STORE = "data/agent-core/runs.db"
CHECKED: dict[str, Any] = {"name": "support", "model": "scripted:x", "skill_policy": {"allow": ["calculator", "echo"]}}


SCRIPT: Any = [action("calculator", operation="sum", numbers=[2, 3]), action("echo", text="5"), final("It is 5.")]


async def talk(
    definition: dict[str, Any],
    run_id: str,
    script: Any = SCRIPT,
    tools_at: Callable[[Path], ToolRegistry] = default_registry,
    options: ConversationOptions | None = None,
) -> None:
    """A recorded turn in which the agent calculates, echoes and answers."""
    catalog = AgentCatalog([tool.code for tool in tools_at(Path()).all()])
    catalog.register(definition)
    Path(STORE).parent.mkdir(parents=True, exist_ok=True)
    with closing(SqliteJournal(STORE)) as journal:
        agent = AgentExecutor(catalog, model=ScriptedModel(script), journal=journal, tools_at=tools_at)
        await agent.execute_conversation(definition["name"], "What is 2 + 3?", options, run_id=run_id)


async def test_a_changed_policy_is_tried_on_the_recorded_runs_of_the_agent(cli: Cli, write: Write) -> None:
    await talk(CHECKED, "first")
    await talk({**CHECKED, "name": "another"}, "other")
    write("agents/support.json", CHECKED)
    ran = cli("agents", "check", "support")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 run: 1 identical")
    write("agents/support.json", {**CHECKED, "skill_policy": {"allow": ["calculator", "echo"], "deny": ["echo"]}})
    ran = cli("agents", "check", "support")
    assert (ran.code, ran.out.splitlines()[-2]) == (5, "1 run: 1 changed")
    assert ran.out.splitlines()[-1].startswith("first at agent:8: echo: ")
    write("agents/support.json", {**CHECKED, "runtime_policy": {"max_steps": 2}})
    found = cli("agents", "check", "support", "--json").json
    assert [(each["run_id"], each["outcome"]) for each in found["runs"]] == [("first", "changed")]
    assert cli("agents", "check", "support", "--since", "9999-01-01").out == "0 runs\n"


async def test_what_a_turn_itself_set_is_not_the_definitions(cli: Cli, write: Write) -> None:
    await talk(CHECKED, "first", options=ConversationOptions(max_steps=4))
    write("agents/support.json", {**CHECKED, "runtime_policy": {"max_steps": 1}})
    assert cli("agents", "check", "support").out.splitlines()[-1] == "1 run: 1 identical"


async def test_a_tool_that_the_agent_has_since_then_changes_nothing(cli: Cli, write: Write) -> None:
    await talk(CHECKED, "first")
    write("agents/support.json", {**CHECKED, "skill_policy": {"allow": ["calculator", "echo", "read_file", "json_*"]}})
    assert cli("agents", "check", "support").code == 0


def with_agents(root: Path) -> ToolRegistry:
    registry = default_registry(root)
    registry.register(agent_tool(registry, model=ScriptedModel([])))
    return registry


async def test_a_sub_agent_keeps_its_own_policy(cli: Cli, write: Write) -> None:
    preset = {"model": "scripted:x", "max_steps": 3, "allowed_tools": ["echo"]}
    asks = {**CHECKED, "skill_policy": {"allow": [{"tool": "agent_core", "preset": preset}]}}
    script = {
        "agent": [action("agent_core", prompt="Echo."), final("Done.")],
        "agent/agent_core.4": [action("echo", text="5"), final("Echoed.")],
    }
    await talk(asks, "first", script, with_agents)
    write("agents/support.json", {**asks, "runtime_policy": {"max_repairs": 2}})
    ran = cli("agents", "check", "support")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 run: 1 identical")


async def test_stats_count_what_each_agent_did_by_itself(cli: Cli) -> None:
    preset = {"model": "scripted:x", "max_steps": 3, "allowed_tools": ["echo"]}
    asks = {**CHECKED, "name": "boss", "skill_policy": {"allow": [{"tool": "agent_core", "preset": preset}]}}
    script = {
        "agent": [action("agent_core", prompt="Echo."), final("Done.")],
        "agent/agent_core.4": [action("echo", text="5"), action("echo", text="6"), final("Echoed.")],
    }
    await talk(CHECKED, "first")
    await talk(CHECKED, "second")
    await talk(asks, "third", script, with_agents)
    told = cli("stats", "--store", STORE, "--json").json
    counted = {name: (each["runs"], each["steps"], each["tool_calls"]) for name, each in told["agents"].items()}
    assert counted == {"support": (2, 6, 4), "boss": (1, 2, 1), "agent_core": (1, 3, 2)}
    assert sum(each["tokens"] for each in told["agents"].values()) == sum(told["models"]["tokens"].values())
    assert all(each["finish_reasons"] == {"final": each["runs"]} for each in told["agents"].values())


def test_the_agent_that_is_checked_has_to_be_there(cli: Cli) -> None:
    assert "there is no agent 'x'; this host has none" in cli("agents", "check", "x").err


def test_a_changed_workflow_is_tried_on_the_recorded_runs_of_its_agents(cli: Cli, write: Write) -> None:
    node: dict[str, Any] = {"model": "scripted:x.json", "max_steps": 3, "allowed_tools": ["calculator", "echo"]}
    config = {**node, "prompt": "{{external.q}}"}
    flow = {"id": "sums", "nodes": [{"id": "ask", "tool": "agent_core", "config": config}]}
    write("x.json", {"flow/ask.1": SCRIPT})
    write("flow.json", flow)
    write("other.json", {**flow, "id": "others"})
    for file in ("flow.json", "other.json"):
        assert cli("run", file, "--input", "q=2 + 3?", "--store", "runs.db").code == 0
    same = cli("agents", "check", "flow.json", "--against", "runs.db")
    assert (same.code, same.out.splitlines()[-1]) == (0, "1 run: 1 identical")
    write("flow.json", {**flow, "nodes": [{**flow["nodes"][0], "config": {**config, "deny_tools": ["echo"]}}]})
    changed = cli("agents", "check", "flow.json", "--against", "runs.db")
    assert (changed.code, changed.out.splitlines()[-2]) == (5, "1 run: 1 changed")
    assert " at flow/ask.1:8: echo: " in changed.out.splitlines()[-1]
    write("flow.json", {**flow, "nodes": [{**flow["nodes"][0], "config": {**config, "max_steps": "{{external.n}}"}}]})
    assert cli("agents", "check", "flow.json", "--against", "runs.db").code == 0
