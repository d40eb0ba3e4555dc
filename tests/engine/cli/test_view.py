"""The live view: what runs now, which attempt it is, and what became of an answer that was being written."""

from typing import Any

import pytest

from engine_shim import load_workflow
from engine_shim.cli.runs.view import View
from support.by_hand import final
from support.command import Cli, Write
from support.terminal import Terminal

pytestmark = pytest.mark.exhaustive

SLOW = """
from pathlib import Path
from time import sleep
from utools import ToolError, tool


@tool(effect="read")
def look() -> str:
    "Look, until somebody says go."
    while not Path("go").exists():
        sleep(0.01)
    return "seen"


@tool(effect="read")
def fail() -> str:
    "Fail twice."
    tries = Path("tries")
    tries.write_text("x" + (tries.read_text() if tries.exists() else ""))
    if len(tries.read_text()) < 3:
        raise ToolError("gone")
    return "back"
"""


@pytest.fixture
def host(write: Write) -> Write:
    write("slow.py", SLOW)
    write("agent-core.yaml", "tools: [slow.py:look, slow.py:fail]")
    return write


@pytest.mark.exhaustive
def test_the_spinner_names_the_plain_node_that_runs(host: Write) -> None:
    host("w.json", {"id": "w", "nodes": [{"id": "glance", "tool": "look"}]})
    terminal = Terminal("run", "w.json")
    terminal.expect("glance")
    host("go", "")
    assert terminal.end() == 0
    assert "glance  \x1b[2mseen" in terminal.shown


@pytest.mark.exhaustive
def test_spinner_tells_how_long_a_node_runs_and_what_agents_have_used(host: Write) -> None:
    host("replies.json", [final("Done.")])
    config = {"model": "scripted:replies.json", "max_steps": 1, "allowed_tools": [], "prompt": "Go."}
    nodes = [{"id": "agent", "tool": "agent_core", "config": config}, {"id": "glance", "tool": "look"}]
    host("w.json", {"id": "w", "nodes": nodes, "edges": [{"from": "agent", "to": "glance"}]})
    terminal = Terminal("run", "w.json")
    terminal.expect("glance").expect("1 s, ").expect(" tokens").expect("2 s, ")
    host("go", "")
    assert terminal.end() == 0


def test_each_attempt_at_a_node_has_its_number(cli: Cli, host: Write) -> None:
    retry = {"max_attempts": 3}
    host("w.json", {"id": "w", "nodes": [{"tool": "fail", "retry": retry}]})
    lines = cli("run", "w.json").err.splitlines()
    starts = ["✗ fail  attempt 1 of 3: ", "✗ fail  attempt 2 of 3: ", "✓ fail  attempt 3 of 3: back"]
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=False)] == [True] * 3


def test_each_attempt_at_an_item_has_its_number(cli: Cli, host: Write) -> None:
    node = {"tool": "fail", "retry": {"max_attempts": 3}, "foreach": [1], "approval": "always"}
    host("w.json", {"id": "w", "nodes": [node]})
    cli("run", "w.json")
    lines = cli("decide", "last", "approve").err.splitlines()
    starts = ["! approve", "✗ fail[0]  attempt 1 of 3: ", "✗ fail[0]  attempt 2 of 3: ", "✓ fail[0]  attempt 3 of 3: "]
    assert [line.lstrip().startswith(start) for line, start in zip(lines[1:], starts, strict=False)] == [True] * 4


def test_an_agent_that_is_tried_again_says_so(cli: Cli, host: Write) -> None:
    config = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": [], "prompt": "Go."}
    host("replies.json", {"flow/agent_core.1~1": [final("Done.")]})
    host("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config, "retry": {"max_attempts": 2}}]})
    lines = cli("run", "w.json").err.splitlines()
    assert [line for line in lines if line.startswith("●")] == ["● agent_core", "● agent_core (attempt 2 of 2)"]


@pytest.mark.exhaustive
def test_a_step_of_a_plan_that_was_not_run_says_why(cli: Cli, host: Write) -> None:
    tools = [("fail", {}), ("echo", {"text": "{{steps.1}}"})]
    steps = [{"step": n, "description": "Go.", "tool": t, "parameters": args} for n, (t, args) in enumerate(tools, 1)]
    host("replies.json", [{"type": "plan", "steps": steps}, final("Done.")])
    config = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["fail", "echo"], "prompt": "Go."}
    plans = {"mode": "plan", "plan": {"on_failure": "skip"}}
    host("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": {**config, **plans}}]})
    assert "step 2 of the plan was not run: {{steps.1}}: step 1 gave nothing." in cli("run", "w.json").err


def test_a_call_of_a_plan_has_the_number_of_its_step(cli: Cli, host: Write) -> None:
    steps = [{"step": n, "description": "Go.", "tool": "echo", "parameters": {"text": f"t{n}"}} for n in (1, 2)]
    host("replies.json", [{"type": "plan", "steps": steps}, final("Done.")])
    config = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["echo"], "prompt": "Go."}
    plans = {"mode": "plan", "plan": {"confirm": True}}
    host("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": {**config, **plans}}]})
    told = [line.strip() for line in cli("run", "w.json").out.splitlines()]
    assert 'step 2      echo {"text": "t2"}   Go.' in told
    lines = [line.strip() for line in cli("decide", "last", "approve").err.splitlines()]
    assert [line for line in lines if line.startswith(("1. ", "2. ")) and "text" in line] == [
        '1. echo {"text": "t1"}',
        '2. echo {"text": "t2"}',
    ]


def test_an_answer_that_is_void_is_said_to_be_discarded(capsys: pytest.CaptureFixture[str], home: Any) -> None:
    config = {"model": "m", "max_steps": 3, "allowed_tools": [], "prompt": "Go."}
    workflow = load_workflow({"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})
    place = {"strand": "flow/agent_core.1", "n": 1, "node": "agent_core"}
    with View(workflow) as view:
        view.show({"event": "step_started", "step": 1, "model": "m", **place})
        view.show({"event": "answer_delta", "text": "Twelve pie", **place})
        view.show({"event": "answer_discarded", **place})
    assert "    the answer is discarded: Twelve pie" in capsys.readouterr().err.splitlines()[1]
