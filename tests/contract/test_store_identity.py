"""Whose a run is: seals and the ledger name their store and its tenant, and what was put elsewhere by hand is found."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, JournalError, Keys, verify
from agent_core.errors import Damaged
from agent_core.journal.path import SEAL
from agent_core.journal.signature import VARIABLE, sign
from engine_shim import DefinitionError, Engine
from engine_shim.store.copy import copy_runs
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore

POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
KEYS = Keys({"k1": "a-key-of-this-host-alone"})
FLOW: dict[str, Any] = {"id": "f", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]}
ASKS = {**FLOW, "nodes": [{**FLOW["nodes"][0], "approval": "always"}]}
BESIDE = ("run, strand, n, hash, data", "rows"), ("*", "workflow_runs"), ("*", "run_hosts"), ("*", "run_submissions")
Open = Callable[[str], DatabaseRunStore]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "k1:a-key-of-this-host-alone")


@pytest.fixture(params=["sqlite", POSTGRES])
def open_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the store of a tenant of one host, as its server does."""
    new_database = request.getfixturevalue("new_database") if request.param == "postgres" else None
    address = tmp_path / "runs.db" if new_database is None else str(new_database())
    made: list[DatabaseRunStore] = []

    def open_one(tenant: str) -> DatabaseRunStore:
        made.append(open_store(address, tenant=tenant))
        made[-1].note_tenant(tenant)
        return made[-1]

    yield open_one
    for store in made:
        store.close()


def run_one(store: DatabaseRunStore, flow: Any = FLOW, run: str = "r") -> None:
    store.save_submission(run, "cara")
    Engine(store=store).run_sync(flow, run_id=run)


def put(run: str, source: DatabaseRunStore, target: DatabaseRunStore) -> None:
    """Put a run into another store as somebody does who can write both, and leaves nothing out."""
    for columns, table in BESIDE:
        found = source.database.rows(table, f"SELECT {columns} FROM {table} WHERE run = ?", run)
        names = f" ({columns})" if columns != "*" else ""
        with target.database.writing() as db:
            for row in found:
                db.execute(f"INSERT INTO {table}{names} VALUES ({', '.join('?' for _ in row)})", tuple(row))


def entries_of(store: DatabaseRunStore) -> list[dict[str, Any]]:
    return [json.loads(data) for (data,) in store.database.rows("ledger", "SELECT data FROM ledger ORDER BY seq")]


def why(store: DatabaseRunStore, run: str = "r") -> str | None:
    return verify(store.journal, run_id=run, keys=KEYS).why


def name_of(store: DatabaseRunStore) -> str:
    return store.journal.identity.store


def test_a_seal_and_an_entry_of_the_ledger_say_whose_they_are(open_of: Open) -> None:
    store = open_of("acme")
    run_one(store)
    seal = store.journal.load("r")[SEAL][-1].record()
    assert (seal["store"], seal["tenant"]) == (name_of(store), "acme")
    began, ended = entries_of(store)
    found = verify(store.journal, run_id="r", keys=KEYS)
    assert (found.ok, found.seal) == (True, "sealed by k1")
    told = {"head": found.head, "count": found.count, "status": "completed", "submitted_by": "cara"}
    home = {"store": name_of(store), "tenant": "acme"}
    assert ended == {"kind": "ended", "run": "r", "at": ended["at"], **told, **home}
    assert home.items() <= began.items()
    store.forget("r")
    gone = entries_of(store)[-1]
    assert gone == {"kind": "deleted", "run": "r", "at": gone["at"], **told, **home}
    assert prove_store(store.database).ok


def test_a_run_that_was_put_into_the_store_of_another_tenant_is_found(open_of: Open) -> None:
    acme, globex = open_of("acme"), open_of("globex")
    run_one(acme)
    run_one(globex, run="own")
    put("r", acme, globex)
    assert why(globex) == "it was sealed as a run of the tenant acme, and this is the store of globex"
    found = verify(globex.journal, run_id="r", keys=KEYS)
    assert (found.ok, found.seal) == (False, "sealed by k1, which does not hold")
    assert "it ended, and is not in the ledger" in str(prove_store(globex.database).faults)
    assert why(acme) is why(globex, "own") is None


