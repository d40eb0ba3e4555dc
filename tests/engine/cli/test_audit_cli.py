"""Commands over recorded runs: two side by side, all of a store replayed, old ones deleted."""

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_core import JsonlJournal, SqliteJournal, run_agent_sync
from agent_core.journal.record import FORMAT, Record, Row, chain_row, genesis
from agent_core.journal.sqlite_layout import LAYOUT
from agent_core.models import ScriptedModel
from agent_core.statuses import LISTED
from engine_shim import MemoryRunStore, SqliteRunStore
from engine_shim.cli import output
from engine_shim.cli.records import many_replays
from engine_shim.cli.records.retention import find_expired
from engine_shim.store.driver_identity import new_driver
from engine_shim.store.entries import RunEntry
from support.by_hand import action, final
from support.command import Cli, Write
from utools import ToolRegistry

FIXTURES = Path(__file__).parents[3] / "fixtures/workflows"
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
    assert [document[side]["run_id"] for side in "ab"] == [a, b]


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


def test_a_journal_file_is_compared_with_a_run_of_the_store(cli: Cli, asked: Any, store: Path, home: Path) -> None:
    run = asked(ECHO, final())
    with closing(SqliteJournal(store)) as journal:
        JsonlJournal(home / "run.jsonl").append(run, [row for rows in journal.load(run).values() for row in rows])
    assert cli("diff", "run.jsonl", run).code == 0
    assert cli("diff", asked(final()), "run.jsonl").code == 5


@pytest.mark.parametrize("words", [("nope", "nope"), ("runs.db", "nope")])
def test_diff_needs_two_runs_that_are_there(cli: Cli, asked: Any, words: tuple[str, str]) -> None:
    asked(final())
    ran = cli("diff", *words)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no run 'nope' in this store" in ran.err


def rewrite(store: Path, run: str, name: str, change: Callable[[Record], Record]) -> None:
    """Writes a run's records as they are changed under a name, behind the journal's back; its own go if that is it."""
    with closing(SqliteJournal(store)) as journal:
        tape = journal.load(run)
    changed: list[Row] = []
    for path, rows in tape.items():
        previous = genesis(name, path)
        for row in rows:
            changed.append(chain_row(path, row.n, previous, change(row.record())))
            previous = changed[-1].hash
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        db.execute("DELETE FROM rows WHERE run = ?", (name,))
        db.executemany(
            "INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)",
            [(name, *row[:4]) for row in changed],
        )


# ── replay --all ─────────────────────────────────────────────────────────────────────────────────


def outcomes(cli: Cli, *words: str) -> tuple[int, dict[str, tuple[str, str | None]]]:
    ran = cli("replay", "--all", *words, "--json")
    assert ran.err == ""
    return ran.code, {each["run_id"]: (each["outcome"], each["at"]) for each in ran.json["runs"]}


def forged(store: Path, run: str, *records: Record) -> None:
    """A run with a sound chain, whatever its records say."""
    with closing(SqliteJournal(store)) as journal:
        previous = genesis(run, "flow")
        for n, record in enumerate(records):
            row = chain_row("flow", n, previous, record)
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
        newer: ("damaged", "flow:0"),
        emptied: ("unreadable", None),
        damaged: ("damaged", "flow/agent_core.1:2"),
        sound: ("identical", None),
    }
    told = cli("replay", "--all", "--json").json["runs"]
    assert "no journal wrote such values" in told[0]["why"]
    lines = cli("replay", "--all").out.splitlines()
    assert lines[3].split() == [damaged, "w", "damaged", "at", "flow/agent_core.1:2", "0", "0"]
    assert lines[-1] == "4 runs: 2 damaged, 1 unreadable, 1 identical"


NONSENSE: dict[str, Record] = {
    "a newer format": {"kind": "run_started", "loop": "flow", "format": FORMAT + 1},
    "no loop": {"kind": "run_started"},
    "a loop that nobody knows": {"kind": "run_started", "loop": "spiral"},
    "nothing but a loop": {"kind": "run_started", "loop": "flow"},
    "a definition that is none": {"kind": "run_started", "loop": "flow", "definition": 3, "at": 4},
}


