"""Stores that older releases left: this one lists, shows, verifies, replays, resumes and decides their runs."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.command import Cli
from support.record_stores import KEYS, STORES, write_host

pytestmark = pytest.mark.sampled
STATUSES = {"completed": 2, "failed": 1, "waiting": 1, "running": 1}


@pytest.fixture(params=sorted(each.stem for each in STORES.glob("*.sql")))
def store(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store as a release left it, in the directory of its host."""
    path = home / "runs.db"
    write_host(home)
    with closing(sqlite3.connect(path)) as db:
        db.executescript((STORES / f"{request.param}.sql").read_text().replace("'/host", f"'{home}"))
    monkeypatch.setenv("AGENT_CORE_STORE", "runs.db")
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", KEYS)
    return path


def listed(cli: Cli) -> dict[str, list[dict[str, Any]]]:
    """The runs of the store by status."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in cli("runs", "--json").json:
        found.setdefault(run["status"], []).append(run)
    return found


def test_runs_are_listed_and_shown(store: Path, cli: Cli) -> None:
    runs = listed(cli)
    assert {status: len(each) for status, each in runs.items()} == STATUSES
    for run in [each for of_status in runs.values() for each in of_status]:
        shown = cli("show", run["run_id"])
        assert (shown.code, "run_started" in shown.out) == (0, True), shown


def test_runs_verify_by_their_seals_and_replay(store: Path, cli: Cli) -> None:
    runs = listed(cli)
    for run in [*runs["completed"], *runs["failed"]]:
        verified = cli("verify", run["run_id"], "--json").json
        assert (verified["ok"], verified["complete"]) == (True, True)
        replayed = cli("replay", run["run_id"])
        assert (replayed.code, "identical" in replayed.out) == (0, True), replayed


def test_store_is_proven_before_this_release_writes_to_it_and_after(store: Path, cli: Cli) -> None:
    before = store.read_bytes()
    first = cli("verify", "--all", "--json")
    assert (first.code, first.json["ok"]) == (0, True), first
    ledger = cli("ledger")
    assert (ledger.code, ledger.out.startswith(f"head {first.json['head']}, ")) == (0, True), ledger
    assert store.read_bytes() == before, "to prove a store changes nothing in it"
    assert cli("pause", listed(cli)["waiting"][0]["run_id"]).code == 0  # this release has laid out its tables now
    assert cli("verify", "--all").code == 0
    assert cli("run", "plain.yaml").code == 0
    after = cli("verify", "--all", "--json").json
    assert (after["ok"], after["ended"] + after["older"]) == (True, 4)


def test_run_that_ended_and_is_gone_is_found(store: Path, cli: Cli) -> None:
    assert cli("run", "plain.yaml").code == 0
    run = listed(cli)["completed"][0]["run_id"]
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM rows WHERE run = ?", (run,))
        db.execute("DELETE FROM workflow_runs WHERE run = ?", (run,))
    assert cli("verify", "--all").code == 5


def test_waiting_call_is_decided(store: Path, cli: Cli) -> None:
    (run,) = listed(cli)["waiting"]
    decided = cli("decide", run["run_id"], "approve", "--json")
    assert (decided.code, decided.json["outputs"]["answer"]) == (0, "Three are on their way."), decided
    assert cli("verify", run["run_id"]).code == 0
    assert cli("replay", run["run_id"]).code == 0


@pytest.mark.parametrize("word", ["retry", "done"])
def test_run_whose_process_died_in_a_write_is_resumed(store: Path, cli: Cli, word: str) -> None:
    (run,) = listed(cli)["running"]
    waits = cli("resume", run["run_id"], "--json")
    assert (waits.code, waits.json["waiting"][0]["reason"]) == (6, "in_doubt"), waits
    more = ["--output", json.dumps("ordered 3 of A-17")] if word == "done" else []
    done = cli("decide", run["run_id"], word, "--json", *more)
    assert (done.code, done.json["outputs"]["order"]) == (0, "ordered 3 of A-17"), done
    assert cli("replay", run["run_id"]).code == 0