async def test_a_waiting_run_that_was_put_into_another_store_is_not_driven_there(open_of: Open) -> None:
    acme, globex = open_of("acme"), open_of("globex")
    waiting = await Engine(store=acme).run(ASKS, run_id="r")
    put("r", acme, globex)
    (call,) = waiting.waiting
    decisions = {(call["strand"], call["n"]): Approve()}
    with pytest.raises(Damaged, match="sealed as a run of the tenant acme"):
        await Engine(store=globex).resume("r", decisions=decisions)
    assert globex.journal.load("r") == acme.journal.load("r"), "nothing was written"
    assert (await Engine(store=acme).resume("r", decisions=decisions)).status == "completed"


def test_a_ledger_that_was_put_into_another_store_with_all_its_runs_is_found(open_of: Open) -> None:
    acme, globex = open_of("acme"), open_of("globex")
    run_one(acme)
    put("r", acme, globex)
    for row in acme.database.rows("ledger", "SELECT * FROM ledger ORDER BY seq"):
        with globex.database.writing() as db:
            db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", tuple(row))
    (fault,) = prove_store(globex.database).faults
    assert fault["why"] == f"entry 1 of the ledger is of the store {name_of(acme)}, and this is {name_of(globex)}"
    with globex.database.writing() as db:  # who gives the store another name has all that is there against him
        db.execute("UPDATE store_identity SET store = ?", (name_of(acme),))
    assert "of the tenant acme, not of globex" in prove_store(globex.database).faults[0]["why"]


@pytest.mark.parametrize("how", ["DELETE FROM store_identity", "UPDATE store_identity SET store = ''"])
def test_a_store_whose_id_was_taken_away_is_at_home_nowhere(open_of: Open, how: str) -> None:
    acme, globex = open_of("acme"), open_of("globex")
    run_one(acme)
    run_one(globex, run="own")
    put("r", acme, globex)
    with globex.database.writing() as db:
        db.execute(how)
        db.execute("UPDATE store_identity SET tenant = NULL")
    assert why(globex) == f"it was sealed in the store {name_of(acme)}, and this one has no id; runs come here by " + (
        "`agent-core store copy`"
    )
    assert "and this one has no id" in prove_store(globex.database).faults[0]["why"]
    run_one(globex, run="later")
    assert verify(globex.journal, run_id="later", keys=KEYS).seal == "sealed by k1, which names no store"


def test_what_is_listed_of_a_run_is_what_the_ledger_says(open_of: Open) -> None:
    store = open_of("acme")
    run_one(store)
    fails = {**FLOW, "nodes": [{"tool": "calculator", "config": {"expression": "{{external.sum}}"}}]}

    async def drive() -> None:
        engine = Engine(store=store)
        await engine.run(fails, external={"sum": "1 / 0"}, run_id="failed")
        await engine.run(ASKS, run_id="withdrawn")
        await engine.cancel("withdrawn")

    asyncio.run(drive())
    assert [entry["status"] for entry in entries_of(store)[1:]] == ["completed", "failed", "waiting", "cancelled"]
    assert sorted(each.status for each in store.entries()) == ["cancelled", "completed", "failed"]
    assert prove_store(store.database).faults == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE workflow_runs SET status = 'failed'", "it ended as completed, and is listed as failed"),
        (
            "UPDATE run_submissions SET submitter = 'eve'",
            "it was handed in by cara, and is listed as handed in by eve",
        ),
        ("DELETE FROM run_submissions", "it was handed in by cara, and is listed as handed in by nobody"),
    ],
)
def test_what_a_list_says_of_a_run_is_held_against_the_ledger(open_of: Open, change: str, told: str) -> None:
    store = open_of("acme")
    run_one(store)
    with store.database.writing() as db:
        db.execute(change)
    assert prove_store(store.database).faults == [{"run": "r", "why": told}]


