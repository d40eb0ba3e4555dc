"""store copy: every run arrives with its head, once, and nothing that the other store holds is changed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core.audit.verify import verify
from agent_core.journal.record import FORMAT, chain_row, genesis
from engine_shim import RunNotFound
from engine_shim.store.copy import copy_runs
from engine_shim.store.entries import RunEntry
from engine_shim.store.ledger import read_ledger
from engine_shim.store.ledger_copy import carry_ledger
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.open import open_store
from support.by_hand import action, final
from support.command import Cli, Write


@pytest.fixture
def runs(cli: Cli, write: Write) -> list[str]:
    """Two runs that ended, and one that waits, in runs.db."""
    agent = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["calculator"], "prompt": "Go."}
    write("flow.yaml", {"id": "w", "nodes": [{"tool": "agent_core", "config": agent}]})
    asks = {**agent, "allowed_tools": [{"tool": "calculator", "approval": "always"}]}
    write("asks.yaml", {"id": "a", "nodes": [{"tool": "agent_core", "config": asks}]})
    write("replies.json", [action("calculator", expression="1 + 1"), final()])
    made = []
    for flow in ("flow.yaml", "flow.yaml", "asks.yaml"):
        ran = cli("run", flow, "--json", "--store", "runs.db")
        made.append(ran.json["run_id"])
    return made


def test_runs_arrive_with_their_heads_and_go_on_there(cli: Cli, home: Path, runs: list[str]) -> None:
    copied = cli("store", "copy", "runs.db", "other.db", "--json")
    left_out: dict[str, list[Any]] = {"known": [], "driven": [], "other": [], "damaged": [], "unread": []}
    told = {
        "copied": runs,
        **left_out,
        "waiting": [runs[2]],
        "ledger": "carried",
        "conversations": {"new": [], "parted": []},
        "left_behind": [],
    }
    assert (copied.code, copied.json) == (0, told)
    for run in runs[:2]:
        first, second = (verify(home / name, run_id=run) for name in ("runs.db", "other.db"))
        assert (second.ok, second.head, second.count) == (True, first.head, first.count)
    head = cli("ledger", "--store", "runs.db", "--json").json["head"]
    assert cli("verify", "--all", "--ledger", head, "--store", "other.db").code == 0
    assert cli("decide", runs[2], "approve", "--store", "other.db").code == 0
    assert open_store(home / "runs.db").entry(runs[2]).status == "waiting"  # type: ignore[union-attr]
    again = cli("store", "copy", "runs.db", "third.db", "--run", runs[0])
    assert again.out == "copied: 1 run to third.db, verified\n"


def test_copying_again_takes_what_is_new_and_leaves_out_what_parted(cli: Cli, home: Path, runs: list[str]) -> None:
    source, target = open_store(home / "runs.db"), open_store(home / "other.db")
    for number, (_, row) in enumerate(source.tail(runs[0])[:2]):  # as a copy leaves it that was interrupted
        assert target.journal.append(runs[0], [row]), number
    assert copy_runs(source, target).new == runs
    assert copy_runs(source, target).known == runs
    assert cli("decide", runs[2], "approve", "--store", "other.db").code == 0
    assert cli("decide", runs[2], "deny", "--store", "runs.db").code == 0
    before = target.journal.load(runs[2])
    copied = copy_runs(source, target)
    assert (copied.new, copied.known, copied.other) == ([], runs[:2], [runs[2]])
    assert target.journal.load(runs[2]) == before
    told = cli("store", "copy", "runs.db", "other.db")
    assert (told.code, f"left out: {runs[2]}, which has continued in the store to copy to" in told.out) == (5, True)
    with pytest.raises(RunNotFound):
        copy_runs(source, target, ["none"])


def test_run_that_somebody_drives_is_left_out(cli: Cli, home: Path, runs: list[str]) -> None:
    source = open_store(home / "runs.db")
    source.save(RunEntry("busy", "w", "1", "running", "2026-01-01T00:00:00Z", str(home)))
    assert source.leases.acquire("busy", "elsewhere:1:x") is None
    told = cli("store", "copy", "runs.db", "other.db")
    assert "the ledger continues there, with each head that it had" in told.out
    assert "left out: busy, which a process drives" in told.out
    assert open_store(home / "other.db").entry("busy") is None


def test_copy_says_how_it_is_proven_and_which_runs_wait(cli: Cli, runs: list[str]) -> None:
    lines = cli("store", "copy", "runs.db", "other.db").out.splitlines()
    head = cli("ledger", "--store", "runs.db", "--json").json["head"]
    assert lines[-1] == f"to prove it: agent-core verify --all --store other.db --ledger {head}"
    assert lines[-2] == "to compare both: agent-core doctor --store other.db --copied-from runs.db"
    assert lines[-3].startswith(f"waiting in both stores: {runs[2]}; go on with each in one of them")
    assert cli(*lines[-1].split()[4:]).code == 0


def test_heads_of_both_sides_prove_a_store_that_was_copied_to_again(cli: Cli, home: Path, runs: list[str]) -> None:
    cli("store", "copy", "runs.db", "other.db")
    heads = [cli("ledger", "--store", name, "--json").json["head"] for name in ("runs.db", "other.db")]
    cli("run", "flow.yaml", "--store", "other.db")
    cli("run", "flow.yaml", "--store", "runs.db")
    told = cli("store", "copy", "runs.db", "other.db")
    assert "the ledger of this store is kept there beside its own, with each head that it had" in told.out
    heads += [cli("ledger", "--store", name, "--json").json["head"] for name in ("runs.db", "other.db")]
    assert told.out.splitlines()[-1].endswith(f"--store other.db --ledger {heads[2]}")
    assert [cli("verify", "--all", "--store", "other.db", "--ledger", head).code for head in heads] == [0] * 4
    assert "ledger" not in cli("store", "copy", "runs.db", "other.db").out  # nothing is new
    assert cli("store", "copy", "other.db", "third.db").code == 0  # and so does a copy of the copy
    assert [cli("verify", "--all", "--store", "third.db", "--ledger", head).code for head in heads] == [0] * 4
    with closing(sqlite3.connect(home / "other.db", isolation_level=None)) as db:
        db.execute("DELETE FROM kept_ledgers WHERE seq = 2")
    proven = cli("verify", "--all", "--store", "other.db")
    assert (proven.code, "which is kept here, is not as it was when it was copied" in proven.out) == (5, True)


def test_run_that_was_not_copied_is_told_by_a_head_of_its_store(cli: Cli, home: Path, runs: list[str]) -> None:
    cli("run", "flow.yaml", "--store", "other.db")
    source, target = open_store(home / "runs.db"), open_store(home / "other.db")
    assert carry_ledger(source.database, target.database) == "kept"
    head = read_ledger(source.database)[0]
    assert prove_store(target.database).ok
    why = [fault["why"] for fault in prove_store(target.database, head).faults]
    assert len(why) == 2
    assert all("in the store " in each and "was not copied here" in each for each in why)
    copy_runs(source, target)
    assert prove_store(target.database, head).ok


def test_ledger_of_a_store_that_was_restored_since_is_noted_only(cli: Cli, home: Path, runs: list[str]) -> None:
    cli("run", "flow.yaml", "--store", "other.db")
    backup = (home / "runs.db").read_bytes()
    cli("run", "flow.yaml", "--store", "runs.db")
    cli("store", "copy", "runs.db", "other.db")
    (home / "runs.db").write_bytes(backup)
    cli("run", "flow.yaml", "--store", "runs.db")
    head = cli("ledger", "--store", "runs.db", "--json").json["head"]
    assert "notes the head of this one, which is not the ledger that was copied before" in (
        cli("store", "copy", "runs.db", "other.db").out
    )
    assert "ledger" not in cli("store", "copy", "runs.db", "other.db").out
    proven = cli("verify", "--all", "--store", "other.db", "--ledger", head)
    assert (proven.code, "which was copied here: only that store proves it" in proven.out) == (5, True)
    assert cli("verify", "--all", "--store", "other.db").code == 0


@pytest.mark.exhaustive
def test_runs_are_chosen_as_in_a_list(cli: Cli, home: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(*words: str) -> list[str]:
        return cli("store", "copy", "runs.db", f"{len(words)}-{words[-1]}.db", *words, "--json").json["copied"]

    assert copied("--workflow", "w") == runs[:2]
    assert copied("--status", "waiting") == runs[2:]
    assert copied("--since", "1h") == runs
    assert copied("--since", "2100-01-01") == []
    assert copied("--run", "last") == runs[2:]
    assert copied("--run", runs[0], "--run", runs[1]) == runs[:2]
    monkeypatch.setenv("AGENT_CORE_STORE", str(home / "runs.db"))
    assert cli("store", "copy", "here.db", "--json").json["copied"] == runs


def test_name_that_no_run_has_makes_no_store(cli: Cli, home: Path, runs: list[str]) -> None:
    refused = cli("store", "copy", "runs.db", "part.db", "--run", "nothing")
    assert refused.code != 0
    assert not (home / "part.db").exists()


def test_store_that_is_not_there_is_not_made(cli: Cli, home: Path) -> None:
    refused = cli("store", "copy", "none.db", "other.db")
    assert refused.code != 0
    assert "there is no run store none.db" in refused.err
    assert not (home / "other.db").exists()


@pytest.mark.sampled
@pytest.mark.parametrize("words", [("runs", "--store"), ("store", "copy", "runs.db"), ("verify", "--all", "--store")])
def test_what_looks_like_a_url_and_is_none_of_a_store_makes_no_file(
    cli: Cli, home: Path, runs: list[str], words: tuple[str, ...]
) -> None:
    before = sorted(home.iterdir())
    refused = cli(*words, "postgers://h/x")
    assert refused.code == 2
    assert "did you mean postgres://?" in refused.err
    assert sorted(home.iterdir()) == before


def test_the_environment_and_the_hosts_file_are_held_to_the_same(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("agent-core.yaml", {"store": "sqlite:///runs.db"})
    assert (cli("runs").code, "by its path alone: runs.db" in cli("runs").err) == (3, True)
    monkeypatch.setenv("AGENT_CORE_STORE", "mysql://h/x")
    assert "AGENT_CORE_STORE): There are stores" in cli("runs").err


def test_what_stays_behind_is_said_before_the_copy_and_times_of_triggers_come_along(
    cli: Cli, home: Path, runs: list[str]
) -> None:
    with closing(sqlite3.connect(home / "runs.db", isolation_level=None)) as db:
        db.execute("INSERT INTO webhook_deliveries VALUES ('hook', 1, ?, 2, 0)", (runs[0],))
        db.execute("INSERT INTO trigger_times VALUES ('nightly', '2026-01-02T00:00:00+00:00', ?)", (runs[0],))
        db.execute("INSERT INTO trigger_crons VALUES ('nightly', 'first')")
    told = cli("store", "copy", "runs.db", "other.db").out.splitlines()
    assert told[0].startswith("stays behind: 1 delivery of webhooks that are still due")
    for older, line, copied in (("2026-01-01", "older", "first"), ("2026-01-02", "newer", "newer")):
        with closing(sqlite3.connect(home / "runs.db", isolation_level=None)) as db:
            db.execute("UPDATE trigger_times SET at = ?", (f"{older}T00:00:00+00:00",))
            db.execute("UPDATE trigger_crons SET cron = ?", (line,))
        cli("store", "copy", "runs.db", "other.db")
        with closing(sqlite3.connect(home / "other.db", isolation_level=None)) as db:
            assert db.execute("SELECT * FROM trigger_times").fetchall() == [
                ("nightly", "2026-01-02T00:00:00+00:00", runs[0])
            ]
            assert db.execute("SELECT * FROM trigger_crons").fetchall() == [("nightly", copied)]
    assert "stays behind" not in cli("store", "copy", "runs.db", "part.db", "--run", runs[0]).out


def test_doctor_compares_a_copy_with_what_it_was_copied_from(cli: Cli, home: Path, runs: list[str]) -> None:
    def compare() -> tuple[int, list[str]]:
        told = cli("doctor", "--store", "other.db", "--copied-from", "runs.db", "--json")
        return told.code, [each["message"] for each in told.json["findings"] if each["status"] == "problem"]

    cli("store", "copy", "runs.db", "other.db")
    assert compare() == (0, [])
    assert cli("decide", runs[2], "approve", "--store", "other.db").code == 0
    assert compare() == (0, [])  # it continued here alone
    new = cli("run", "flow.yaml", "--store", "runs.db", "--json").json["run_id"]
    code, problems = compare()
    assert code == 1
    assert problems[:2] == ["3 of 4 runs as in the other store, 1 of them continued here", f"run {new} was not copied"]
    assert problems[2].endswith(" of the other store is not proven here")
    assert cli("decide", runs[2], "deny", "--store", "runs.db").code == 0
    cli("store", "copy", "runs.db", "other.db")
    parted = f"run {runs[2]} has other records: the run has continued in both stores"
    assert compare() == (1, ["3 of 4 runs as in the other store", parted])
    Path("other name.db").symlink_to("runs.db")
    for same in ("other name.db", str(Path("runs.db").absolute())):
        for words in (("store", "copy", "runs.db", same), ("doctor", "--store", same, "--copied-from", "runs.db")):
            refused = cli(*words)
            assert (refused.code, "itself" in refused.err) == (2, True), words
    refused = cli("doctor", "--copied-from", "none.db", "--store", "other.db")
    assert (refused.code, "there is no run store none.db" in refused.err) == (2, True)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM api_tokens", "not as in the other store: t1"),
        ("UPDATE api_tokens SET hash = x''", ""),  # revoked here alone
        ("UPDATE workflow_runs SET status = 'failed'", "listed with another status"),
        ("DELETE FROM rows WHERE strand = 'flow' AND n > 0", "lacks records"),
        ("DELETE FROM ledger", "of the other store is not proven here"),
    ],
)
def test_doctor_names_what_a_copy_lacks(cli: Cli, home: Path, runs: list[str], change: str, told: str) -> None:
    with closing(sqlite3.connect(home / "runs.db", isolation_level=None)) as db:
        db.execute("INSERT INTO api_tokens VALUES ('t1', 'ci', NULL, 'run', x'02', '2026-01-01', NULL)")
    cli("store", "copy", "runs.db", "other.db")
    with closing(sqlite3.connect(home / "other.db", isolation_level=None)) as db:
        db.execute(change)
    found = cli("doctor", "--store", "other.db", "--copied-from", "runs.db")
    assert (found.code, told in found.out) == (1 if told else 0, True)


def test_run_that_is_damaged_in_the_target_is_told_as_damaged(cli: Cli, home: Path, runs: list[str]) -> None:
    cli("store", "copy", "runs.db", "other.db")
    with closing(sqlite3.connect(home / "other.db", isolation_level=None)) as db:
        db.execute("UPDATE rows SET data = CAST(replace(data, '1 + 1', '1 + 2') AS BLOB) WHERE run = ?", (runs[0],))
    told = cli("store", "copy", "runs.db", "other.db")
    left_out = f"left out: {runs[0]}, which is damaged there: `agent-core verify {runs[0]} --store other.db` says where"
    assert (told.code, left_out in told.out) == (5, True)
    compared = cli("doctor", "--store", "other.db", "--copied-from", "runs.db")
    assert (compared.code, f"run {runs[0]} is not as it was written" in compared.out) == (1, True)


def test_runs_that_cannot_be_read_are_left_out_and_the_others_copied(cli: Cli, home: Path, runs: list[str]) -> None:
    with closing(sqlite3.connect(home / "runs.db", isolation_level=None)) as db:
        db.execute("UPDATE rows SET data = CAST(replace(data, '1 + 1', '1 + 2') AS BLOB) WHERE run = ?", (runs[0],))
    source, other = open_store(home / "runs.db"), open_store(home / "other.db")
    began = {"kind": "run_started", "loop": "flow", "format": FORMAT + 1}
    source.journal.append("newer", [chain_row("flow", 0, genesis("newer", "flow"), began)])
    copied = cli("store", "copy", "runs.db", "other.db", "--json")
    assert (copied.code, copied.json["copied"]) == (5, runs[1:])
    assert [each["run"] for each in copied.json["unread"]] == [runs[0], "newer"]
    told = cli("store", "copy", "runs.db", "other.db")
    assert [line for line in told.out.splitlines() if line.startswith("left out: ")] == [
        f"left out: {each['run']}, which cannot be copied: {each['why']}" for each in copied.json["unread"]
    ]
    assert "is damaged: " in told.out
    assert f"newer, which cannot be copied: it has format {FORMAT + 1}, this agent_core knows {FORMAT}" in told.out
    assert sorted(other.journal.runs()) == sorted(each.run for each in other.entries()) == sorted(runs[1:])
    named = cli("store", "copy", "runs.db", "other.db", "--run", runs[0], "--json")
    assert (named.code, [each["run"] for each in named.json["unread"]]) == (5, [runs[0]])


def test_a_head_that_is_not_the_newest_is_told_as_proven(cli: Cli, runs: list[str]) -> None:
    head = cli("ledger", "--store", "runs.db", "--json").json["head"]
    assert "proves" not in cli("verify", "--all", "--store", "runs.db", "--ledger", head).out
    cli("run", "flow.yaml", "--store", "runs.db")
    proven = cli("verify", "--all", "--store", "runs.db", "--ledger", head)
    assert (proven.code, f"; {head} is a head that it proves" in proven.out) == (0, True)
    other = cli("verify", "--all", "--store", "runs.db", "--ledger", "0" * 64)
    assert (other.code, "proves" in other.out) == (5, False)
