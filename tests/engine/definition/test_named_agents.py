"""Nodes that name an agent of the host's catalogue: what they run as, what they may narrow, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, DefinitionError, replay, verify
from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.fill import fill_agents
from agent_core.agents.narrow import LIMITS, STRICTER
from agent_core.config import AgentConfig
from agent_core.models import ScriptedModel
from engine_shim.definition.load import load_workflow
from engine_shim.definition.validate import validate
from engine_shim.runs.engine import Engine
from engine_shim.runs.loops import LOOPS
from engine_shim.runs.prepare import with_runs
from support.by_hand import action, final
from support.command import Cli, Write
from utools import default_registry

SUPPORT = {
    "name": "support",
    "model": "scripted:x",
    "system_prompt": "You help.",
    "skill_policy": {
        "allow": ["read_file", "calculator", {"tool": "write_file", "preset": {"root": "."}, "approval": "on_write"}]
    },
    "runtime_policy": {"max_steps": 6, "temperature": 0.2, "base_url": "http://127.0.0.1:1/v1"},
}
BOSS = {
    "name": "boss",
    "model": "scripted:x",
    "skill_policy": {"allow": [{"tool": "agent_core", "preset": {"agent": "support", "max_steps": 2}}]},
}
SUM = action("calculator", operation="sum", numbers=[2, 3])


def catalog(*more: dict[str, Any]) -> AgentCatalog:
    found = AgentCatalog([tool.code for tool in with_runs(default_registry(), None).all()])
    for agent in (SUPPORT, BOSS, *more):
        found.register(agent)
    return found


def ask(**config: Any) -> dict[str, Any]:
    return {"id": "w", "nodes": [{"id": "ask", "tool": "agent_core", "config": {"prompt": "2 + 3?", **config}}]}


def engine(directory: Path, script: Any) -> Engine:
    tools = default_registry(directory)
    return Engine(tools, store=directory / "runs.db", model=ScriptedModel(script), agents=catalog())


def problems(**config: Any) -> list[str]:
    return [
        str(each) for each in validate(load_workflow(ask(**config)), with_runs(default_registry(), None), catalog())
    ]


async def test_a_node_runs_as_the_agent_that_it_names_and_its_keys_narrow_it(tmp_path: Path) -> None:
    host = engine(tmp_path, [SUM, final("5")])
    result = await host.run(ask(agent="support", max_steps=4, max_tool_calls=0, allowed_tools=["calc*"]), run_id="r")
    assert result.outputs["ask"]["final_answer"] == "5"
    tape = host.store.journal.load("r")
    started = tape["flow/ask.1"][0].record()
    assert (started["limits"]["steps"], started["limits"]["tool_calls"]) == (4, 10)
    assert list(started["tools"]) == ["calculator"]
    assert "You help." in started["messages"][0]["content"]
    note = started["agent"]
    assert (note["name"], note["kept"]) == ("support", ["calculator"])
    assert note["overrides"] == ["allowed_tools", "max_steps", "max_tool_calls"]
    assert note["dropped"]["read_file"] == "left out by the node"
    assert note["dropped"]["echo"] == "not allowed"
    assert verify(host.store.journal, run_id="r").ok
    assert replay(host.store.journal, run_id="r", loops=LOOPS).identical


async def test_an_agent_may_be_the_tool_of_another(tmp_path: Path) -> None:
    script = {
        "flow/ask.1": [action("agent_core", prompt="2 + 3?"), final("It is 5.")],
        "flow/ask.1/agent_core.4": [SUM, final("5")],
    }
    host = engine(tmp_path, script)
    assert (await host.run(ask(agent="boss"), run_id="r")).outputs["ask"]["final_answer"] == "It is 5."
    below = host.store.journal.load("r")["flow/ask.1/agent_core.4"][0].record()
    assert (below["agent"]["name"], below["limits"]["steps"]) == ("support", 2)


async def test_a_run_goes_on_as_the_agent_that_it_began_with(tmp_path: Path) -> None:
    """The definition in the journal has the agent's config, so that a change of the catalogue changes nothing."""
    script = {"flow/ask.1": [action("write_file", path="a.txt", text="5"), final("done")]}
    result = await engine(tmp_path, script).run(ask(agent="support"), run_id="r")
    assert result.status == "waiting"
    call = result.waiting[0]
    second = Engine(default_registry(tmp_path), store=tmp_path / "runs.db", model=ScriptedModel(script))
    again = await second.resume("r", decisions={(call["strand"], call["n"]): Approve()})
    assert again.outputs["ask"]["final_answer"] == "done"
    assert (tmp_path / "a.txt").read_text() == "5"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown agent": ({"agent": "suport"}, "nodes/0/config/agent: there is no agent 'suport'; did you mean 'support'?"),
    "no name": ({"agent": 3}, "nodes/0/config/agent: must be the name of an agent (got 3)"),
    "more steps": (
        {"agent": "support", "max_steps": 7},
        "max_steps: agent 'support' is limited to 6, which a node",
    ),
    "more than the default": (
        {"agent": "support", "timeout": 300},
        "timeout: agent 'support' is limited to 120,",
    ),
    "more repairs": ({"agent": "support", "max_repairs": 2}, "max_repairs: agent 'support' is limited to 1, which"),
    "limit from a placeholder": ({"agent": "support", "max_steps": "{{run.id}}"}, "max_steps: agent 'support' is"),
    "another tool": (
        {"agent": "support", "allowed_tools": ["echo"]},
        "allowed_tools/0: agent 'support' has no such",
    ),
    "a bound tool": (
        {"agent": "support", "allowed_tools": [{"tool": "calculator"}]},
        "allowed_tools/0: must be a",
    ),
    "tools in a text": ({"agent": "support", "allowed_tools": "calculator"}, "allowed_tools: must be a list of codes"),
    "denials in a text": ({"agent": "support", "deny_tools": "calculator"}, "deny_tools: must be a list of codes"),
    "another system prompt": (
        {"agent": "support", "system_prompt": "x"},
        "system_prompt: belongs to the agent;",
    ),
    "tools of the vendor": (
        {"agent": "support", "extra": {"web_search_options": {}}},
        "extra: belongs to the agent: it may switch a vendor's tools on; leave it out",
    ),
    "no approval": (
        {"agent": "support", "approval": "sometimes"},
        "approval: agent 'support' has never; a node may",
    ),
    "unknown key": ({"agent": "support", "stepz": 1}, "nodes/0/config"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("config", "message"), REFUSED.values(), ids=REFUSED)