def test_an_older_seal_and_an_older_ledger_are_held_to_the_rest(open_of: Open) -> None:
    store = open_of("acme")
    run_one(store)
    tape = store.journal.load("r")
    del tape[SEAL]
    row = sign("r", tape, KEYS)
    assert row is not None
    with store.database.writing() as db:
        db.execute("UPDATE rows SET data = ?, hash = ? WHERE strand = 'seal'", (row.data, row.hash))
    found = verify(store.journal, run_id="r", keys=KEYS)
    assert (found.ok, found.seal) == (True, "sealed by k1, which names no store")
    rows = [each for rows in store.journal.load("r").values() for each in rows]
    assert verify(rows, run_id="r", keys=KEYS).seal == "sealed by k1"


@pytest.mark.parametrize("change", [{"store": "0" * 32}, {"tenant": "globex"}, {"tenant": None}, {"store": None}])
def test_a_seal_whose_home_was_changed_was_made_by_nobody(open_of: Open, change: dict[str, Any]) -> None:
    from agent_core.journal.record import chain_row, genesis

    store = open_of("acme")
    run_one(store)
    (seal,) = store.journal.load("r")[SEAL]
    row = chain_row(SEAL, 0, genesis("r", SEAL), {**seal.record(), **change})
    with store.database.writing() as db:
        db.execute("UPDATE rows SET data = ?, hash = ? WHERE strand = 'seal'", (row.data, row.hash))
    assert why(store) == "its seal was not made with the key 'k1'"


def test_a_copy_is_at_home_where_it_was_copied_to_with_keys(open_of: Open, tmp_path: Path) -> None:
    store = open_of("acme")
    run_one(store)
    with closing(open_store(tmp_path / "second.db")) as second, closing(open_store(tmp_path / "third.db")) as third:
        copy_runs(store, second)
        assert second.journal.load("r") == store.journal.load("r")
        told = why(second)
        assert told is not None
        assert told.startswith(f"it was sealed in the store {name_of(store)}, and this is {name_of(second)}; no key")
        copy_runs(second, third, keys=KEYS)
        assert why(third) is not None, "what the second store cannot prove is not signed on its way to a third"
        copy_runs(store, second, keys=KEYS)
        copy_runs(store, second)  # takes nothing back
        copy_runs(second, third, ["r"], keys=KEYS)
        assert why(second) is why(third) is None
        assert prove_store(second.database).ok
        copied = next(entry for entry in entries_of(second) if entry["kind"] == "copied")
        assert (copied["from"], copied["store"]) == (name_of(store), name_of(second))
        with second.database.writing() as db:
            db.execute("UPDATE store_copies SET mac = 'ä'")
        assert why(second) == told
        with second.database.writing() as db:
            db.execute("DELETE FROM store_copies")
        assert why(second) == told.partition("; no key")[0] + "; runs come here by `agent-core store copy`"


def test_the_runs_of_a_tenant_are_not_copied_to_another(open_of: Open) -> None:
    acme, globex = open_of("acme"), open_of("globex")
    run_one(acme)
    with pytest.raises(DefinitionError, match=r"runs are those of the tenant acme, and the store .* is that of globex"):
        copy_runs(acme, globex, keys=KEYS)
    assert (globex.journal.runs(), entries_of(globex)) == ([], [])


def test_stores_of_tenants_that_changed_places_are_not_opened(tmp_path: Path) -> None:
    for tenant in ("acme", "globex"):
        with closing(open_store(tmp_path / "runs.db", tenant=tenant)) as store:
            store.note_tenant(tenant)
    (tmp_path / "runs.acme.db").rename(tmp_path / "runs.globex.db")
    with (
        closing(open_store(tmp_path / "runs.db", tenant="globex")) as store,
        pytest.raises(JournalError, match=r"runs\.globex\.db holds the runs of tenant acme, not of globex"),
    ):
        store.note_tenant("globex")
