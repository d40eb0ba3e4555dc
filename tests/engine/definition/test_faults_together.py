"""The faults of a definition are told together, whatever kind they are of, and in the order of the file's lines."""

from typing import Any

import pytest

from support.command import Cli, Write

FAULTY = """\
id: w
inputs:
  type: object
  properties: {list: {type: array}}
timeout: -3
nodes:
  - id: a
    tool: echo
    config: {text: "{{bad}} {{nodez.x.y}} {{external.a {{nodes.q}} {{nodes.r}}"}
  - id: b
    tool: calculator
    retry: {max_attempts: 0}
    config: {expresion: "1+1"}
  - {id: c, tool: calculatr}
  - id: d
    tool: agent_core
    config:
      model: nobody:x
      max_steps: many
      allowed_tools: [calculatr]
      prompt: "{{nodes.q}}"
outputs:
  x: "{{nodes.zz}}"
"""
LINES = {
    5: "timeout: must be 0 or more (got -3)",
    9: "nodes/0 (a)/config/text: ",
    12: "nodes/1 (b)/retry/max_attempts: must be 1 or more (got 0)",
    14: "nodes/2 (c)/tool: no tool is called 'calculatr'",
    18: "nodes/3 (d)/config/model: no such provider: nobody",
    19: "nodes/3 (d)/config/max_steps: must be an integer",
    20: "nodes/3 (d)/config/allowed_tools/0: no tool is called 'calculatr'",
    21: "nodes/3 (d)/config/prompt: {{nodes.q}}: there is no 'q' in nodes here",
    23: "outputs/x: {{nodes.zz}}: there is no 'zz' in nodes here",
}
IN_ONE_TEXT = (
    "this placeholder is not closed by }} (got '{{external.a')",
    "no placeholder: write {{external.NAME}}",
    "a placeholder starts with one of external, env, nodes, run; did you mean nodes? (got '{{nodez.x.y}}')",
    "{{nodes.q}}: there is no 'q' in nodes here",
    "{{nodes.r}}: there is no 'r' in nodes here",
)


def test_faults_of_every_kind_are_told_at_once_in_the_order_of_lines(cli: Cli, write: Write) -> None:
    write("w.yaml", FAULTY)
    ran = cli("validate", "w.yaml", "--json")
    found = [(each["line"], f"{each['where']}: {each['message']}") for each in ran.json["problems"]]
    assert [line for line, _ in found] == sorted(line for line, _ in found)
    assert {line for line, _ in found} == set(LINES)
    out = cli("validate", "w.yaml").out
    assert [fault for line, fault in LINES.items() if f"w.yaml:{line}: {fault}" not in out] == []
    assert [fault for fault in IN_ONE_TEXT if f"w.yaml:9: nodes/0 (a)/config/text: {fault}" not in out] == []


def test_a_placeholder_of_an_agent_that_cannot_be_read_hides_nothing(cli: Cli, write: Write) -> None:
    entry = {"tool": "echo", "preset": {"text": "{{two}}"}}
    config = {"model": "nobody:x", "max_steps": 3, "allowed_tools": [entry], "prompt": "{{one}}"}
    write("w.json", {"id": "w", "nodes": [{"tool": "calculatr"}, {"tool": "agent_core", "config": config}]})
    out = cli("validate", "w.json").out
    names = ("no such provider: nobody", "no tool is called 'calculatr'", "4 problems")
    told = ("(got '{{one}}')", "(got '{{two}}')", *names)
    assert [each for each in told if each not in out] == []


def test_a_fault_beside_the_graph_hides_none_of_the_graphs(cli: Cli, write: Write) -> None:
    nodes = [{"id": name, "tool": "echo", "config": {"text": text}} for name, text in (("a", "{{nodes.b}}"), ("b", ""))]
    write("w.json", {"id": "w", "timeout": -1, "nodes": nodes, "edges": [{"from": "a", "to": "b"}]})
    out = cli("validate", "w.json").out
    assert "timeout: must be 0 or more" in out
    assert "{{nodes.b}}: no path of edges leads from 'b' to 'a'" in out


