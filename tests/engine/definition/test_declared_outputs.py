"""A workflow that declares outputs gives its caller those alone; a program also has the nodes'."""

import json
from typing import Any

import pytest

from agent_core import replay
from agent_core.models import ScriptedModel
from engine_shim import Engine, MemoryRunStore, RunResult, load_workflow
from engine_shim.runs.loops import LOOPS
from support.by_hand import action, final
from support.command import Cli, Write

SECRET = "whole page of the inner node"
SUB: dict[str, Any] = {
    "id": "sub",
    "nodes": [{"id": "page", "tool": "echo", "config": {"text": SECRET}}],
    "outputs": {"answer": "short", "page": "a page"},
}


@pytest.fixture
def sub(write: Write) -> None:
    write("sub.json", SUB)
    write("plain.json", {**SUB, "outputs": {}})


def run(nodes: list[Any], replies: Any = (), **keys: Any) -> tuple[RunResult, MemoryRunStore]:
    store = MemoryRunStore()
    engine = Engine(store=store, model=ScriptedModel(list(replies)))
    result = engine.run_sync(load_workflow({"id": "w", "nodes": nodes, **keys}), run_id="r")
    assert replay(store.journal, run_id="r", loops=LOOPS).identical
    return result, store


@pytest.mark.usefixtures("sub")
def test_sub_workflow_gives_what_it_declares_and_nothing_of_its_nodes() -> None:
    invoke = {"id": "s", "tool": "invoke_workflow", "config": {"workflow": "sub.json"}}
    result, _ = run([invoke, {"id": "say", "tool": "echo", "config": {"text": "{{nodes.s.outputs.page}}"}}])
    assert result.outputs["s"]["outputs"] == {"answer": "short", "page": "a page"}
    assert result.outputs["say"] == "a page", "an output may be called like a node"
    assert SECRET not in json.dumps(result.as_json())


@pytest.mark.usefixtures("sub")
def test_sub_workflow_without_declared_outputs_gives_those_of_its_nodes() -> None:
    result, _ = run([{"id": "s", "tool": "invoke_workflow", "config": {"workflow": "plain.json"}}])
    assert result.outputs["s"]["outputs"] == {"page": SECRET}


@pytest.mark.usefixtures("sub")
def test_items_and_models_that_call_it_get_them_alone_as_well() -> None:
    invoke = {"id": "s", "tool": "invoke_workflow", "config": {"workflow": "sub.json"}, "foreach": [1, 2]}
    result, _ = run([invoke])
    assert [each["outputs"] for each in result.outputs["s"]["results"]] == [{"answer": "short", "page": "a page"}] * 2
    tools = [{"tool": "invoke_workflow", "preset": {"workflow": "sub.json"}}]
    config = {"model": "m", "max_steps": 3, "prompt": "x", "allowed_tools": tools}
    replies = [action("invoke_workflow", inputs={}), final("ok")]
    result, _ = run([{"tool": "agent_core", "config": config}], replies)
    (told,) = [each for each in result.outputs["agent_core"]["messages_json"] if each["role"] == "tool"]
    assert "short" in told["content"]
    assert SECRET not in json.dumps(result.as_json())


def test_program_has_the_nodes_outputs_beside_the_declared_ones() -> None:
    nodes = SUB["nodes"]
    result, store = run(nodes, outputs=SUB["outputs"])
    assert result.outputs == {"page": "a page", "answer": "short"}
    assert (result.nodes, result.declared) == ({"page": SECRET}, SUB["outputs"])
    assert set(result.as_json()) == {"run_id", "status", "outputs", "path", "waiting", "journal", "error"}
    other, _ = run(nodes, outputs={"answer": "short"})
    assert other.outputs == {"page": SECRET, "answer": "short"}
    assert Engine(store=store).result("r") == result
    plain, _ = run(nodes)
    assert (plain.outputs, plain.declared) == ({"page": SECRET}, None)


def test_command_line_shows_what_is_declared_and_gives_all_as_json(cli: Cli, write: Write) -> None:
    write("flow.json", {**SUB, "outputs": {"answer": "short"}})
    assert SECRET not in cli("run", "flow.json").out
    given = json.loads(cli("run", "flow.json", "--json").out)
    assert given["outputs"] == {"page": SECRET, "answer": "short"}