@pytest.mark.sampled
@pytest.mark.parametrize("record", NONSENSE.values(), ids=NONSENSE)
def test_a_sound_chain_over_nonsense_is_a_row(cli: Cli, asked: Any, store: Path, record: Record) -> None:
    sound = asked(final())
    forged(store, "nonsense", record)
    assert outcomes(cli) == (5, {sound: ("identical", None), "nonsense": ("unreadable", None)})


def test_a_run_that_came_out_otherwise_is_told_where(cli: Cli, asked: Any, store: Path) -> None:
    run = asked(final())
    rewrite(store, run, "forged", lambda record: record | {"final": False} if "final" in record else record)
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
    assert [each["changed"] for each in told if each["run_id"] == looked] == [1]
    assert cli("replay", "--all", "--set", "max_steps=many").code == 2
    assert cli("replay", "--all", "--set", "model=x").code == 2


def test_a_policy_that_allows_a_tool_which_a_run_does_not_have_leaves_it_aside(cli: Cli, asked: Any) -> None:
    run = asked(ECHO, final())
    assert outcomes(cli, "--set", 'allowed_tools=["calculator"]') == (0, {run: ("inapplicable", None)})


def run_bare(store: Path) -> None:
    """A run of an agent without a workflow, in the journal alone."""
    with closing(SqliteJournal(store)) as journal:
        config = {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "Go."}
        run_agent_sync(
            config, registry=ToolRegistry([]), model=ScriptedModel([final()]), journal=journal, run_id="bare"
        )


def test_runs_that_only_the_journal_holds_are_replayed_too(cli: Cli, asked: Any, store: Path) -> None:
    listed, lost = asked(final()), asked(final())
    edit(store, "DELETE FROM workflow_runs WHERE run = ?", lost)
    run_bare(store)
    told = cli("replay", "--all", "--json").json["runs"]
    assert [(each["run_id"], each["workflow"], each["outcome"]) for each in told] == [
        ("bare", "agent", "identical"),
        (lost, "w", "identical"),
        (listed, "w", "identical"),
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
        "agent-core: replay takes one run, or --all; --since needs --all\n",
    )


# ── retention ────────────────────────────────────────────────────────────────────────────────────


def held(cli: Cli) -> list[str]:
    return [entry["run_id"] for entry in cli("runs", "--json").json]


def ended(store: Path, run: str, at: str) -> None:
    """Makes all times of a run's journal this one."""
    rewrite(store, run, run, lambda record: record | {"at": at} if "at" in record else record)


@pytest.fixture
def store_of_runs(cli: Cli, asked: Any, store: Path, aged: Callable[[str, str], None]) -> dict[str, str]:
    """Runs that began 60 days ago and ended, or last went on, 40 days ago, by status; one that ended now; a new one."""
    runs = {status: asked(final()) for status in LISTED}
    for status, run in runs.items():
        edit(store, "UPDATE workflow_runs SET status = ? WHERE run = ?", status, run)
        aged(run, ago(days=60))
        ended(store, run, ago(days=40))
    long = asked(final())
    aged(long, ago(days=60))
    return {**runs, "long": long, "new": asked(final())}


def size(store: Path, run: str) -> int:
    with closing(SqliteJournal(store)) as journal:
        return sum(len(row.data) for rows in journal.load(run).values() for row in rows)


@pytest.mark.exhaustive
def test_old_finished_runs_are_deleted_and_no_others(cli: Cli, store_of_runs: dict[str, str], store: Path) -> None:
    runs = store_of_runs
    gone = {runs[status] for status in ("completed", "failed", "cancelled")}
    total = sum(size(store, run) for run in gone)
    ran = cli("retention", "--older-than", "30d")
    assert (ran.code, ran.err, ran.out.splitlines()[-1]) == (0, "", f"deleted 3 runs, {total / 1024:.1f} KiB")
    assert {line.split()[0] for line in ran.out.splitlines()[:-1]} == gone
    assert set(held(cli)) == set(runs.values()) - gone
    with closing(SqliteJournal(store)) as journal:
        assert set(journal.runs()) == set(runs.values()) - gone
    assert [cli("verify", run).code for run in (runs["new"], runs["completed"])] == [0, 2]
    assert cli("retention", "--older-than", "30d").out == "deleted 0 runs\n"


