"""Commands over recorded runs: two side by side, all of a store replayed, old ones deleted."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from by_hand import action, final
from command import Cli, Write

from agent_core import SqliteJournal, run_agent_sync
from agent_core.journal.record import FORMAT, Record, chained, genesis
from agent_core.models import ScriptedModel
from utools import ToolRegistry

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


# ── replay --all ─────────────────────────────────────────────────────────────────────────────────


def outcomes(cli: Cli, *words: str) -> tuple[int, dict[str, tuple[str, str | None]]]:
    ran = cli("replay", "--all", *words, "--json")
    assert ran.err == ""
    return ran.code, {each["run"]: (each["outcome"], each["at"]) for each in ran.json["runs"]}


def forged(store: Path, run: str, *records: Record) -> None:
    """A run with a sound chain, whatever its records say."""
    with closing(SqliteJournal(store)) as journal:
        previous = genesis(run, "flow")
        for n, record in enumerate(records):
            row = chained("flow", n, previous, record)
            journal.append(run, [row])
            previous = row.hash


def edit(store: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        assert db.execute(statement, values).rowcount > 0


def test_all_runs_of_the_store_are_replayed_into_a_table(cli: Cli, asked: Any) -> None:
    first, last = asked(ECHO, final()), cli("run", PARALLEL, "--json").json["run_id"]
    ran = cli("replay", "--all")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["run", "workflow", "outcome", "steps", "changed", "decisions"],
        [last, "parallel", "identical", "0", "0"],
        [first, "w", "identical", "2", "0"],
        ["2", "runs:", "2", "identical"],
    ]


def test_an_empty_store_has_nothing_to_replay_and_is_not_made(cli: Cli, store: Path) -> None:
    assert (cli("replay", "--all").out, cli("replay", "--all").code) == ("0 runs\n", 0)
    assert cli("replay", "--all", "--json").json == {"runs": [], "outcomes": {}}
    assert not store.exists()


def test_a_damaged_run_is_a_row_and_the_others_go_on(cli: Cli, asked: Any, store: Path) -> None:
    sound, damaged, emptied, newer = (asked(final()) for _ in range(4))
    edit(store, "UPDATE rows SET data = x'7b7d' WHERE run = ? AND strand = 'flow/agent_core.1' AND n = 2", damaged)
    edit(store, "DELETE FROM rows WHERE run = ?", emptied)
    edit(store, "UPDATE rows SET hash = 'text' WHERE run = ?", newer)
    code, found = outcomes(cli)
    assert code == 5
    assert found == {
        newer: ("unreadable", None),
        emptied: ("unreadable", None),
        damaged: ("damaged", "flow/agent_core.1:2"),
        sound: ("identical", None),
    }
    told = cli("replay", "--all", "--json").json["runs"]
    assert "that no journal wrote" in told[0]["why"]
    lines = cli("replay", "--all").out.splitlines()
    assert lines[3].split() == [damaged, "w", "damaged", "at", "flow/agent_core.1:2", "0", "0"]
    assert lines[-1] == "4 runs: 2 unreadable, 1 damaged, 1 identical"


NONSENSE: dict[str, Record] = {
    "a newer format": {"kind": "run_started", "loop": "flow", "format": FORMAT + 1},
    "no loop": {"kind": "run_started"},
    "a loop that nobody knows": {"kind": "run_started", "loop": "spiral"},
    "nothing but a loop": {"kind": "run_started", "loop": "flow"},
    "a definition that is none": {"kind": "run_started", "loop": "flow", "definition": 3, "at": 4},
}


@pytest.mark.parametrize("record", NONSENSE.values(), ids=NONSENSE)
def test_a_sound_chain_over_nonsense_is_a_row(cli: Cli, asked: Any, store: Path, record: Record) -> None:
    sound = asked(final())
    forged(store, "nonsense", record)
    assert outcomes(cli) == (5, {sound: ("identical", None), "nonsense": ("unreadable", None)})


def test_a_run_that_came_out_otherwise_is_told_where(cli: Cli, asked: Any, store: Path) -> None:
    run = asked(final())
    with closing(SqliteJournal(store)) as journal:
        tape = journal.load(run)
        for path, rows in tape.items():
            previous = genesis("forged", path)
            for row in rows:
                record = row.record()
                told = record | {"final": False} if "final" in record else record
                journal.append("forged", [row := chained(path, row.n, previous, told)])
                previous = row.hash
    assert outcomes(cli) == (5, {run: ("identical", None), "forged": ("diverged", "flow/agent_core.1:3")})
    assert outcomes(cli, "--since", "9999-01-01") == (0, {})


def test_a_run_that_died_is_unfinished_and_no_fault(cli: Cli, asked: Any, store: Path) -> None:
    run = asked(ECHO, final())
    edit(store, "DELETE FROM rows WHERE run = ? AND (strand = 'flow' AND n > 0 OR n > 5)", run)
    assert outcomes(cli) == (0, {run: ("unfinished", None)})


def test_a_policy_tells_which_runs_it_would_have_changed(cli: Cli, asked: Any, store: Path) -> None:
    looked, talked, short = asked(ECHO, final()), asked(final()), asked("no", "no", max_repairs=1)
    died = asked(ECHO, final())
    edit(store, "DELETE FROM rows WHERE run = ? AND (strand = 'flow' AND n > 0 OR n > 5)", died)
    code, found = outcomes(cli, "--set", "approval=always")
    assert (code, found[looked]) == (5, ("changed", "flow/agent_core.1:3"))
    assert found[talked] == ("identical", None)
    code, found = outcomes(cli, "--set", "max_repairs=2")
    assert (code, found[short], found[died]) == (5, ("outlived", None), ("unfinished", None))
    told = cli("replay", "--all", "--set", 'deny_tools=["echo"]', "--json").json["runs"]
    assert [each["changed"] for each in told if each["run"] == looked] == [1]
    assert cli("replay", "--all", "--set", "max_steps=many").code == 3
    assert cli("replay", "--all", "--set", "model=x").code == 2


def test_runs_that_only_the_journal_holds_are_replayed_too(cli: Cli, asked: Any, store: Path) -> None:
    listed, lost = asked(final()), asked(final())
    edit(store, "DELETE FROM workflow_runs WHERE run = ?", lost)
    with closing(SqliteJournal(store)) as journal:
        config = {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "Go."}
        run_agent_sync(
            config, registry=ToolRegistry([]), model=ScriptedModel([final()]), journal=journal, run_id="bare"
        )
    told = cli("replay", "--all", "--json").json["runs"]
    assert [(each["run"], each["workflow"], each["outcome"]) for each in told] == [
        (listed, "w", "identical"),
        ("bare", "agent", "identical"),
        (lost, "w", "identical"),
    ]


@pytest.fixture
def aged(store: Path) -> Callable[[str, str], None]:
    """Makes a run begin at another time, as far as the index knows."""
    return lambda run, at: edit(store, "UPDATE workflow_runs SET started_at = ? WHERE run = ?", at, run)


def ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_since_leaves_older_runs_out(cli: Cli, asked: Any, aged: Callable[[str, str], None]) -> None:
    old, recent, new = asked(final()), asked(final()), asked(final())
    aged(old, "2026-01-31T11:00:00.000Z")
    aged(recent, ago(days=2))
    aged(new, ago(hours=1))
    for since, runs in {
        "1d": [new],
        "3d": [new, recent],
        "90m": [new],
        "12h": [new],
        "2026-01-31": [new, recent, old],
        "2026-01-31T11:00": [new, recent, old],
        "2026-01-31T12:00": [new, recent],
        "2026-01-31T12:00+02:00": [new, recent, old],
        "9999-01-01": [],
    }.items():
        assert list(outcomes(cli, "--since", since)[1]) == runs, since


@pytest.mark.parametrize("since", ["yesterday", "7", "d", "-7d", "7w", "", "2026-13-01", "99999999999d"])
def test_a_time_that_is_none_is_named(cli: Cli, since: str) -> None:
    ran = cli("replay", "--all", "--since", since)
    assert (ran.code, ran.out) == (2, "")
    assert f"--since {since!r}: write a date or a time" in ran.err


@pytest.mark.parametrize("words", [[], ["x", "--all"], ["x", "--since", "7d"], ["--since", "7d"]])
def test_replay_takes_a_run_or_all_of_them(cli: Cli, words: list[str]) -> None:
    ran = cli("replay", *words)
    assert (ran.code, ran.err) == (
        2,
        "agent-core: Invalid value: replay takes one run, or --all, which --since goes with\n",
    )
