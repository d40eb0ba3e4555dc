"""The ledger: runs that are gone, changed or put in place of others are found; deleted ones leave a tombstone."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, SqliteJournal
from agent_core.audit.verify import verify
from agent_core.journal.record import link
from engine_shim import Engine
from engine_shim.store.ledger import GENESIS, read_ledger
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.run_store import SqliteRunStore
from support.command import Cli

FLOW: dict[str, Any] = {"id": "f", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def run_some(path: Path, count: int) -> list[str]:
    """The ids of runs that ended, in their order."""

    async def drive() -> list[str]:
        engine = Engine(store=path)
        found = [(await engine.run(FLOW)).run_id for _ in range(count)]
        await engine.close()
        return found

    return asyncio.run(drive())


def proof_of(path: Path, head: str | None = None) -> Any:
    return prove_store(SqliteRunStore(path).database, head)


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_each_run_that_ends_is_entered_with_the_head_that_verify_gives(path: Path) -> None:
    assert read_ledger(SqliteRunStore(path).database) == (GENESIS.hex(), 0)
    runs = run_some(path, 3)
    store, proof = SqliteRunStore(path), proof_of(path)
    assert (proof.ok, proof.ended, proof.count) == (True, 3, 4)
    entries = store.database.rows("ledger", "SELECT run, data FROM ledger WHERE run != '' ORDER BY seq")
    assert [run for run, _ in entries] == runs
    for run, data in entries:
        verdict = verify(store.journal, run_id=run)
        assert f'"head":"{verdict.head}","count":{verdict.count}'.encode() in data


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("DELETE FROM rows WHERE run = '{0}'", "it ended at .*, and is gone"),
        ("DELETE FROM rows WHERE run = '{0}' AND strand = 'flow' AND n = 1", "another head and count"),
        ("UPDATE rows SET run = CASE run WHEN '{0}' THEN '{1}' ELSE '{0}' END WHERE strand != 'x'", "another head"),
        ("DELETE FROM ledger WHERE run = '{0}'", "entry 2 of the ledger does not follow"),
        (
            "UPDATE ledger SET data = CAST(replace(data, '{0}', '{1}') AS BLOB) WHERE run = '{0}'",
            "entry 2 of the ledger does not",
        ),
    ],
)
def test_store_that_is_not_what_its_ledger_says_is_found(path: Path, damage: str, why: str) -> None:
    runs = run_some(path, 2)
    if "CASE" in damage:  # no two rows may have one name, even for a moment
        change(path, f"UPDATE rows SET run = 'y' WHERE run = '{runs[0]}'")
        change(path, f"UPDATE rows SET run = '{runs[0]}' WHERE run = '{runs[1]}'")
        change(path, f"UPDATE rows SET run = '{runs[1]}' WHERE run = 'y'")
    else:
        change(path, damage.format(*runs))
    faults = proof_of(path).faults
    assert faults
    assert re.search(why, faults[0]["why"])


def test_ledger_that_was_cut_off_or_written_anew_lacks_the_head_that_was_kept(path: Path) -> None:
    run_some(path, 2)
    head, _ = read_ledger(SqliteRunStore(path).database)
    run_some(path, 1)
    assert proof_of(path, head).ok
    change(path, "DELETE FROM ledger WHERE seq >= 3")
    (fault, *_) = proof_of(path, head).faults
    assert "no entry of the ledger has the head" in fault["why"]


def test_deleted_run_leaves_a_tombstone(path: Path) -> None:
    runs, store = run_some(path, 2), SqliteRunStore(path)
    assert store.forget(runs[0])
    proof = proof_of(path)
    assert (proof.ok, proof.ended, proof.deleted) == (True, 1, 1)


def test_runs_from_before_the_ledger_and_of_other_programs_are_counted_apart(path: Path) -> None:
    run_some(path, 2)
    change(path, "DROP TABLE ledger")
    (last,) = run_some(path, 1)
    row = SqliteJournal(path).load(last)["flow"][0]
    proof = proof_of(path)
    assert (proof.ok, proof.older, proof.ended, proof.others) == (True, 2, 1, 0)
    assert row.n == 0


ASKS: dict[str, Any] = {**FLOW, "nodes": [{**FLOW["nodes"][0], "approval": "always"}]}


def wait_for_approval(path: Path, run: str) -> Any:
    """What waits in a run that has begun to wait."""

    async def drive() -> Any:
        engine = Engine(store=path)
        waiting = await engine.run(ASKS, run_id=run)
        await engine.close()
        return {(call["strand"], call["n"]): Approve() for call in waiting.waiting}

    return asyncio.run(drive())


def resume(path: Path, run: str, decisions: Any = None) -> None:
    async def drive() -> None:
        engine = Engine(store=path)
        await engine.resume(run, decisions=decisions)
        await engine.close()

    asyncio.run(drive())


def kinds_of(path: Path) -> list[str]:
    found = SqliteRunStore(path).database.rows("ledger", "SELECT data FROM ledger ORDER BY seq")
    return [json.loads(data)["kind"] for (data,) in found]


def test_a_run_is_entered_when_it_waits_and_when_it_ends(path: Path) -> None:
    decisions = wait_for_approval(path, "r")
    assert kinds_of(path) == ["began", "rested"]
    assert (proof_of(path).ok, proof_of(path).rested) == (True, 1)
    resume(path, "r")
    assert kinds_of(path) == ["began", "rested"]
    resume(path, "r", decisions)
    assert kinds_of(path) == ["began", "rested", "ended"]
    assert (proof_of(path).ok, proof_of(path).rested, proof_of(path).ended) == (True, 0, 1)


def test_a_waiting_run_that_is_gone_shorter_or_changed_is_found(path: Path, tmp_path: Path) -> None:
    wait_for_approval(path, "r")
    head = read_ledger(SqliteRunStore(path).database)[0]
    for number, (statement, told) in enumerate(
        (
            ("DELETE FROM rows", ", and is gone"),
            ("DELETE FROM rows WHERE strand LIKE '%/%'", "records, and has"),
            ("UPDATE rows SET hash = x'00' WHERE strand = 'flow'", "with another head and count than it has now"),
        )
    ):
        copied = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(copied)) as copy:
            db.backup(copy)
        change(copied, statement)
        (fault,) = proof_of(copied, head).faults
        assert (fault["run"], fault["why"].startswith("it was waiting at "), told in fault["why"]) == ("r", True, True)


def test_an_end_that_the_ledger_does_not_have_is_found(path: Path) -> None:
    resume(path, "r", wait_for_approval(path, "r"))
    change(path, "DELETE FROM ledger WHERE seq = 3")
    (fault,) = proof_of(path).faults
    assert fault["why"].endswith(", and its end is not in the ledger")


def test_a_waiting_run_that_is_deleted_leaves_a_tombstone(path: Path) -> None:
    wait_for_approval(path, "r")
    assert SqliteRunStore(path).forget("r")
    assert kinds_of(path) == ["began", "rested", "deleted"]
    assert (proof_of(path).ok, proof_of(path).deleted) == (True, 1)


def test_runs_that_wait_in_a_store_from_before_the_ledger_do_not_hide_older_ones(path: Path) -> None:
    run_some(path, 2)
    change(path, "DROP TABLE ledger", "UPDATE ledger_start SET rows = (SELECT max(seq) FROM rows)")
    wait_for_approval(path, "r")
    proof = proof_of(path)
    assert (proof.ok, proof.older, proof.rested) == (True, 2, 1)


def test_commands_print_the_ledger_and_prove_the_store(cli: Cli, path: Path) -> None:
    runs = run_some(path, 2)
    told = cli("ledger", "--store", str(path), "--json").json
    assert told["count"] == 3
    assert cli("ledger", "--store", str(path)).out.startswith(f"head {told['head']}, 2 runs in 3 entries")
    proven = cli("verify", "--all", "--ledger", told["head"], "--store", str(path))
    assert (proven.code, proven.out.startswith("ok: 2 runs of the ledger")) == (0, True)
    change(
        path,
        f"UPDATE rows SET data = CAST(replace(data, 'x', 'y') AS BLOB) WHERE run = '{runs[0]}' AND strand = 'flow/a.1'",
    )
    broken = cli("verify", "--all", "--store", str(path))
    assert (broken.code, runs[0] in broken.out) == (5, True)
    for words in (
        ["verify"],
        ["verify", "last", "--all"],
        ["verify", "--all", "--ledger", "zz"],
        ["verify", "--ledger", "0" * 64],
    ):
        assert cli(*words, "--store", str(path)).code == 2


@pytest.mark.sampled
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET data = '{}' WHERE seq = {seq}",
        "UPDATE ledger SET data = CAST(data AS TEXT) WHERE seq = {seq}",
        "UPDATE ledger SET data = x'5b5d' WHERE seq = {seq}",
        "UPDATE ledger SET hash = 'abc' WHERE seq = {seq}",
        "UPDATE ledger SET hash = 7, data = 8 WHERE seq = {seq}",
    ],
)
@pytest.mark.parametrize("seq", [1, 2, 4])
def test_what_no_release_writes_into_a_ledger_is_a_fault_and_stops_no_command(
    path: Path, statement: str, seq: int, cli: Cli
) -> None:
    run_some(path, 3)
    change(path, statement.replace("{seq}", str(seq)))
    why = f"entry {seq} of the ledger does not follow from the one before it: one of the two was changed, taken out or"
    assert proof_of(path).faults[0]["why"].startswith(why)
    ran = cli("verify", "--all", "--store", str(path))
    assert (ran.code, why in ran.out) == (5, True)
    assert cli("ledger", "--store", str(path)).code == 0


def test_a_ledger_written_anew_of_what_is_no_entry_is_found(path: Path) -> None:
    run_some(path, 2)
    for data in (b"[]", b"null", b"{}", b'{"kind":"ended"}', b'{"kind":"ended","run":7}', b"\xff"):
        digest = link(GENESIS, data)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM ledger")
            db.execute("INSERT INTO ledger VALUES (1, '', ?, ?)", (digest, data))
        assert "entry 1 of the ledger does not follow from the one before it" in proof_of(path).faults[0]["why"]