@pytest.mark.exhaustive
def test_a_dry_run_deletes_nothing(cli: Cli, store_of_runs: dict[str, str], store: Path) -> None:
    ran = cli("retention", "--older-than", "30d", "--dry-run")
    sizes = {run: size(store, run) for run in store_of_runs.values()}
    total = sum(sizes[store_of_runs[status]] for status in ("completed", "failed", "cancelled"))
    assert ran.out.splitlines()[-1] == f"would delete 3 runs, {total / 1024:.1f} KiB"
    assert all(f"{sizes[line.split()[0]] / 1024:.1f} KiB" in line for line in ran.out.splitlines()[:-1])
    told = cli("retention", "--older-than", "30d", "--dry-run", "--json").json
    statuses = sorted(entry["status"] for entry in told["would_delete"])
    assert (told["dry_run"], told["kept"], statuses) == (True, [], ["cancelled", "completed", "failed"])
    assert {entry["run_id"]: entry["bytes"] for entry in told["would_delete"]}.items() <= sizes.items()
    assert "deleted" not in told
    assert told["bytes"] == total
    assert set(held(cli)) == set(store_of_runs.values())


@pytest.mark.exhaustive
def test_runs_that_are_not_finished_go_only_by_name(cli: Cli, store_of_runs: dict[str, str]) -> None:
    told = cli("retention", "--older-than", "30d", "--status", "waiting, paused", "--json").json
    assert {entry["run_id"] for entry in told["deleted"]} == {store_of_runs["waiting"], store_of_runs["paused"]}
    assert store_of_runs["completed"] in held(cli)


def test_a_run_that_only_the_journal_holds_goes_too(cli: Cli, asked: Any, store: Path) -> None:
    listed = asked(final())
    run_bare(store)
    told = cli("retention", "--older-than", "0m", "--json").json
    assert {entry["run_id"] for entry in told["deleted"]} == {listed, "bare"}
    with closing(SqliteJournal(store)) as journal:
        assert journal.load("bare") == {}


@pytest.mark.exhaustive
def test_a_run_that_somebody_drives_is_kept(cli: Cli, store_of_runs: dict[str, str], store: Path) -> None:
    run = store_of_runs["running"]
    runs = SqliteRunStore(store)
    with closing(runs):
        assert runs.leases.acquire(run, new_driver()) is None
        ran = cli("retention", "--older-than", "30d", "--status", "running")
        assert ran.out.splitlines()[0].startswith(f"{run}  running")
        assert ran.out.splitlines()[1] == "deleted 0 runs"
        kept = cli("retention", "--older-than", "30d", "--status", "running", "--json").json["kept"]
        assert [entry["run_id"] for entry in kept] == [run]
    assert run in held(cli)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Missing option '--older-than'"),
        (["--older-than", "yesterday"], "--older-than 'yesterday': write an age, such as 30d"),
        (["--older-than", "2026-01-01"], "--older-than '2026-01-01': write an age"),
        (["--older-than", "99999999999d"], "--older-than '99999999999d': write an age"),
        (["--older-than", "1d", "--status", "done"], "--status 'done': name any of pending, running"),
        (["--older-than", "1d", "--status", ""], "--status '': name any of pending, running"),
    ],
)
def test_retention_asks_for_an_age_and_for_statuses_that_there_are(
    cli: Cli, asked: Any, words: list[str], told: str
) -> None:
    run = asked(final())
    ran = cli("retention", *words)
    assert (ran.code, ran.out, told in ran.err) == (2, "", True)
    assert held(cli) == [run]


