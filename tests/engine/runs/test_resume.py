"""A run whose process was killed or interrupted goes on in another process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_core import Fail, Retry, Skip
from agent_core.audit.verify import verify
from engine_shim import Engine, RunResult, SqliteRunStore
from engine_shim.host.config import HostConfig
from engine_shim.host.registry import build_registry
from support.by_hand import action, final
from support.command import Cli, Write
from support.crash import victim_tools
from support.gated import Host, agent
from utools import DefinitionErrors

COMMAND = str(Path(sys.executable).with_name("agent-core"))
TOOLS = victim_tools.__file__


@pytest.fixture
def host(write: Write) -> Any:
    """Writes a workflow with a plain node, an agent, and a node after it, and a host with tools that can be killed."""
    write("agent-core.yaml", {"tools": [f"{TOOLS}:tools"]})

    def workflow(*replies: str) -> str:
        write("replies.json", list(replies))
        config = {"model": "scripted:replies.json", "max_steps": 4, "allowed_tools": ["look", "pay"], "prompt": "Go."}
        nodes = [
            {"id": "before", "tool": "echo", "config": {"text": "b"}},
            {"tool": "agent_core", "config": config},
            {"id": "after", "tool": "echo", "config": {"text": "{{nodes.before}}{{nodes.agent_core.final_answer}}"}},
        ]
        edges = [{"from": "before", "to": "agent_core"}, {"from": "agent_core", "to": "after"}]
        return str(write("flow.json", {"id": "w", "nodes": nodes, "edges": edges}))

    return workflow


def go_on(run_id: str, **options: Any) -> RunResult:
    engine = Engine(build_registry(HostConfig(tools=[f"{TOOLS}:tools"])), store=SqliteRunStore(Path("runs.db")))
    return asyncio.run(engine.resume(run_id, **options))


def killed(flow: str) -> str:
    """The id of a run whose process a tool has killed."""
    Path("die").touch()
    done = subprocess.run([COMMAND, "run", flow, "--store", "runs.db"], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return SqliteRunStore(Path("runs.db")).entries()[0].run


def ledger() -> list[str]:
    return Path("ledger").read_text().split()


def test_killed_run_goes_on_in_another_process_and_a_read_is_done_again(host: Any) -> None:
    run = killed(host(action("look"), final("Seen.")))
    result = go_on(run)
    assert (result.status, result.outputs["after"]) == ("completed", "bSeen.")
    assert ledger() == ["look", "look"]
    assert verify("runs.db", run_id=run, **result.journal).ok


DECIDED: dict[str, tuple[Any, str, list[str]]] = {
    "skip": (Skip(), "completed", ["pay"]),
    "retry": (Retry(), "completed", ["pay", "pay"]),
    "fail": (Fail(), "failed", ["pay"]),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("decision", "status", "did"), DECIDED.values(), ids=DECIDED)
def test_write_whose_answer_was_lost_waits_for_a_person(host: Any, decision: Any, status: str, did: list[str]) -> None:
    run = killed(host(action("pay"), final("Paid.")))
    waits = go_on(run)
    assert (waits.status, ledger()) == ("waiting", ["pay"])
    (entry,) = waits.waiting
    assert (entry["tool"], entry["reason"]) == ("pay", "in_doubt")
    result = go_on(run, decisions={(entry["strand"], entry["n"]): decision})
    assert (result.status, ledger()) == (status, did)


@pytest.mark.exhaustive
def test_plain_node_that_writes_waits_as_well(host: Any, write: Write) -> None:
    run = killed(str(write("plain.json", {"id": "w", "nodes": [{"tool": "pay"}]})))
    waits = go_on(run)
    assert [(entry["strand"], entry["reason"]) for entry in waits.waiting] == [("flow/pay.1", "in_doubt")]
    result = go_on(run, decisions={("flow/pay.1", waits.waiting[0]["n"]): Retry()})
    assert (result.status, result.outputs["pay"]) == ("completed", "pay done")


@pytest.mark.exhaustive
def test_killed_run_goes_on_from_the_command_line(host: Any, cli: Cli) -> None:
    run = killed(host(action("pay"), final("Paid.")))
    assert "  running  " in cli("runs", "--store", "runs.db").out
    assert "interrupted: `agent-core resume` continues it" in cli("runs", "--store", "runs.db").out
    (listed,) = cli("runs", "--store", "runs.db", "--json").json
    assert (listed["status"], listed["interrupted"]) == ("running", True)
    waits = cli("resume", run, "--store", "runs.db")
    assert waits.code == 6
    assert f"agent-core decide {run} retry --store runs.db   (or skip, fail, done --output JSON)" in waits.out
    skipped = cli("decide", run, "skip", "--store", "runs.db", "--json")
    assert (skipped.code, skipped.json["outputs"]["after"]) == (0, "bPaid.")
    assert ledger() == ["pay"]


def hanging(*words: str) -> "subprocess.Popen[str]":
    """The process of a command, now that its tool hangs."""
    Path("hang").touch()
    process = subprocess.Popen(
        [COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={**os.environ, "AGENT_CORE_STORE": "runs.db"},
    )
    while not Path("acting").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def interrupted(*words: str) -> tuple[int, str, str]:
    """What a command left that was interrupted while its tool hung."""
    process = hanging(*words)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    Path("hang").unlink()
    return process.returncode, out, err


def test_interrupted_run_says_how_to_go_on_and_does(host: Any, cli: Cli) -> None:
    code, out, err = interrupted("run", host(action("look"), final("Seen.")))
    run = SqliteRunStore(Path("runs.db")).entries()[0].run
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == f"agent-core: interrupted; to continue: agent-core resume {run} --store runs.db"
    resumed = cli("resume", run, "--store", "runs.db")
    assert (resumed.code, ledger()) == (0, ["look", "look"])
    assert resumed.out.startswith("agent_core: Seen.\n")


@pytest.mark.exhaustive
def test_interrupted_run_tells_a_program_in_one_document(host: Any) -> None:
    code, out, _ = interrupted("run", host(action("look"), final("Seen.")), "--json")
    error = json.loads(out)["error"]
    assert (code, error["kind"]) == (130, "interrupted")
    assert error["where"] in error["message"]


# ── stopping a run of another process ────────────────────────────────────────────────────────────


def only_run() -> str:
    (entry,) = SqliteRunStore(Path("runs.db")).entries()
    return entry.run


@pytest.mark.exhaustive
def test_run_of_another_process_is_cancelled(host: Any, cli: Cli) -> None:
    process = hanging("run", host(action("look"), final("Seen.")), "--json")
    run = only_run()
    busy = cli("resume", run, "--store", "runs.db", "--json")
    assert (busy.code, busy.json["error"]["kind"]) == (1, "busy")
    cancelled = cli("cancel", run, "--store", "runs.db", "--json")
    assert (cancelled.code, cancelled.json) == (0, {"run_id": run, "status": "cancelled"})
    Path("hang").unlink()
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, json.loads(out)["status"]) == (1, "cancelled")
    again = cli("cancel", run, "--store", "runs.db")
    assert (again.code, again.err) == (2, f"agent-core: run {run!r} has ended as cancelled\n")
    assert cli("verify", run, "--store", "runs.db").code == 0
    assert ledger() == ["look"]


@pytest.mark.exhaustive
def test_run_of_another_process_is_paused_and_goes_on_here(host: Any, cli: Cli) -> None:
    process = hanging("run", host(action("look"), final("Seen.")))
    run = only_run()
    pausing = subprocess.Popen([COMMAND, "pause", run, "--store", "runs.db"], stdout=subprocess.PIPE, text=True)
    while not any("control" in path for path in SqliteRunStore(Path("runs.db")).journal.load(run)):
        time.sleep(0.02)
    time.sleep(1.5)  # the driver looks a few times a second
    Path("hang").unlink()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 6
    assert f"go on       agent-core resume {run} --store runs.db" in out
    assert pausing.communicate(timeout=30)[0] == f"{run}  paused\n"
    resumed = cli("resume", run, "--store", "runs.db", "--json")
    assert (resumed.code, resumed.json["outputs"]["after"]) == (0, "bSeen.")
    assert ledger() == ["look"]


def test_run_is_forked_from_the_command_line(host: Any, cli: Cli) -> None:
    flow = host(action("look"), final("Seen."))
    run = cli("run", flow, "--store", "runs.db", "--json").json["run_id"]
    forked = cli("fork", run, "--at", "flow/after.1:0", "--store", "runs.db", "--json")
    assert (forked.code, forked.json["outputs"]["after"], ledger()) == (0, "bSeen.", ["look"])
    assert forked.json["run_id"] != run
    nowhere = cli("fork", run, "--at", "flow/after.1:7", "--store", "runs.db", "--json")
    assert (nowhere.code, nowhere.json["error"]["where"]) == (3, "flow/after.1:7")
    assert cli("fork", run, "--at", "after", "--store", "runs.db").code == 2
    assert cli("fork", run, "--from", "after", "--store", "runs.db", "--json").json["path"] == forked.json["path"]
    unknown = cli("fork", run, "--from", "nowhere", "--store", "runs.db")
    assert (unknown.code, "no node 'nowhere' has begun in" in unknown.err) == (2, True)
    assert cli("fork", run, "--store", "runs.db").code == 2


async def test_option_that_keeps_a_run_from_its_model_on_another_host_is_named() -> None:
    host = Host([action("pay", amount=5)])
    flow = {"id": "w", "nodes": [agent(model="ollama:m", base_url="{{external.url}}")]}
    await host.engine.run(flow, external={"url": "ftp://x"}, run_id="r")
    with pytest.raises(DefinitionErrors, match=r"^flow/agent_core\.1/config/base_url: must be http"):
        await Engine(host.engine.registry, store=host.store).resume("r")
