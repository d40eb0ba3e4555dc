"""Runs as a person names and lists them: a beginning of the id, `last`, filters, and stores that do not exist."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engine_shim.store.driver_identity import new_driver
from engine_shim.store.entries import RunEntry
from engine_shim.store.open import default_address, open_store
from support.by_hand import action, final
from support.command import Cli, Write

FLOW = {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]}
WAITS = {
    "id": "waits",
    "nodes": [
        {
            "tool": "agent_core",
            "config": {
                "model": "scripted:replies.json",
                "max_steps": 3,
                "allowed_tools": [{"tool": "echo", "approval": "always"}],
                "prompt": "Go.",
            },
        }
    ],
}
LISTED = [
    RunEntry("20260101-000000-aa", "w", "1", "completed", "2026-01-01T00:00:00.000Z", "."),
    RunEntry("20260102-000000-aa", "w", "1", "failed", "2026-01-02T00:00:00.000Z", "."),
    RunEntry("20260102-000000-bb", "other", "1", "waiting", "2026-01-02T12:00:00.000Z", "."),
    RunEntry("20260103-000000-aa", "other", "1", "completed", "2026-01-03T00:00:00.000Z", "."),
]


@pytest.fixture
def run(cli: Cli, write: Write) -> str:
    """The id of a run that is completed."""
    write("w.json", FLOW)
    return str(cli("run", "w.json", "--json").json["run_id"])


@pytest.fixture
def listed(home: Path) -> Path:
    """A store with runs in its list."""
    store = open_store(home / "listed.db")
    for entry in LISTED:
        store.save(entry)
    store.close()
    return store.path


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["show", "verify", "replay", "resume"])
def test_a_run_is_named_by_a_beginning_of_its_id_or_as_the_last_one(cli: Cli, run: str, command: str) -> None:
    whole = cli(command, run)
    assert whole.code == 0
    for name in (run[:-3], "last"):
        named = cli(command, name)
        assert (named.code, named.out) == (0, whole.out)


def test_both_runs_of_a_diff_are_named_so(cli: Cli, run: str) -> None:
    assert cli("diff", run[:-1], "last").code == 0


def test_a_waiting_run_is_paused_decided_and_cancelled_as_the_last_one(cli: Cli, write: Write) -> None:
    write("replies.json", [action("echo", text="a"), final()])
    write("waits.json", WAITS)
    run = cli("run", "waits.json", "--json").json["run_id"]
    assert cli("pause", "last", "--json").json == {"run_id": run, "status": "paused"}
    assert cli("decide", run[:-2], "approve", "--json").json["status"] == "completed"
    forked = cli("fork", "last", "--at", "flow/agent_core.1:1", "--json")
    assert forked.json["status"] == "waiting"
    assert cli("cancel", "last", "--json").json == {"run_id": forked.json["run_id"], "status": "cancelled"}


def test_a_run_that_ends_before_it_is_paused_says_so(cli: Cli, write: Write) -> None:
    write("replies.json", [action("echo", text="a"), final()])
    write("waits.json", WAITS)
    run = cli("run", "waits.json", "--json").json["run_id"]
    store, driver = open_store(default_address()), new_driver()
    store.leases.acquire(run, driver)
    entry = store.entry(run)
    assert entry is not None

    def end_when_told() -> None:
        while not store.leases.renew(driver, [run]):
            pass
        store.save(replace(entry, status="completed"))
        store.leases.release(run, driver)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(end_when_told)
        paused = cli("pause", run)
    store.close()
    assert (paused.code, paused.out) == (0, f"{run}  completed: it ended before it could be paused\n")


def test_a_beginning_of_several_ids_names_them(cli: Cli, listed: Path) -> None:
    ran = cli("resume", "20260102", "--store", str(listed))
    assert (ran.code, ran.out) == (2, "")
    assert "'20260102' is the beginning of several runs: 20260102-000000-aa, 20260102-000000-bb" in ran.err
    assert "write more of it" in ran.err
    assert cli("resume", "2026", "--store", str(listed), "--json").json["error"]["kind"] == "usage"


def test_an_id_that_others_begin_with_is_its_own_run(cli: Cli, home: Path) -> None:
    store = open_store(home / "runs.db")
    for run in ("a", "ab", "last"):
        store.save(RunEntry(run, "w", "1", "completed", "2026-01-01T00:00:00Z", "."))
    assert [store.find("a", limit=5), store.find("last", limit=5)] == [["a", "ab"], ["last"]]
    store.close()
    for run in ("a", "last"):
        assert f"there is no run '{run}'" in cli("resume", run, "--store", "runs.db").err  # listed, without a journal


@pytest.mark.parametrize("name", ["2027", "%", "_", "*", ""])
def test_a_beginning_of_no_id_is_told(cli: Cli, listed: Path, name: str) -> None:
    ran = cli("show", name, "--store", str(listed))
    assert (ran.code, ran.out) == (2, "")
    assert f"there is no run {name!r} in this store" in ran.err


def test_a_store_without_runs_has_no_last_one(cli: Cli, home: Path) -> None:
    ran = cli("show", "last")
    assert (ran.code, ran.out) == (2, "")
    assert "holds no run yet; `agent-core run FLOW` begins one" in ran.err
    assert list(home.iterdir()) == []


# ── lists ────────────────────────────────────────────────────────────────────────────────────────

FILTERS = {
    "limit": (["--limit", "2"], [3, 2]),
    "status": (["--status", "completed"], [3, 0]),
    "statuses": (["--status", "failed,waiting"], [2, 1]),
    "workflow": (["--workflow", "w"], [1, 0]),
    "since": (["--since", "2026-01-02T12:00"], [3, 2]),
    "all": (["--workflow", "other", "--status", "completed,waiting", "--since", "2026-01-01", "--limit", "1"], [3]),
    "none": (["--since", "1h"], []),
}


@pytest.mark.parametrize(("words", "places"), FILTERS.values(), ids=FILTERS)
def test_runs_are_listed_by(cli: Cli, listed: Path, words: list[str], places: list[int]) -> None:
    ran = cli("runs", "--store", str(listed), "--json", *words)
    assert [entry["run_id"] for entry in ran.json] == [LISTED[place].run for place in places]


WRONG = {
    "limit": (["--limit", "0"], "--limit"),
    "status": (["--status", "done"], "--status 'done': name any of pending, "),
    "since": (["--since", "yesterday"], "--since 'yesterday': write a date"),
}


@pytest.mark.parametrize(("words", "told"), WRONG.values(), ids=WRONG)
def test_a_filter_that_means_nothing_is_told(cli: Cli, listed: Path, words: list[str], told: str) -> None:
    ran = cli("runs", "--store", str(listed), *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


READERS = {
    "runs": ["runs"],
    "show": ["show", "last"],
    "verify": ["verify", "last"],
    "replay": ["replay", "last"],
    "replays": ["replay", "--all"],
    "diff": ["diff", "a", "b"],
    "resume": ["resume", "last"],
    "decide": ["decide", "last", "approve"],
    "pause": ["pause", "last"],
    "cancel": ["cancel", "last"],
    "fork": ["fork", "last", "--at", "flow:1"],
    "retention": ["retention", "--older-than", "1d"],
}


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_a_store_that_does_not_exist_is_told_and_not_made(cli: Cli, home: Path, words: list[str]) -> None:
    ran = cli(*words, "--store", "typo.db")
    assert (ran.code, ran.out, list(home.iterdir())) == (2, "", [])
    assert "there is no run store typo.db; check --store, or leave it out for " in ran.err


def test_a_store_of_the_environment_may_be_made_later(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_STORE", "later.db")
    assert (cli("runs").code, list(home.iterdir())) == (0, [])


@pytest.mark.parametrize("words", ["runs", "run w.json", "context", "chat"])
def test_the_file_of_another_program_is_no_store(words: str, cli: Cli, home: Path) -> None:
    with closing(sqlite3.connect(home / "songs.db")) as db, db:
        db.execute("CREATE TABLE songs (name TEXT)")
    ran = cli(*words.split(), "--store", "songs.db")
    assert ran.code == 2
    assert "songs.db is another program's: it has the table songs, and none of ours; name another file" in ran.err
    with closing(sqlite3.connect(home / "songs.db")) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]


@pytest.mark.parametrize("named", ["store of agent-core.yaml", "AGENT_CORE_CONTEXT_DB"])
def test_neither_the_configuration_nor_the_environment_mixes_runs_up_with_another_program(
    named: str, cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(home / "songs.db")) as db, db:
        db.execute("CREATE TABLE songs (name TEXT)")
    if named == "AGENT_CORE_CONTEXT_DB":
        monkeypatch.setenv(named, "songs.db")
        ran = cli("chat")
    else:
        monkeypatch.delenv("AGENT_CORE_STORE", raising=False)
        (home / "agent-core.yaml").write_text("store: songs.db\n", "utf-8")
        ran = cli("runs")
    assert ran.code == 3
    assert "songs.db is another program's: it has the table songs" in ran.err
    with closing(sqlite3.connect(home / "songs.db")) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
