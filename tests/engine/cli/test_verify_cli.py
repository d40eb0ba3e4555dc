"""agent-core verify of runs that have no end yet, and of files that are no journals."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine_shim.store.run_store import SqliteRunStore
from support.command import Cli, Write

pytestmark = pytest.mark.exhaustive

APPROVAL = str(Path(__file__).parents[3] / "fixtures/workflows/approval.yaml")
STORE = "data/agent-core/runs.db"


def test_a_waiting_run_is_intact_and_not_complete(cli: Cli) -> None:
    run = cli("run", APPROVAL, "--json").json["run_id"]
    ran = cli("verify", run)
    assert (ran.code, ran.out.startswith("intact: ")) == (6, True)
    assert ran.out.endswith("; it waits for a person, a time or a signal: not complete yet\n")
    found = cli("verify", run, "--json")
    assert (found.code, found.json["ok"], found.json["status"]) == (6, False, "waiting")
    cli("pause", run)
    assert cli("verify", run).out.endswith("; it is paused: not complete yet\n")


def test_a_run_that_died_or_is_driven_is_intact_and_not_ok(cli: Cli) -> None:
    cli("run", APPROVAL)
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute("DELETE FROM rows WHERE strand = 'flow/agent_core.1' AND n > 2")
        db.execute("UPDATE run_hosts SET records = 0")
    ran = cli("verify", "last")
    assert (ran.code, "; no process drives it; `agent-core resume` continues it: " in ran.out) == (5, True)
    store = SqliteRunStore(STORE)
    (entry,) = store.entries()
    store.leases.acquire(entry.run, "another:1:a")
    store.close()
    assert "; it is running: not complete yet" in cli("verify", "last").out


@pytest.mark.parametrize("count", [1, 2])
def test_a_cut_end_is_not_taken_for_a_run_that_goes_on(cli: Cli, count: int) -> None:
    run = cli("run", APPROVAL, "--json").json["run_id"]
    if count == 2:
        cli("decide", run, "approve")
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute("DELETE FROM rows WHERE seq = (SELECT max(seq) FROM rows)")
    ran = cli("verify", run)
    assert (ran.code, ran.out.startswith("NOT ok: ")) == (5, True)


def test_a_file_that_is_no_journal_is_named_with_what_is_expected(cli: Cli, write: Write) -> None:
    write("notes.txt", "hello\n")
    told = 'notes.txt is no journal: it holds neither the lines of one, {"run", '
    ran = cli("verify", "notes.txt")
    assert (ran.code, ran.out.startswith(f"NOT ok, line 1: {told}")) == (5, True)
    assert told in cli("show", "notes.txt").err
    missing = cli("verify", "missing.jsonl")
    assert (missing.code, "there is no journal file missing.jsonl" in missing.err) == (2, True)


ONE_NODE = str(Path(__file__).parents[3] / "fixtures/workflows/parallel.yaml")
FIRST, SECOND = "the-first-key-of-this-host", "the-second-key-of-this-host"


def test_all_and_ledger_check_the_seals_where_keys_are(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("run", ONE_NODE, "--store", "other.db")
    assert "1 run not sealed" in cli("verify", "--all", "--store", "other.db").out
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", f"k1:{FIRST}")
    refused = cli("verify", "--all", "--store", "other.db")
    assert (refused.code, "it is not sealed, though a key is given" in refused.out) == (5, True)
    run = cli("run", ONE_NODE, "--json").json["run_id"]
    assert (cli("verify", "--all").code, "1 run sealed by k1" in cli("verify", "--all").out) == (0, True)
    assert cli("verify", "--all", "--json").json["seals"] == {"sealed by k1": 1}
    assert cli("verify", run).out.endswith("; sealed by k1\n")
    assert cli("verify", run, "--json").json["seal"] == "sealed by k1"
    head = cli("ledger", "--json").json["head"]
    monkeypatch.delenv("AGENT_CORE_JOURNAL_KEYS")
    assert "1 run sealed by k1, not checked: no key here" in cli("verify", "--all", "--ledger", head).out
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", f"k1:{SECOND}")
    for words in (("--all",), ("--all", "--ledger", head)):
        forged = cli("verify", *words)
        assert (forged.code, f"NOT ok: {run}: its seal was not made with the key 'k1'" in forged.out) == (5, True)
    assert cli("verify", run).out.endswith("; sealed by k1, which does not hold\n")


def test_the_keys_of_the_hosts_file_count_as_well(cli: Cli, write: Write) -> None:
    write("agent-core.yaml", {})
    write(".env", f"AGENT_CORE_JOURNAL_KEYS=k1:{FIRST}\n")
    cli("run", ONE_NODE)
    assert "1 run sealed by k1" in cli("verify", "--all").out


def test_a_run_that_goes_on_needs_no_seal_yet(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", f"k1:{FIRST}")
    cli("run", APPROVAL)
    assert cli("verify", "--all", "--json").json["seals"] == {"sealed by k1": 1}
    assert cli("pause", "last").code == 0
    assert cli("verify", "--all", "--json").json["seals"] == {"sealed by k1": 1}
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute("UPDATE workflow_runs SET status = 'running'")
        db.execute("DELETE FROM rows WHERE strand = 'seal' AND n > 0")
    found = cli("verify", "--all", "--json")
    assert (found.code, found.json["seals"]) == (0, {}), "it has gone on since it was sealed"
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute("DELETE FROM rows WHERE strand = 'seal'")
    assert cli("verify", "--all").code == 0
