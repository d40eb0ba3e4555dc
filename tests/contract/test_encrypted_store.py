"""An encrypted store, in both kinds: nothing readable is in its files, everything is found by its key, and what was
erased is gone from every file, while all of it still verifies."""

import asyncio
import base64
import json
import os
import secrets
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, DefinitionError, JournalError, Keys, replay, run_agent_sync, verify
from agent_core.audit.excerpt import verify_excerpt
from agent_core.encryption.operator_key import FileKey, make_key_text, make_operator_file
from agent_core.encryption.record_cipher import derive_salt
from agent_core.errors import Unreadable
from agent_core.evidence.ed25519 import make_key
from agent_core.evidence.key_files import KeyFiles, make_key_file
from agent_core.journal.control import waiting_calls
from agent_core.journal.jsonl import JsonlJournal
from agent_core.journal.signature import signature_fault
from agent_core.models import ScriptedModel
from agent_core.run.secrets import verifying_keys
from engine_shim import Engine
from engine_shim.runs.loops import LOOPS
from engine_shim.store import content_keys
from engine_shim.store.callbacks import RunCallback, read_callback, save_callback
from engine_shim.store.copy import copy_runs
from engine_shim.store.entries import RunFilter
from engine_shim.store.erase import ErasureRequest, erase_runs, find_erasure_faults, list_erasures, renew_keys
from engine_shim.store.excerpts import write_excerpt
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.open import cipher_of, open_store
from engine_shim.store.passing_events import Passing, PassingEvents, Piece
from engine_shim.store.run_store import DatabaseRunStore
from engine_shim.store.search import RunQuery, RunSearch
from support.optional import needs
from utools.calls.store_encrypted import EncryptedCallStore
from utools.calls.store_memory import MemoryCallStore
from utools.context.store_encrypted import EncryptedContextStore, subject_of
from utools.context.store_memory import MemoryContextStore
from utools.files.atomic import locked

pytestmark = needs("cryptography")
VARIABLE = "AGENT_CORE_ENCRYPTION_KEY"
POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
REQUEST = ErasureRequest("desk", "2026-11-29T12:00:00+00:00", "request 71")
SECRET = "MARIGOLD"
"""What only runs say; a test that looks for it in all files of a server has one of its own."""
CONFIG: dict[str, Any] = {
    "model": "scripted",
    "max_steps": 3,
    "allowed_tools": ["echo"],
    "prompt": "Where is MARIGOLD?",
}
AGENT: dict[str, Any] = {"id": "asks", "nodes": [{"id": "a", "tool": "agent_core", "config": CONFIG}]}
WAITS: dict[str, Any] = {
    "id": "waits",
    "nodes": [{"id": "w", "tool": "echo", "config": {"text": "MARIGOLD waits"}, "approval": "always"}],
}
Open = Callable[[], DatabaseRunStore]
Search = Callable[[], bytes]


def model(secret: str = SECRET) -> ScriptedModel:
    call = {"type": "action", "tool": "echo", "args": {"text": f"{secret} is there"}}
    return ScriptedModel([json.dumps(call), json.dumps({"type": "final", "answer": f"{secret} it is."})] * 20)


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys" / "store.key"
    path.parent.mkdir()
    make_operator_file(path)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture(params=["sqlite", POSTGRES])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Open, Search]]:
    """Opens the store once more, and gives all bytes of its files."""
    address, folder, pattern = str(tmp_path / "runs.db"), tmp_path, "runs.db*"
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        address, folder, pattern = server.make_database(), server.data, "**/*"
    opened: list[DatabaseRunStore] = []

    def reopen() -> DatabaseRunStore:
        opened.append(open_store(address))
        return opened[-1]

    yield reopen, lambda: b"".join(each.read_bytes() for each in folder.glob(pattern) if each.is_file())
    for each in opened:
        each.close()


@pytest.fixture
def reopen(places: tuple[Open, Search]) -> Open:
    return places[0]


@pytest.fixture
def read_files(places: tuple[Open, Search]) -> Search:
    return places[1]


@pytest.fixture
def store(reopen: Open, key: Path) -> DatabaseRunStore:
    made = reopen()
    made.contents.want()
    return made


