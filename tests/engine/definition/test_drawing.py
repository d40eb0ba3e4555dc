"""Workflows drawn: what a terminal shows in 80 columns, and flowcharts that Mermaid can read."""

import re
from pathlib import Path
from typing import Any

import pytest

from engine_shim.definition.drawing import draw_mermaid, draw_text
from engine_shim.definition.graph import graph_of
from engine_shim.definition.load import load_workflow
from support.command import Cli, Write

FIXTURES = Path(__file__).parents[3] / "fixtures/workflows"
FILES = sorted(path for path in FIXTURES.iterdir() if path.suffix in (".yaml", ".json") and "replies" not in path.name)
EVERYTHING = """\
Everything

▶ look  read_file
  │ up to 2 attempts
  │ at most 20 seconds
  ├→ start
  └→ start  on error

  start  echo
  ├→ improve
  └→ below

  below  invoke_workflow parallel.yaml
  │ the run goes on if it fails
  └→ done

  improve  agent_core
  │ model scripted:graph.replies.json
  │ tools none
  │ the run goes on if it fails
  ├↺ improve  if a model says: The answer needs another round., up to 3 times
  └→ done  when output.finish_reason == 'final'

  done  echo
  ■ end
"""


def drawn(source: Any, draw: Any = draw_text) -> list[str]:
    definition = load_workflow(source).definition
    lines: list[str] = draw(definition, graph_of(definition))
    return lines


def test_a_graph_with_everything_in_it() -> None:
    assert "\n".join([*drawn(FIXTURES / "graph.yaml"), ""]) == EVERYTHING


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_node_is_drawn_in_80_columns(path: Path) -> None:
    lines, definition = drawn(path), load_workflow(path).definition
    assert max(map(len, lines)) <= 80
    shown = [line[2:].partition(" ")[0] for line in lines[1:] if line and line[2] not in "│├└■ "]
    assert sorted(shown) == sorted(node.id for node in definition.nodes)


NODE = r'    n\d+(\(\["[^"\n]+"\]\)|\[\["[^"\n]+"\]\]|\["[^"\n]+"\])'
EDGE = r'    n\d+ (-->|-\.->)(\|"[^"\n]+"\|)? n\d+'


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_flowchart_has_a_line_for_each_node_and_edge(path: Path) -> None:
    head, *lines = drawn(path, draw_mermaid)
    assert head == "flowchart TD"
    assert [line for line in lines if not re.fullmatch(f"{NODE}|{EDGE}", line)] == []
    definition = load_workflow(path).definition
    assert sum(bool(re.fullmatch(NODE, line)) for line in lines) == len(definition.nodes)


HOSTILE = '"]; click n0 "javascript:x" %% <b>#`{{a}}`|\n-->'


def test_no_text_of_a_definition_ends_a_label() -> None:
    nodes = [{"id": "end", "tool": "echo", "foreach": "{{external.rows}}", "config": {}}, {"id": "b", "tool": HOSTILE}]
    edges = [{"from": "end", "to": "b", "when": f"output == '{HOSTILE}'"}, {"from": "b", "to": "end", "ask": HOSTILE}]
    definition = {"id": "w", "nodes": nodes, "edges": edges, "entry": "end", "model": "m"}
    lines = drawn(definition, draw_mermaid)[1:]
    assert [line for line in lines if not re.fullmatch(f"{NODE}|{EDGE}", line)] == []
    assert "<b>" not in "".join(lines)
    assert max(map(len, drawn(definition))) <= 80


def test_what_changes_how_a_node_runs_is_told() -> None:
    keys = {"foreach": [1, 2], "max_parallel": 2, "on_item_error": "continue", "approval": "on_write"}
    tools = ["echo", {"tool": "write_file", "approval": "always"}]
    agent = {"tool": "agent_core", "config": {"model": "m", "allowed_tools": tools, "prompt": "Go."}}
    lines = drawn({"id": "w", "nodes": [{"tool": "echo", "config": {}, **keys}, agent]})
    assert "    for each of 2 items, 2 at once, goes on if one fails" in lines
    assert "    waits for approval if it writes" in lines
    assert "    tools echo, write_file (approval always)" in lines


def test_the_command_draws_a_file_and_tells_what_is_wrong_with_one(cli: Cli, write: Write) -> None:
    write("flow.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "a"}}]})
    assert cli("graph", "flow.json").out == "w\n\n▶ echo  echo\n  ■ end\n"
    assert cli("graph", "flow.json", "--mermaid").out == 'flowchart TD\n    n0(["echo<br/>echo"])\n'
    write("flow.yaml", "id: w\nnodes:\n- {tool: echo, config: {text: a}}\nedges:\n- {from: echo, to: echo}\n")
    told = cli("graph", "flow.yaml")
    assert (told.code, "Traceback" in told.err) == (3, False)
    assert "flow.yaml" in told.err
