"""Tools for nodes alone: `set`, and the functions that a host names. No model ever sees them."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.agents.catalog import AgentCatalog
from agent_core.errors import DefinitionError
from agent_core.models import ScriptedModel
from engine_shim import Engine, load_workflow
from support.by_hand import final
from support.command import Cli, Write
from utools import Tool, ToolRegistry, tool

STEPS = '''
from utools import tool
from statistics import mean


def net(prices: list[float], vat: float = 0.19) -> float:
    """Add up prices, and take the tax out."""
    return round(sum(prices) / (1 + vat), 2)


@tool(effect="write")
def book(order: str) -> dict[str, str]:
    """Book an order."""
    return {"booked": order}


def _own(x: int) -> int:
    return x
'''


def flow(*nodes: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"id": "w", "nodes": list(nodes), **keys}


def agent(*allowed: Any) -> dict[str, Any]:
    config = {"model": "scripted:r.json", "max_steps": 1, "prompt": "x", "allowed_tools": list(allowed)}
    return flow({"tool": "agent_core", "config": config})


@pytest.fixture
def host(write: Write, home: Path) -> None:
    (home / "steps.py").write_text(STEPS)
    write("agent-core.yaml", {"functions": ["steps.py"]})
    write("r.json", [{"type": "final", "answer": "x"}])


@pytest.mark.usefixtures("host")
def test_node_calls_functions_of_a_file_and_reads_what_was_set(cli: Cli, write: Write) -> None:
    nodes = (
        {"id": "order", "tool": "set", "config": {"prices": [11.9, 23.8], "n": {"a": "{{external.a}}"}}},
        {"id": "net", "tool": "net", "config": {"prices": "{{nodes.order.prices}}"}},
        {"id": "book", "tool": "book", "config": {"order": "{{nodes.order.n.a}}"}},
    )
    write("flow.json", flow(*nodes))
    ran = cli("run", "flow.json", "--input", "a=A-17", "--json")
    outputs = ran.json["outputs"]
    assert outputs["order"] == {"prices": [11.9, 23.8], "n": {"a": "A-17"}}
    assert (outputs["net"], outputs["book"]) == (30.0, {"booked": "A-17"})
    assert cli("replay", "last").code == 0


@pytest.mark.usefixtures("host")
def test_effect_of_a_function_is_to_read_unless_it_says_otherwise(cli: Cli) -> None:
    tools = {each["code"]: each for each in cli("tools", "--json").json}
    assert {code: tools[code]["effect"] for code in ("net", "book", "set")} == {
        "net": "read",
        "book": "write",
        "set": "read",
    }
    assert {code for code, each in tools.items() if each["node_only"]} == {"net", "book", "respond", "set", "wait"}
    assert not {"_own", "mean"} & tools.keys()


@pytest.mark.usefixtures("host")
def test_name_that_was_not_set_is_refused_before_the_run(cli: Cli, write: Write) -> None:
    nodes = ({"id": "a", "tool": "set", "config": {"total": 1}}, {"id": "b", "tool": "echo", "config": {"text": "x"}})
    write("flow.json", flow(*nodes, outputs={"x": "{{nodes.a.totl}}"}))
    ran = cli("validate", "flow.json")
    assert (ran.code, ran.out.count("there is no 'totl' in nodes.a; did you mean total?")) == (3, 1)


@pytest.mark.sampled
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("code", ["set", "net", "book"])
def test_agent_that_names_one_is_refused(cli: Cli, write: Write, code: str) -> None:
    write("flow.json", agent(code))
    ran = cli("run", "flow.json")
    assert ran.code == 3
    assert f"{code} is for the nodes of workflows alone, and no model calls it" in ran.err


@pytest.mark.usefixtures("host")
def test_agent_that_allows_all_does_not_see_them(home: Path) -> None:
    engine = Engine.from_config(home / "agent-core.yaml", model=ScriptedModel([final("x")]))
    result = engine.run_sync(load_workflow(agent("*")))
    tools = engine.store.journal.load(result.run_id)["flow/agent_core.1"][0].record()["tools"]
    assert "calculator" in tools
    assert not {"set", "net", "book"} & tools.keys()


FAULTS = {
    "missing.py": "there is no file",
    "steps.py:none": "there is no 'none' in steps.py",
    "empty.py": "holds no function of its own",
    "steps.py:mean": None,
    "value.py:N": "is no function",
    "untyped.py": "the parameter 'x' needs a type",
    "steps": "must be module:name or file.py:name",
}


@pytest.mark.sampled
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(("reference", "told"), FAULTS.items(), ids=list(FAULTS))
def test_entry_that_names_no_function_is_refused(
    cli: Cli, write: Write, home: Path, reference: str, told: str | None
) -> None:
    (home / "empty.py").write_text("from statistics import mean\n")
    (home / "value.py").write_text("N = 3\n")
    (home / "untyped.py").write_text("def f(x):\n    return x\n")
    write("agent-core.yaml", {"functions": [reference]})
    ran = cli("tools")
    assert ran.code == 3
    assert "agent-core.yaml" in ran.err
    assert told is None or told in ran.err


def test_function_that_takes_the_code_of_a_tool_is_refused(cli: Cli, write: Write, home: Path) -> None:
    (home / "steps.py").write_text("def echo(text: str) -> str:\n    return text\n")
    write("agent-core.yaml", {"functions": ["steps.py"]})
    ran = cli("tools")
    assert (ran.code, "another tool already has this code" in ran.err) == (3, True)


def hidden() -> Tool:
    @tool(node_only=True)
    def pack(order: str) -> str:
        """Pack an order."""
        return order

    return pack


def test_catalog_gives_no_agent_a_tool_for_nodes() -> None:
    registry = ToolRegistry([hidden(), *_shown()])
    catalog = AgentCatalog(registry)
    about = {"description": "x", "system_prompt": "y", "model": "scripted:r.json"}
    catalog.register({"name": "all", **about})
    assert catalog.codes == ("weigh",)
    with pytest.raises(DefinitionError, match="pack is for the nodes of workflows alone"):
        catalog.register({"name": "one", "skill_policy": {"allow": ["pack"]}, **about})
    assert [each["function"]["name"] for each in registry.definitions()] == ["weigh"]


def _shown() -> list[Tool]:
    @tool
    def weigh(order: str) -> int:
        """Weigh an order."""
        return 1

    return [weigh]