def run_some(store: DatabaseRunStore, *runs: str, flow: dict[str, Any] = AGENT, secret: str = SECRET) -> None:
    engine = Engine(store=store, model=model(secret))
    for run in runs:
        engine.run_sync(json.loads(json.dumps(flow).replace(SECRET, secret)), run_id=run)


def held(text: str, found: bytes) -> bool:
    return any(text.encode(each) in found for each in ("utf-8", "utf-16-le"))


# ── at rest ──────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_store_holds_what_the_search_of_its_files_looks_for(reopen: Open, read_files: Search) -> None:
    run_some(reopen(), "plain")
    assert held("MARIGOLD", read_files())


def test_nothing_readable_is_in_the_files(store: DatabaseRunStore, read_files: Search) -> None:
    mark = f"ZINNIA{secrets.token_hex(4)}"
    run_some(store, "ended", secret=mark)
    run_some(store, "waiting", flow=WAITS, secret=mark)
    Engine(store=store).send_signal("waiting", mark, {"said": mark}, by="desk")
    save_callback(store.contents, "ended", RunCallback(f"https://hooks.example/{mark}", False))
    PassingEvents(store).write([("ended", Passing("flow", 1, [Piece("answer", mark)]))])
    assert not held(mark, read_files())
    assert read_callback(store.contents, "ended") == RunCallback(f"https://hooks.example/{mark}", False)
    ((_, passing),) = PassingEvents(store).read("ended", 0)
    assert passing.pieces == [Piece("answer", mark)]


def test_the_same_record_is_the_same_bytes(store: DatabaseRunStore, reopen: Open) -> None:
    first, second = (each.contents.find_encrypter("r") for each in (store, reopen()))
    assert first is not None
    assert second is not None
    assert first("flow/a.1", 3, b"{}") == second("flow/a.1", 3, b"{}")
    others = {first(*each, b"{}") for each in (("flow/a.1", 4), ("flow/a.13", 0), ("flow/b.1", 3))}
    assert len(others) == 3
    assert first("flow/a.1", 3, b"{}") not in others


def test_a_run_is_read_replayed_and_verified_by_its_key(store: DatabaseRunStore, reopen: Open) -> None:
    run_some(store, "r")
    again = reopen()
    assert replay(again.journal, run_id="r", loops=LOOPS).identical
    found = verify(again.journal, run_id="r")
    assert (found.ok, found.complete, found.contents) == (True, True, "read")
    assert again.journal.load("r") == store.journal.load("r")


