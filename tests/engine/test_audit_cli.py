"""Commands over recorded runs: two side by side, all of a store replayed, old ones deleted."""

from pathlib import Path
from typing import Any

import pytest
from by_hand import action, final
from command import Cli, Write

FIXTURES = Path(__file__).parents[2] / "fixtures/workflows"
PARALLEL = str(FIXTURES / "parallel.yaml")


@pytest.fixture(autouse=True)
def store(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run store of these tests."""
    monkeypatch.setenv("AGENT_CORE_STORE", str(home / "runs.db"))
    return home / "runs.db"


def agent(**config: Any) -> dict[str, Any]:
    usual = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["echo"], "prompt": "Go."}
    return {"id": "w", "nodes": [{"tool": "agent_core", "config": {**usual, **config}}]}


@pytest.fixture
def asked(cli: Cli, write: Write) -> Any:
    """Runs an agent that answers as told; returns the run's id."""

    def asked(*replies: str, **config: Any) -> str:
        write("replies.json", list(replies))
        write("w.json", agent(**config))
        return str(cli("run", "w.json", "--json").json["run_id"])

    return asked


ECHO = action("echo", text="hello")

# ── diff ─────────────────────────────────────────────────────────────────────────────────────────


def test_equal_runs_are_told_in_a_line_and_exit_0(cli: Cli, asked: Any) -> None:
    a, b = asked(ECHO, final()), asked(ECHO, final())
    ran = cli("diff", a, b)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "equal: 2 strands, times and ids aside"
    document = cli("diff", a, b, "--json").json
    assert (document["equal"], document["partings"]) == (True, [])
    assert document["same"] == ["flow", "flow/agent_core.1"]


def test_runs_that_part_are_shown_side_by_side_and_exit_5(cli: Cli, asked: Any) -> None:
    a, b = asked(ECHO, final("one"), max_steps=2), asked(final("two"))
    ran = cli("diff", a, b)
    assert ran.code == 5
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"A  {a}  completed: 2 steps, 1 tool call, ")
    assert lines[1] == "   flow/agent_core.1: one"
    assert lines[2].startswith(f"B  {b}  completed: 1 step, 0 tool calls, ")
    at = lines.index("flow:0  run_started")
    assert lines[at + 1 : at + 4] == ["  /definition/nodes/0/config/max_steps", "    A  2", "    B  3"]
    at = lines.index("flow/agent_core.1:2  answered")
    assert lines[at + 1 : at + 4] == [
        "  /content",
        '    A  {"type":"action","tool":"echo","args":{"text":"hello"}}',
        '    B  {"type":"final","answer":"two"}',
    ]
    assert max(map(len, lines)) <= 190
    told = cli("diff", a, b, "--json")
    assert (told.code, told.err, told.json["equal"]) == (5, "", False)
    assert [(each["strand"], each["n"]) for each in told.json["partings"]] == [
        ("flow", 0),
        ("flow/agent_core.1", 0),
        ("flow/agent_core.1", 2),
    ]
    assert told.json["partings"][0]["changes"] == [{"at": "/definition/nodes/0/config/max_steps", "a": 2, "b": 3}]
    assert told.json["b"]["answers"] == {"flow/agent_core.1": "two"}


def test_runs_of_two_workflows_have_strands_of_their_own(cli: Cli, asked: Any) -> None:
    a, b = asked(final()), cli("run", PARALLEL, "--json").json["run_id"]
    lines = cli("diff", a, b).out.splitlines()
    alone = [line for line in lines if "only in" in line]
    assert alone == [
        "flow/agent_core.1  only in A",
        "flow/sum.1  only in B",
        "flow/mean.1  only in B",
        "flow/report.1  only in B",
    ]


@pytest.mark.parametrize("words", [("nope", "nope"), ("runs.db", "nope")])
def test_diff_needs_two_runs_that_are_there(cli: Cli, asked: Any, words: tuple[str, str]) -> None:
    asked(final())
    ran = cli("diff", *words)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no run 'nope' in this store" in ran.err