def test_an_empty_store_has_nothing_to_delete_and_is_not_made(cli: Cli, store: Path) -> None:
    assert cli("retention", "--older-than", "1d").out == "deleted 0 runs\n"
    assert not store.exists()


NOW = datetime(2026, 3, 1, tzinfo=UTC)


ENDS = {
    "just in time": ("2026-01-29T23:59:59.999Z", True),
    "just too late": ("2026-01-30T00:00:00.000Z", False),
    "lately": ("2026-02-28T00:00:00.000Z", False),
    "in the future": ("2027-01-01T00:00:00.000Z", False),
    "in another zone": ("2026-01-30T00:30:00.000+01:00", True),
    "no zone": ("2026-01-01T00:00:00", True),
}
LONG_AGO = "2025-01-01T00:00:00.000Z"


def store_of(began: str, *records: Record) -> MemoryRunStore:
    store, previous = MemoryRunStore(), genesis("r", "flow")
    store.save(RunEntry("r", "w", "1", "completed", began, ""))
    for n, record in enumerate(records):
        row = chain_row("flow", n, previous, record)
        store.journal.append("r", [row])
        previous = row.hash
    return store


def expires(store: MemoryRunStore, status: str = "completed") -> bool:
    return len(find_expired(store.entries(), store.journal, timedelta(days=30), [status], NOW)) == 1


@pytest.mark.parametrize(("end", "goes"), ENDS.values(), ids=ENDS)
def test_a_run_expires_by_when_it_ended(end: str, goes: bool) -> None:
    store = store_of(LONG_AGO, {"kind": "run_started", "at": LONG_AGO}, {"kind": "run_finished", "at": end})
    assert expires(store) == goes
    assert not expires(store, "failed")


@pytest.mark.parametrize(("last", "goes"), ENDS.values(), ids=ENDS)
def test_a_run_that_has_not_ended_expires_by_when_it_last_went_on(last: str, goes: bool) -> None:
    started, answered = {"kind": "run_started", "at": LONG_AGO}, {"kind": "answered", "at": last}
    assert expires(store_of(LONG_AGO, started, answered, {"kind": "waiting"})) == goes


@pytest.mark.parametrize(("began", "goes"), [*ENDS.values(), ("", False), ("long ago", False)])
def test_a_run_whose_journal_says_no_time_expires_by_when_it_began(began: str, goes: bool) -> None:
    assert expires(store_of(began)) == goes
    assert expires(store_of(began, {"kind": "run_finished", "at": "someday"})) == goes


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (5 * 2**20, "5.0 MiB"),
        (2**50, "1,024.0 TiB"),
    ],
)
def test_a_size_is_written_in_a_unit_that_a_person_reads(number: int, text: str) -> None:
    assert output.size(number) == text


# ── stores that cannot be used ───────────────────────────────────────────────────────────────────


def refused(cli: Cli, run: str, code: int, told: str, *commands: list[str]) -> None:
    """Each command ends with this code and one sentence, and with --json in one document."""
    for words in commands:
        words = [run if word == "RUN" else word for word in words]
        ran = cli(*words)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1), words
        assert told in ran.err, words
        as_json = cli(*words, "--json")
        assert (as_json.code, as_json.err, told in as_json.json["error"]["message"]) == (code, "", True), words


READ = [["show", "RUN"], ["verify", "RUN"], ["replay", "RUN"], ["diff", "RUN", "RUN"]]
ALL = [["runs"], ["replay", "--all"], ["retention", "--older-than", "1d"]]
DRIVE = [["run", "w.json"], ["resume", "RUN"]]


def test_a_file_that_is_no_database_is_refused_and_left_alone(cli: Cli, asked: Any, store: Path) -> None:
    run = asked(final())
    store.write_bytes(b"Dear diary, " * 999)
    refused(cli, run, 1, "file is not a database", *READ, *ALL, *DRIVE)
    assert store.read_bytes() == b"Dear diary, " * 999