def test_what_gives_an_agent_more_than_it_has_is_a_problem_at_its_place(config: dict[str, Any], message: str) -> None:
    (problem,) = problems(**config)
    assert message in problem


def test_agents_that_call_each_other_in_a_circle_are_refused() -> None:
    one = {**BOSS, "name": "one", "skill_policy": {"allow": [{"tool": "agent_core", "preset": {"agent": "two"}}]}}
    two = {**BOSS, "name": "two", "skill_policy": {"allow": [{"tool": "agent_core", "preset": {"agent": "one"}}]}}
    found = validate(load_workflow(ask(agent="one")), with_runs(default_registry(), None), catalog(one, two))
    assert [each.message for each in found] == ["this agent calls itself: one → two → one (got 'one')"]


def test_an_approval_of_the_node_is_that_of_each_tool_which_asks_less() -> None:
    config = fill_agents({"agent": "support", "prompt": "x", "approval": "always"}, catalog())
    assert [each["approval"] for each in config["allowed_tools"] if isinstance(each, dict)] == ["always"]
    assert config["approval"] == "always"


PLANNER = {**SUPPORT, "name": "planner", "runtime_policy": {"mode": "plan", "plan": {"confirm": True}}}


@pytest.mark.parametrize(
    ("keys", "is_wider"),
    [
        ({"plan": {"on_failure": "skip"}}, True),
        ({"plan": {"confirm": False}}, True),
        ({"mode": "react"}, True),
        ({"mode": "plan", "plan": {"confirm": True, "on_failure": "replan"}}, False),
    ],
)
def test_a_plan_that_a_person_confirms_stays_one(keys: dict[str, Any], is_wider: bool) -> None:
    config = {"agent": "planner", "prompt": "x", **keys}
    if not is_wider:
        assert fill_agents(config, catalog(PLANNER))["plan"] == keys["plan"]
        return
    with pytest.raises(DefinitionError, match="agent 'planner' lets a person confirm its plan; a node may not"):
        fill_agents(config, catalog(PLANNER))


def test_the_keys_of_the_agents_own_endpoint_are_not_for_another_model() -> None:
    given = {"agent": "support", "prompt": "x"}
    assert "base_url" in fill_agents(given, catalog())
    assert "base_url" not in fill_agents({**given, "model": "openai:gpt-4o-mini"}, catalog())


def test_every_key_of_a_config_is_known_to_be_free_or_to_be_narrowed() -> None:
    """A new key that limits an agent must not be free in a node by oversight."""
    narrowed = {*LIMITS, *STRICTER, "max_repairs", "allowed_tools", "deny_tools", "system_prompt", "documents", "agent"}
    narrowed |= {"extra", "mode", "plan"}
    free = {
        *("prompt", "messages_json", "developer_prompt", "examples", "language", "prompts", "protocol"),
        *("parsing", "response_format", "temperature", "top_p", "seed", "stop", "tool_choice", "max_input_tokens"),
        *("observation_max_len", "trace_max_bytes", "max_history_messages", "repair_scope", "answer_schema"),
        *("primary_output", "model", "fallback_models", "base_url", "api_key_env", "trusted_text"),
        *("api", "reasoning", "service_tier", "user_id"),
    }
    assert narrowed | free == set(AgentConfig.model_fields)
    assert not narrowed & free


def test_a_workflow_of_a_host_names_its_agents_and_the_command_line_knows_them(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", "{}")
    write("agents/desk.yaml", 'name: desk\nmodel: "scripted:desk.json"\nskill_policy: {allow: [calculator]}\n')
    write("desk.json", '{"flow/agent_core.1": [{"type": "final", "answer": "5"}]}')
    write("w.yaml", 'id: w\nnodes: [{tool: agent_core, config: {agent: desk, prompt: "2 + 3?"}}]\n')
    assert cli("validate", "w.yaml").code == 0
    ran = cli("run", "w.yaml")
    assert ran.code == 0
    assert "agent_core" in ran.out
    assert "calculator" in cli("schema", "w.yaml").out
    assert "identical" in cli("agents", "check", "desk").out
    write("w2.yaml", 'id: w\nnodes: [{tool: agent_core, config: {agent: dsk, prompt: "x"}}]\n')
    refused = cli("run", "w2.yaml")
    assert "there is no agent 'dsk'; did you mean 'desk'?" in refused.err
