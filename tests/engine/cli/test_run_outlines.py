"""What lists say of each run: its inputs, how long it took, where it comes from; and runs that no workflow began."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import SqliteJournal, run_agent_sync
from agent_core.models import ScriptedModel
from agent_core.node import NodeContext, execute_sync
from support.by_hand import Q, action, final
from support.command import Cli, Write
from utools import Tool, ToolRegistry

STORE = "data/agent-core/runs.db"
ASKS = {"id": "asks", "inputs": {"type": "object", "properties": {"message": {"type": "string"}}}}
NODE = {"tool": "echo", "config": {"text": "{{external.message}}"}}


@pytest.fixture
def bare(home: Path) -> str:
    """An agent's own run in the store, as a program makes it."""
    Path(STORE).parent.mkdir(parents=True)
    config = {"model": "m", "max_steps": 2, "allowed_tools": [], "prompt": "What is\nan oasis?"}
    model = ScriptedModel([final("A spring.")])
    return run_agent_sync(config, registry=ToolRegistry([]), model=model, journal=SqliteJournal(STORE)).run_id


def test_a_run_is_listed_with_its_first_input_in_100_columns(cli: Cli, write: Write) -> None:
    write("w.json", {**ASKS, "nodes": [NODE]})
    cli("run", "w.json", "--input", "message=How many\nA-17 do we have? " + "x" * 100)
    (line,) = cli("runs").out.splitlines()
    assert line.split("  ")[-2:][0] == "asks 1"
    assert (line.split("  ")[-1].startswith("How many A-17 do we have? "), len(line)) == (True, 100)
    (listed,) = cli("runs", "--json").json
    assert (listed["external"]["message"][:8], listed["forked"], listed["seconds"] >= 0) == ("How many", None, True)


def test_a_fork_is_listed_with_its_origin(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    run = cli("run", "w.json", "--json").json["run_id"]
    cli("fork", run, "--at", "flow/echo.1:0")
    assert cli("runs").out.splitlines()[0].endswith(f"  w 1  forked from {run}")
    assert cli("runs", "--json").json[0]["forked"]["run_id"] == run


def test_an_agents_own_run_is_listed_counted_and_looked_at(cli: Cli, bare: str) -> None:
    (line,) = cli("runs").out.splitlines()
    assert line.startswith(f"{bare}  completed  ")
    assert line.endswith("s  agent  What is an oasis?")
    assert cli("runs", "--status", "failed").out == "no runs\n"
    assert cli("stats", "--json").json["workflows"]["agent"]["statuses"] == {"completed": 1}
    for command in ("show", "verify", "replay"):
        assert cli(command, "last").code == cli(command, bare).code == 0


def test_an_agents_own_run_is_not_driven_from_here(cli: Cli, bare: str, write: Write) -> None:
    ran = cli("resume", bare)
    assert (ran.code, "is not a workflow's: only the program that began it can continue it" in ran.err) == (2, True)
    assert "holds no run yet" in cli("pause", "last").err
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    cli("run", "w.json")
    assert cli("resume", "last").code == 0


def test_an_agents_own_run_that_waits_is_listed_so(cli: Cli, bare: str) -> None:
    from utools import tool

    @tool
    def pay() -> str:
        "Pay."
        return "paid"

    config = {"model": "m", "max_steps": 2, "allowed_tools": ["pay"], "approval": "always", "prompt": "Go."}
    model, journal = ScriptedModel([action("pay").replace('{"q":"x"}', "{}")]), SqliteJournal(STORE)
    run = run_agent_sync(config, registry=ToolRegistry([pay]), model=model, journal=journal).run_id
    (listed,) = cli("runs", "--status", "waiting", "--json").json
    assert (listed["run_id"], listed["seconds"], cli("verify", run).code) == (run, None, 6)


def test_decision_about_an_agents_own_run_is_recorded_and_its_program_goes_on(cli: Cli, home: Path) -> None:
    async def look(args: Any, context: Any) -> str:
        return "seen"

    Path(STORE).parent.mkdir(parents=True)
    allowed = [{"tool": "look", "approval": "always"}]
    config = {"model": "scripted", "max_steps": 3, "prompt": "Go.", "allowed_tools": allowed}
    tool, model = Tool("look", "Looks.", Q, look, effect="read"), ScriptedModel([action(), final("done")])
    context = NodeContext(run_id="mine", journal=STORE, tools=[tool], model=model)
    assert execute_sync(config, context).status == "waiting"
    assert cli("decide", "last", "approve").out == "mine  decided; the program that began it goes on with it\n"
    again = cli("decide", "mine", "approve")
    assert (again.code, "no call waits for a decision" in again.err) == (2, True)
    assert execute_sync(config, context).final_answer == "done"