def test_a_store_of_a_newer_layout_says_to_use_a_newer_version(cli: Cli, asked: Any, store: Path) -> None:
    run = asked(final())
    with closing(sqlite3.connect(store)) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT.version + 1}")
    told = f"has layout {LAYOUT.version + 1}, this agent_core knows {LAYOUT.version}: use a newer version"
    refused(cli, run, 1, told, *READ, ["replay", "--all"], *DRIVE)


def test_a_run_of_a_newer_format_says_to_use_a_newer_version(cli: Cli, asked: Any, store: Path) -> None:
    sound = asked(final())
    forged(store, "newer", {"kind": "run_started", "loop": "flow", "format": FORMAT + 1})
    edit(store, "UPDATE workflow_runs SET run = 'newer' WHERE run = ?", sound)
    told = f"it has format {FORMAT + 1}, this agent_core knows {FORMAT}: use a newer version"
    refused(cli, "newer", 1, told, ["show", "RUN"], ["replay", "RUN"], ["diff", "RUN", sound], ["resume", "RUN"])
    verified = cli("verify", "newer")
    unchecked = "seal not checked: a newer version wrote this run"
    assert (verified.code, verified.out) == (5, f"NOT ok: {told}; {unchecked}\n")
    assert outcomes(cli)[1]["newer"] == ("unreadable", None)
    refused(cli, "newer", 1, told, ["export", "RUN", "--records", "flow:0"])
    report = cli("report", "--json").json
    assert (report["damaged"], report["faults"]["rows"]) == (0, [{"run": "newer", "why": told}])
    assert ("newer", unchecked) in [(row["verdict"], row["seal"]) for row in report["verified"]["rows"]]


@pytest.fixture
def read_only(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A run in a store that nobody can write, below a folder of its own; root is somebody else meanwhile."""
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    with tempfile.TemporaryDirectory() as name:
        folder, user = Path(name, "store"), os.getuid()
        Path(name).chmod(0o755)
        monkeypatch.setenv("AGENT_CORE_STORE", str(folder / "runs.db"))
        monkeypatch.setenv("XDG_DATA_HOME", name)
        run = cli("run", "w.json", "--json").json["run_id"]
        flow = Path(name, "w.json")
        flow.write_bytes(Path("w.json").read_bytes())
        for words in (*READ, *ALL, ["resume", "RUN"]):  # whatever is imported late is imported while it can be read
            cli(*[run if word == "RUN" else word for word in words])
        monkeypatch.chdir(name)
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        if user == 0:
            os.setresuid(65534, 65534, 0)
        try:
            yield run
        finally:
            os.setresuid(user, user, user)
            folder.chmod(0o755)


@pytest.mark.exhaustive
def test_a_store_that_nobody_can_write_is_read_and_no_run_is_driven(cli: Cli, read_only: str) -> None:
    assert [cli(*[read_only if word == "RUN" else word for word in words]).code for words in READ] == [0] * 4
    refused(cli, read_only, 1, "readonly database", *DRIVE, ["retention", "--older-than", "0m"])
    assert [cli(*[read_only if word == "RUN" else word for word in words]).code for words in READ] == [0] * 4


@pytest.mark.exhaustive
def test_many_runs_are_replayed_by_several_processes_with_the_same_table(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("w.yaml", "id: w\nnodes: [{id: a, tool: echo, config: {text: hi}}]\n")
    for _ in range(4):
        assert cli("run", "w.yaml").code == 0
    here = cli("replay", "--all", "--json").json
    monkeypatch.setattr(many_replays, "FEW", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    others: list[int] = []
    monkeypatch.setattr(many_replays, "_replay_elsewhere", counting(many_replays._replay_elsewhere, others))
    assert cli("replay", "--all", "--json").json == here
    assert others == [3]
    assert here["outcomes"] == {"identical": 4}


def counting(replay_elsewhere: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
    def counted(path: Path, runs: list[Any], *more: Any) -> Any:
        counts.append(len(runs))
        return replay_elsewhere(path, runs, *more)

    return counted