def test_without_its_key_a_run_verifies_and_is_not_read(
    store: DatabaseRunStore, reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_some(store, "r")
    head = verify(store.journal, run_id="r").head
    monkeypatch.delenv(VARIABLE)
    again = reopen()
    found = verify(again.journal, run_id="r")
    assert (found.ok, found.head, found.contents) == (True, head, "encrypted")
    assert prove_store(again.database).ok
    with pytest.raises(Unreadable, match="set AGENT_CORE_ENCRYPTION_KEY to the key of its store"):
        asyncio.run(Engine(store=again).resume("r"))
    with pytest.raises(DefinitionError, match="needs the operator's key"):
        run_some(again, "another")
    assert again.entry("another") is None or not again.journal.load("another")


def test_a_run_verifies_under_a_key_that_is_not_its_own(
    store: DatabaseRunStore, reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: Path
) -> None:
    run_some(store, "r")
    content_keys._OPENED.clear()
    make_operator_file(other := tmp_path / "other.key")
    key.chmod(0o644)
    for given in (str(other), make_key_text(), str(tmp_path / "none.key"), str(key)):
        monkeypatch.setenv(VARIABLE, given)
        again = reopen()
        found = verify(again.journal, run_id="r")
        assert (found.ok, found.contents) == (True, "encrypted"), given
        assert prove_store(again.database).ok
        with pytest.raises((JournalError, DefinitionError)) as refused:
            asyncio.run(Engine(store=again).resume("r"))
        assert not isinstance(refused.value, Unreadable) or "set AGENT_CORE_ENCRYPTION_KEY" in str(refused.value)


def test_a_key_that_is_replaced_while_it_is_read_is_read_again(
    store: DatabaseRunStore, reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_some(store, "r")
    again, unwrap = reopen(), FileKey.unwrap

    def rotate_first(self: FileKey, wrapped: bytes) -> bytes:
        monkeypatch.setattr(FileKey, "unwrap", unwrap)
        renew_keys(store)
        content_keys._OPENED.clear()
        return unwrap(self, wrapped)

    for read in (again.journal.load, lambda run: again.contents.find_encrypter(run)):
        content_keys._OPENED.clear()
        monkeypatch.setattr(FileKey, "unwrap", rotate_first)
        read("r")
    assert verify(again.journal, run_id="r").contents == "read"


def test_damage_is_found_with_and_without_the_key(
    store: DatabaseRunStore, reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_some(store, "r")
    ((strand, n, data),) = store.database.rows("rows", "SELECT strand, n, data FROM rows WHERE run = 'r' AND n = 3")
    changed = bytes(data)[:-1] + bytes([bytes(data)[-1] ^ 1])
    with store.database.writing() as db:
        db.execute("UPDATE rows SET data = ? WHERE run = 'r' AND strand = ? AND n = ?", (changed, strand, n))
    for _ in range(2):
        found = verify(reopen().journal, run_id="r")
        assert not found.ok
        assert found.first_bad is not None
        assert (found.first_bad["strand"], found.first_bad["n"]) == (strand, n)
        monkeypatch.delenv(VARIABLE, raising=False)


def test_records_in_the_clear_are_refused(store: DatabaseRunStore, reopen: Open, tmp_path: Path) -> None:
    run_some(store, "r")
    with closing(open_store(tmp_path / "other.db")) as other:
        run_some(other, "plain")
        rows = [row for _, row in other.tail("plain")]
        with pytest.raises(JournalError, match="is encrypted, and these records are not"):
            reopen().journal.append("plain", rows)
    with (
        closing(open_store(tmp_path / "other.db")) as other,
        pytest.raises(DefinitionError, match="has runs that are not encrypted"),
    ):
        other.contents.want()
    with closing(open_store(tmp_path / "other.db")) as other:
        for one, two in ((store, other), (other, store)):
            with pytest.raises(DefinitionError, match="is encrypted, and cannot be copied run by run"):
                copy_runs(one, two)


def test_a_journal_that_is_opened_by_its_place_writes_nothing_into_an_encrypted_store(
    store: DatabaseRunStore, read_files: Search
) -> None:
    run_some(store, "r")
    mark = f"ZINNIA{secrets.token_hex(4)}"
    place = getattr(store, "path", None) or getattr(store.database.shared, "_url", "")
    with pytest.raises(JournalError, match="is encrypted, and these records would not be"):
        run_agent_sync(
            {**CONFIG, "allowed_tools": [], "prompt": mark},
            registry=[],
            model=model(mark),
            journal=place,
            run_id="plain",
        )
    assert not held(mark, read_files())


def test_a_run_that_waits_is_decided_and_forked(store: DatabaseRunStore, reopen: Open) -> None:
    run_some(store, "w", flow=WAITS)
    engine = Engine(store=reopen(), model=model())
    (call,) = waiting_calls(store.journal.load("w"))
    place = (call["strand"], call["n"])
    assert asyncio.run(engine.resume("w", decisions={place: Approve()})).status == "completed"
    forked = asyncio.run(engine.fork("w", ("flow/w.1", 0), new_id="f", repeat_writes=True))
    assert (forked.run_id, forked.status) == ("f", "waiting")
    assert verify(store.journal, run_id="w").ok
    assert verify(store.journal, run_id="f").first_bad is None


def test_lists_and_searches_find_what_those_of_a_plain_store_find(store: DatabaseRunStore, tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "plain.db")) as plain:
        for each in (plain, store):
            run_some(each, "r1", "r2")
            run_some(each, "w1", flow=WAITS)
        queries = [
            RunQuery(RunFilter()),
            RunQuery(RunFilter(), text="marigold IT"),
            RunQuery(RunFilter(), text="MARIGOLD", tool="echo"),
            RunQuery(RunFilter(), reason="final"),
            RunQuery(RunFilter(), tool="nobody"),
            RunQuery(RunFilter(), text='nowhere " % _ !'),
        ]
        for query in queries:
            one, two = (RunSearch(each).find(query) for each in (plain, store))
            assert [each.run for each in one.entries] == [each.run for each in two.entries], query
            for run, digest in one.digests.items():
                digest.seconds = two.digests[run].seconds
                assert digest == two.digests[run]


# ── what tools keep ──────────────────────────────────────────────────────────────────────────────


def test_conversations_and_kept_answers_are_encrypted(store: DatabaseRunStore) -> None:
    run_some(store, "r")
    cipher = cipher_of(store)
    assert cipher is not None
    below, calls = MemoryContextStore(), MemoryCallStore()
    turns, answers = EncryptedContextStore(below, cipher), EncryptedCallStore(calls, cipher)
    turn = [{"role": "user", "content": "MARIGOLD"}]

    async def talk() -> None:
        assert await turns.append("anna", "t1", turn)
        assert await turns.append("anna", "t1", turn)  # the same call again
        assert await turns.turns("anna") == [turn]
        assert "MARIGOLD" not in json.dumps(await below.turns("anna"))
        await answers.put("k", "MARIGOLD", 60)
        assert await answers.get("k") == "MARIGOLD"
        assert "MARIGOLD" not in str(await calls.get("k"))
        erase_runs(store, [], REQUEST, None, [subject_of("anna")])
        assert await turns.turns("anna") == []
        assert await answers.get("k") is None  # it may be what the erased have read
        await answers.put("k", "MARIGOLD again", 60)
        assert await answers.get("k") == "MARIGOLD again"
        assert await turns.append("anna", "t2", turn)
        assert await turns.turns("anna") == [turn]  # the conversation has begun anew, under a key of its own
        assert await turns.drop_last("anna", 1)  # its last turn is taken back, whatever is below that nobody reads
        assert await turns.turns("anna") == []

    asyncio.run(talk())


# ── erasure ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def signed() -> Keys:
    return Keys(keyring=KeyFiles(make_key()))


def test_what_is_erased_is_in_no_file_and_everything_verifies(
    store: DatabaseRunStore, reopen: Open, read_files: Search, key: Path, signed: Keys
) -> None:
    mark = f"ZINNIA{secrets.token_hex(4)}"
    run_some(store, "gone", "stays", secret=mark)
    before, own, operators = verify(store.journal, run_id="gone"), store.contents.find("gone"), key.read_text()
    wrapped = [bytes(each) for (each,) in store.database.rows("store_keys", "SELECT wrapped FROM store_keys")]
    kept = [bytes(each) for (each,) in store.database.rows("content_keys", "SELECT wrapped FROM content_keys")]
    assert erase_runs(store, ["gone"], REQUEST, signed).runs == ["gone"]
    found = read_files()
    assert not held(mark, found)
    assert own not in found
    assert base64.b64encode(own) not in found
    again = reopen()
    after = verify(again.journal, run_id="gone")
    assert (after.ok, after.head, after.count, after.contents) == (True, before.head, before.count, "erased")
    with pytest.raises(Unreadable, match="it was erased"):
        asyncio.run(Engine(store=again).resume("gone"))
    assert verify(again.journal, run_id="stays").contents == "read"
    proof = prove_store(again.database)
    assert (proof.ok, proof.erased) == (True, 1)
    (entry,) = list_erasures(again.database)
    assert (entry["run"], entry["by"], entry["why"], entry["head"]) == ("gone", "desk", "request 71", before.head)
    assert list(find_erasure_faults(again.database, signed)) == []
    others = Keys(keyring=KeyFiles(make_key()))
    assert [each["run"] for each in find_erasure_faults(again.database, others)] == ["gone"]
    # copies of the keys that were wrapped before open nothing: the operator's key of then is in no file any more
    line = operators.splitlines()[-1]
    assert line not in key.read_text()
    operator = FileKey(key, _id_of(again))
    for each in wrapped:
        with pytest.raises(JournalError, match=r"which .* does not have"):
            operator.unwrap(each)
    assert all(each not in [bytes(row[0]) for row in again.database.rows("content_keys", _WRAPPED)] for each in kept)


_WRAPPED = "SELECT wrapped FROM content_keys WHERE wrapped IS NOT NULL"


def _id_of(store: DatabaseRunStore) -> str:
    return str(store.database.rows("store_identity", "SELECT store FROM store_identity")[0][0])


def test_conversations_that_remember_what_was_erased_are_named(store: DatabaseRunStore) -> None:
    run_some(store, "one", "two")
    with store.database.writing() as db:
        for run in ("one", "two"):
            db.execute("INSERT INTO run_turns (run, agent, conversation) VALUES (?, 'helper', 'anna')", (run,))
    left = erase_runs(store, ["one"], REQUEST, None).left
    assert left == "the conversations anna remember what was said there: --conversation erases it"
    assert erase_runs(store, ["two"], REQUEST, None, [subject_of("anna")]).left == ""


def test_forks_that_hold_what_was_erased_are_named(store: DatabaseRunStore) -> None:
    run_some(store, "one", "other")
    engine = Engine(store=store, model=model())
    fork = asyncio.run(engine.fork("one", ("flow/a.1", 0))).run_id
    second = asyncio.run(engine.fork(fork, ("flow/a.1", 0))).run_id
    left = erase_runs(store, ["one", fork], REQUEST, None).left
    assert left == f"the runs {second} were forked from there, and hold what was recorded before: erase them too"
    assert erase_runs(store, ["one"], REQUEST, None).left == ""  # the fork that named its past is erased


def test_what_is_beside_the_records_goes_with_them(store: DatabaseRunStore, key: Path) -> None:
    """Also what the operator's file held before, for whoever reads its disk."""
    run_some(store, "gone", "stays")
    for run in ("gone", "stays"):
        save_callback(store.contents, run, RunCallback("https://hooks.example/1", False))
        PassingEvents(store).write([(run, Passing("flow", 1, [Piece("answer", "It is")]))])
        with store.database.writing() as db:
            db.execute("INSERT INTO run_turns VALUES (?, 'guide', 'anna')", (run,))
    os.link(key, key.with_name("before"))
    erase_runs(store, ["gone"], REQUEST, None)
    for table in ("run_callbacks", "passing_events"):
        assert store.database.rows(table, f"SELECT run FROM {table}") == [("stays",)]
    turns = store.database.rows("run_turns", "SELECT run, conversation FROM run_turns ORDER BY run")
    assert [tuple(turn) for turn in turns] == [("gone", None), ("stays", "anna")]
    assert len(store.database.rows("store_keys", "SELECT n FROM store_keys")) == 1
    assert set(key.with_name("before").read_bytes()) == {0}


def test_nothing_is_erased_of_a_run_that_goes_on(store: DatabaseRunStore) -> None:
    run_some(store, "r")
    run_some(store, "w", flow=WAITS)
    with pytest.raises(DefinitionError, match="'w' has not ended: it is waiting"):
        erase_runs(store, ["r", "w"], REQUEST, None)
    assert verify(store.journal, run_id="r").contents == "read"


@pytest.mark.parametrize("at", ["renew", "wrap", "drop_older"])
def test_an_erasure_that_was_interrupted_is_finished_when_it_is_done_again(
    store: DatabaseRunStore, reopen: Open, key: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    run_some(store, "gone", "stays")
    old = key.read_text().splitlines()[-1]

    def die(self: FileKey, *_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FileKey, at, die)
        with pytest.raises(KeyboardInterrupt):
            erase_runs(store, ["gone"], REQUEST, None)
    assert verify(reopen().journal, run_id="stays").contents == "read"
    erase_runs(reopen(), ["gone"], REQUEST, None)
    again = reopen()
    assert verify(again.journal, run_id="gone").contents == "erased"
    assert verify(again.journal, run_id="stays").contents == "read"
    assert old not in key.read_text()
    assert len(list(list_erasures(again.database))) == 1
    assert prove_store(again.database).ok


@pytest.mark.parametrize("kind", ["file", "variable"])
def test_no_key_is_dropped_that_the_store_is_still_wrapped_by(
    store: DatabaseRunStore, reopen: Open, key: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Where an erasure ended before it was done, or a newer key was named for one that is yet to come."""
    if kind == "variable":
        old = make_key_text()
        monkeypatch.setenv(VARIABLE, old)
    run_some(store, "gone", "stays")
    if kind == "variable":
        monkeypatch.setenv(VARIABLE, f"{make_key_text()},{old}")
    else:
        with monkeypatch.context() as patched:
            patched.setattr(FileKey, "wrap", _die)
            with pytest.raises(KeyboardInterrupt):
                erase_runs(store, ["gone"], REQUEST, None)
        assert len(key.read_text().splitlines()) == 3
    assert erase_runs(store, [], REQUEST, None).left == ""
    again = reopen()
    content_keys._OPENED.clear()
    found = verify(again.journal, run_id="stays")
    assert (found.ok, found.contents) == (True, "read")


def _die(*_: object) -> str:
    raise KeyboardInterrupt


def test_two_erasures_at_once_each_have_a_key_of_their_own(
    store: DatabaseRunStore, reopen: Open, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one waits for the first: by the keys of neither anything can be opened that was wrapped before."""
    run_some(store, "one", "two", "stays")
    other, renew, seen = reopen(), FileKey.renew, list[bytes]()

    def renew_slowly(self: FileKey, wrapped: bytes) -> None:
        seen.append(wrapped)
        renew(self, wrapped)
        second.wait(0.2)

    second = threading.Event()
    monkeypatch.setattr(FileKey, "renew", renew_slowly)
    with ThreadPoolExecutor(2) as both:
        list(both.map(lambda of, run: erase_runs(of, [run], REQUEST, None), (store, other), ("one", "two")))
    assert len(set(seen)) == 2
    operator = FileKey(key, _id_of(store))
    for wrapped in seen:
        with pytest.raises(JournalError, match=r"which .* does not have"):
            operator.unwrap(wrapped)
    assert [verify(reopen().journal, run_id=run).contents for run in ("one", "two", "stays")] == [
        "erased",
        "erased",
        "read",
    ]


def test_rotation_rewrites_no_row(store: DatabaseRunStore, reopen: Open, key: Path) -> None:
    run_some(store, "r1", "r2")
    rows = store.database.rows("rows", "SELECT seq, hash, data FROM rows ORDER BY seq")
    old = key.read_text()
    assert renew_keys(store) == ""
    assert old != key.read_text()
    assert reopen().database.rows("rows", "SELECT seq, hash, data FROM rows ORDER BY seq") == rows
    assert verify(reopen().journal, run_id="r2").contents == "read"


def test_an_erasure_of_a_plain_run_that_was_interrupted_is_finished(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = reopen()
    run_some(store, "gone")
    with monkeypatch.context() as patched:
        patched.setattr(DatabaseRunStore, "forget", _die)
        with pytest.raises(KeyboardInterrupt):
            erase_runs(store, ["gone"], REQUEST, None)
    assert erase_runs(store, ["gone"], REQUEST, None).before == ["gone"]
    assert store.journal.load("gone") == {}
    assert len(list(list_erasures(store.database))) == 1
    run_some(store, "gone")  # another one, which took its id
    assert erase_runs(store, ["gone"], REQUEST, None).runs == ["gone"]
    assert store.journal.load("gone") == {}


def test_a_plain_store_deletes_keeps_the_head_and_says_what_it_cannot_promise(reopen: Open, signed: Keys) -> None:
    store = reopen()
    run_some(store, "gone", "stays")
    head = verify(store.journal, run_id="gone").head
    fork = asyncio.run(Engine(store=store, model=model()).fork("gone", ("flow/a.1", 0))).run_id
    erased = erase_runs(store, ["gone"], REQUEST, signed)
    assert "backups of the store may still have them" in erased.left
    assert f"the runs {fork} were forked from there" in erased.left
    assert store.journal.load("gone") == {}
    (entry,) = list_erasures(store.database)
    assert (entry["run"], entry["head"], entry["count"] > 0) == ("gone", head, True)
    assert list(find_erasure_faults(store.database, signed)) == []
    assert prove_store(store.database).ok
    assert erase_runs(store, ["gone"], REQUEST, signed).before == ["gone"]


# ── the operator's key ───────────────────────────────────────────────────────────────────────────


def test_a_file_is_the_key_of_one_store(store: DatabaseRunStore, key: Path, tmp_path: Path) -> None:
    run_some(store, "r")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with closing(open_store(tmp_path / "second.db")) as second:
        why = r"is the key of the store .*, and this is a new one; give each store a key of its own"
        with pytest.raises(DefinitionError, match=why):
            second.contents.want()
        with pytest.raises(DefinitionError, match=r"give each store a key of its own"):
            run_some(second, "r")
        assert second.entries() == []


def test_of_two_stores_that_first_use_a_key_at_once_one_gets_it(key: Path) -> None:
    with ThreadPoolExecutor(1) as other:
        with locked(key.parent):
            late = other.submit(FileKey(key, "late").wrap, bytes(32))
            while not late.running():
                pass
            FileKey(key, "first")._write((base64.b64decode(key.read_text()),))
        with pytest.raises(DefinitionError, match=r"is the key of the store first, and this is late"):
            late.result()
    assert FileKey(key, "first").wrap(bytes(32))


def test_a_link_to_a_key_stays_one_and_what_a_dead_writer_left_is_destroyed(
    store: DatabaseRunStore, reopen: Open, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link.key"
    link.symlink_to(key)
    monkeypatch.setenv(VARIABLE, str(link))
    run_some(store, "gone", "stays")
    left = key.with_name(f".{key.name}.4711")
    left.write_bytes(key.read_bytes())
    erase_runs(store, ["gone"], REQUEST, None)
    assert link.is_symlink()
    assert not left.exists()
    monkeypatch.setenv(VARIABLE, str(key))
    assert verify(reopen().journal, run_id="stays").contents == "read"


def test_a_key_file_that_cannot_be_written_is_explained_and_nothing_is_erased(
    store: DatabaseRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_some(store, "r")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent_core.encryption.operator_key.replace_text", refuse)
    with pytest.raises(DefinitionError, match="cannot be written: No space left on device"):
        erase_runs(store, ["r"], REQUEST, None)
    assert verify(store.journal, run_id="r").contents == "read"


def test_a_key_that_cannot_be_given_back_to_its_owner_stays_as_it_is(
    store: DatabaseRunStore, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_some(store, "r")
    before = key.read_text()

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("agent_core.evidence.key_files._keep_owner", refuse)
    with pytest.raises(DefinitionError, match="cannot be written: Operation not permitted"):
        erase_runs(store, ["r"], REQUEST, None)
    assert (key.read_text(), [each.name for each in key.parent.glob(f".{key.name}.*")]) == (before, [])
    assert verify(store.journal, run_id="r").contents == "read"


def test_who_erases_leaves_the_key_to_its_owner(store: DatabaseRunStore, key: Path) -> None:
    run_some(store, "gone", "stays")
    owner = 65534 if os.geteuid() == 0 else os.geteuid()  # only root can give files away
    os.chown(key, owner, -1)
    erase_runs(store, ["gone"], REQUEST, None)
    assert (key.stat().st_uid, stat.S_IMODE(key.stat().st_mode)) == (owner, 0o600)


def test_keys_in_a_variable_are_replaced_by_the_operator(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = make_key_text(), make_key_text()
    monkeypatch.setenv(VARIABLE, old)
    store = reopen()
    store.contents.want()
    run_some(store, "gone", "stays")
    with pytest.raises(DefinitionError, match="to erase, a newer key is needed in front of this one"):
        erase_runs(store, ["gone"], REQUEST, None)
    assert verify(store.journal, run_id="gone").contents == "read"
    monkeypatch.setenv(VARIABLE, f"{new},{old}")
    assert f"remove from {VARIABLE}, and" in erase_runs(store, ["gone"], REQUEST, None).left
    monkeypatch.setenv(VARIABLE, new)
    assert [verify(reopen().journal, run_id=run).contents for run in ("gone", "stays")] == ["erased", "read"]


COMMAND = """
import pathlib, sys
from agent_core.encryption.operator_key import VariableKey, make_key_text
import base64
file, store, verb = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
file = file.with_name(file.name + store)
keys = file.read_text().split() if file.exists() else [make_key_text()]
if verb == "renew":
    keys = [make_key_text(), *keys]
if verb == "drop":
    keys = keys[:1]
file.write_text(chr(10).join(keys))
own = VariableKey(tuple(map(base64.b64decode, keys)))
if verb in ("wrap", "unwrap"):
    sys.stdout.buffer.write(getattr(own, verb)(sys.stdin.buffer.read()))
"""


def test_a_command_keeps_the_key_where_nobody_reads_it(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "wraps.py"
    program.write_text(COMMAND)
    monkeypatch.setenv(VARIABLE, f"command:{sys.executable} {program} {tmp_path / 'module'}")
    store = reopen()
    store.contents.want()
    run_some(store, "gone", "stays")
    (module,) = tmp_path.glob("module*")
    old = module.read_text()
    erase_runs(store, ["gone"], REQUEST, None)
    assert old not in module.read_text()
    assert [verify(reopen().journal, run_id=run).contents for run in ("gone", "stays")] == ["erased", "read"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("command:", "names no program"),
        ("/no/such/key", "cannot be read"),
        (base64.b64encode(b"short").decode(), "cannot be read"),
        (f"{base64.b64encode(bytes(32)).decode()},x", "no key, which is 32 bytes in Base64"),
    ],
)
def test_an_operator_key_that_cannot_be_used_is_explained(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, given: str, why: str
) -> None:
    monkeypatch.setenv(VARIABLE, given)
    store = reopen()
    for act in (store.contents.want, partial(run_some, store, "r")):
        with pytest.raises((DefinitionError, JournalError), match=why):
            act()
    assert (store.journal.load("r"), store.entries()) == ({}, [])


# ── files of single runs ─────────────────────────────────────────────────────────────────────────


def test_an_exported_run_verifies_and_replays_by_the_keys_of_its_own_records(
    store: DatabaseRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_some(store, "r", "other")
    rows = [row for _, row in store.tail("r")]
    lines, hashes = store.contents.write_lines("r", rows), sorted(row.hash for row in rows)
    monkeypatch.delenv(VARIABLE)
    path = tmp_path / "r.jsonl"
    path.write_bytes(lines)
    assert verify(path).ok
    loaded = JsonlJournal(path).load("r")
    assert sorted(row.hash for strand in loaded.values() for row in strand) == hashes
    assert b"MARIGOLD" in lines
    for old, new in ((b"MARIGOLD", b"MARIGOLT"), (b'"key":"A', b'"key":"B'), (b'"stored":"AQ', b'"stored":"Ag')):
        if old in lines:
            path.write_bytes(lines.replace(old, new, 1))
            assert not verify(path).ok


def test_records_of_an_encrypted_run_are_shown_alone(
    store: DatabaseRunStore, signed: Keys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By salts that follow from the key of the run: no seal keeps them, and an excerpt has no key."""
    private = tmp_path / "sign.key"
    make_key_file(private)
    monkeypatch.setenv("AGENT_CORE_SIGNING_KEY", str(private))
    run_some(store, "r", "other")
    keys = verifying_keys()
    assert keys is not None
    assert keys.keyring is not None
    tape = store.journal.load("r")
    assert signature_fault("r", tape, keys, store.journal.identity) is None
    seal = tape["seal"][-1].record()
    assert ("root" in seal, "salt" in seal) == (True, False)
    text = write_excerpt("r", tape, ["flow:0"], store, keys.keyring.signer())
    found = verify_excerpt(text, keys)
    assert (found.ok, found.shown, found.count) == (True, 1, sum(len(rows) for rows in tape.values()) - 1)
    own = store.contents.find("r")
    assert base64.b64encode(own).decode() not in text
    for part in (own, derive_salt(own)):
        assert part not in b"".join(bytes(row[0]) for row in store.database.rows("rows", "SELECT data FROM rows"))
    erase_runs(store, ["r"], REQUEST, keys)
    with pytest.raises(Unreadable):
        write_excerpt("r", tape, ["flow:0"], store, keys.keyring.signer())
    assert verify_excerpt(text, keys).ok
    erased = store.journal.load("r")
    assert signature_fault("r", erased, keys, store.journal.identity) is None
    assert verify(store.journal, run_id="r", keys=keys).seal.startswith("sealed by ed25519:")