def test_nothing_is_said_of_a_graph_that_is_not_whole(cli: Cli, write: Write) -> None:
    nodes = [{"id": name, "tool": "echo", "config": {"text": text}} for name, text in (("a", "{{nodes.b}}"), ("b", ""))]
    write("w.json", {"id": "w", "nodes": nodes, "edges": [{"from": "b", "to": "a", "on": "success"}]})
    assert cli("validate", "w.json").out.endswith("edges/0/on: must be 'error' (got 'success')\n1 problem\n")


def test_faults_of_the_host_and_of_the_definition_stand_together(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", "tools: [nix.py:x]")
    write("w.yaml", "id: w\ntimeout: -1\nnodes: [{tool: echo, config: {text: x}}]")
    out = cli("validate", "w.yaml").out
    assert "agent-core.yaml:1: tools/0: cannot be loaded" in out
    assert "w.yaml:2: timeout: must be 0 or more" in out


PATH_ONLY = "a placeholder takes a path only: one item is items.0.name, and json_transform does a projection"
PROJECTIONS = ("{{nodes.a.items[*].name}}", "{{nodes.a.items[0]}}", "{{nodes.a[].name}}", "{{external.x[?a == 'b']}}")


@pytest.mark.parametrize("text", PROJECTIONS)
def test_a_projection_in_a_placeholder_is_told_as_one(cli: Cli, write: Write, text: str) -> None:
    nodes: list[Any] = [
        {"id": "a", "tool": "json_transform", "config": {"data": {}, "expression": "@"}},
        {"id": "b", "tool": "echo", "config": {"text": f"Names: {text}"}},
    ]
    write("w.json", {"id": "w", "nodes": nodes})
    out = cli("validate", "w.json").out
    assert (out.count(PATH_ONLY), out.splitlines()[-1]) == (1, "1 problem")


def test_a_quoted_key_with_brackets_is_a_path(cli: Cli, write: Write) -> None:
    nodes = [
        {"id": "a", "tool": "json_transform", "config": {"data": {"x[0]": 1}, "expression": "@"}},
        {"id": "b", "tool": "echo", "config": {"text": "{{nodes.a['x[0]']}}"}},
    ]
    write("w.json", {"id": "w", "nodes": nodes})
    assert cli("validate", "w.json").out == "ok\n"


def test_no_null_is_advised_where_a_list_is_needed(cli: Cli, write: Write) -> None:
    nodes = [{"id": "a", "tool": "echo", "foreach": "{{external.list}}", "config": {"text": "{{item}}"}}]
    inputs = {"type": "object", "properties": {"list": {"type": "array"}}}
    write("w.json", {"id": "w", "inputs": inputs, "nodes": nodes})
    asked, refused = cli("validate", "w.json").out, cli("run", "w.json").err
    assert "add it to required, set its default, such as []\n" in asked
    assert "set its default in inputs, such as []" in refused
    assert "{{external.list?}}" not in asked + refused


def test_no_null_is_advised_where_a_list_may_be_missing(cli: Cli, write: Write) -> None:
    nodes = [
        {"id": "a", "tool": "json_transform", "config": {"data": [1], "expression": "@"}},
        {"id": "b", "tool": "json_transform", "config": {"data": [1], "expression": "@"}},
        {"id": "c", "tool": "echo", "foreach": "{{nodes.b}}", "config": {"text": "{{item}}"}},
    ]
    edges = [{"from": "a", "to": "b", "when": "output"}, {"from": "a", "to": "c"}, {"from": "b", "to": "c"}]
    write("w.json", {"id": "w", "nodes": nodes, "edges": edges})
    out = cli("validate", "w.json").out
    assert "'b' may not have run when 'c' starts; foreach needs a list, so let every path lead through it" in out
    assert "{{nodes.b?}}" not in out


def test_schema_of_inputs_that_is_none_hides_no_other_fault_and_judges_no_default(cli: Cli, write: Write) -> None:
    inputs = {"properties": {"a": {"type": "strin", "default": 1}, "b": {"type": "integer", "default": "x"}}}
    nodes = [{"tool": "echo", "config": {"text": "{{nodes.q}}"}}]
    told = cli("validate", str(write("flow.json", {"id": "w", "inputs": inputs, "nodes": nodes})), "--json").json
    assert [each["where"] for each in told["problems"]] == ["inputs/properties/a/type", "nodes/0/config/text"]
