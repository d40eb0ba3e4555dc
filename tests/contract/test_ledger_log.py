"""The ledger as a transparency log, in both kinds of stores; `aics-tlog` checks what we write, where it is there."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_core import JournalError
from agent_core.evidence.checkpoints import Checkpoint, cosign, find_log_fault
from agent_core.evidence.ed25519 import make_key
from agent_core.evidence.key_files import KeyFiles
from agent_core.evidence.merkle import EMPTY, is_consistent
from agent_core.evidence.notes import COSIGNATURE_KIND, Line, Note, NoteError, verifier_key
from agent_core.evidence.public_keys import PublicKey, PublicKeys, Signer
from engine_shim import Engine
from engine_shim.store.ledger import read_ledger
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.ledger_tree import LedgerTree, find_checkpoint_fault
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from support.cosigned import find_cosigned
from support.optional import needs

pytestmark = needs("cryptography")
POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
FLOW: dict[str, Any] = {"id": "f", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]}
TLOG = os.environ.get("AGENT_CORE_TEST_TLOG", "")
with_tlog = pytest.mark.skipif(not TLOG, reason="AGENT_CORE_TEST_TLOG does not name the program aics-tlog")
ORIGIN = "agent-core/test"


@pytest.fixture(params=["sqlite", POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseRunStore]:
    new_database = request.getfixturevalue("new_database") if request.param == "postgres" else None
    opened = open_store(tmp_path / "runs.db" if new_database is None else str(new_database()))
    yield opened
    opened.close()


def run_some(store: DatabaseRunStore, *runs: str) -> None:
    engine = Engine(store=store)
    for run in runs:
        engine.run_sync(FLOW, run_id=run)


def signer() -> Signer:
    made = KeyFiles(make_key()).signer()
    assert made is not None
    return made


def tlog(*words: str) -> Any:
    done = subprocess.run([TLOG, *words], capture_output=True, text=True)
    return json.loads(done.stdout)


def test_the_log_of_a_store_without_runs_is_empty(store: DatabaseRunStore) -> None:
    assert LedgerTree(store.database).checkpoint(ORIGIN) == Checkpoint(ORIGIN, 0, EMPTY)


def test_each_entry_is_a_leaf_and_each_size_is_the_beginning_of_the_next(store: DatabaseRunStore) -> None:
    tree, seen = LedgerTree(store.database), list[Checkpoint]()
    for number in range(7):
        run_some(store, f"r{number}")
        seen.append(tree.checkpoint(ORIGIN))
    assert [each.size for each in seen] == [read_ledger(store.database)[1] - 6 + number for number in range(7)]
    last = seen[-1]
    for number, then in enumerate(seen):
        assert tree.checkpoint(ORIGIN, then.size) == then
        proof = tree.prove_growth(then.size, last.size)
        assert is_consistent(then.size, last.size, then.root, last.root, proof)
        assert find_checkpoint_fault(store.database, then) is None
        found = tree.prove(f"r{number}", last.size)
        assert (found.root, found.entry["run"], found.entry["status"]) == (last.root, f"r{number}", "completed")
    with pytest.raises(JournalError, match="the ledger has no entry about the run 'r9'"):
        tree.prove("r9", last.size)
    with pytest.raises(JournalError, match="the log has 8 leaves, not 9"):
        tree.checkpoint(ORIGIN, 9)


def test_a_ledger_from_before_becomes_a_log_and_its_heads_hold(
    store: DatabaseRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in several transactions."""
    run_some(store, *(f"r{number}" for number in range(9)))
    head, count = read_ledger(store.database)
    monkeypatch.setattr("engine_shim.store.ledger_tree.BATCH", 4)
    tree = LedgerTree(store.database)
    then = tree.checkpoint(ORIGIN)
    assert then.size == count
    run_some(store, "later")
    assert prove_store(store.database, head).ok
    now = tree.checkpoint(ORIGIN)
    assert is_consistent(then.size, now.size, then.root, now.root, tree.prove_growth(then.size, now.size))
    nodes = store.database.rows("ledger_nodes", "SELECT count(*) FROM ledger_nodes")[0][0]
    assert nodes == 2 * now.size - bin(now.size).count("1")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM ledger WHERE seq > 3", "the checkpoint is of 5 entries, and the ledger has 3: it was cut off"),
        ("UPDATE ledger SET data = '{}' WHERE seq = 2", "the first 5 entries of the ledger are not those"),
        ("UPDATE ledger SET seq = 9 WHERE seq = 2", "the ledger has 4: it was cut off"),
    ],
)
def test_a_checkpoint_that_was_kept_finds_what_was_done_to_the_ledger(
    store: DatabaseRunStore, change: str, told: str
) -> None:
    run_some(store, "r0", "r1", "r2", "r3")
    kept = LedgerTree(store.database).checkpoint(ORIGIN)
    with store.database.writing() as db:
        db.execute(change)
    assert told in str(find_checkpoint_fault(store.database, kept))


def test_no_leaf_is_made_of_an_entry_that_does_not_follow(store: DatabaseRunStore) -> None:
    run_some(store, "r0", "r1", "r2")
    tree = LedgerTree(store.database)
    with store.database.writing() as db:
        db.execute("UPDATE ledger SET hash = (SELECT hash FROM ledger WHERE seq = 1) WHERE seq = 3")
    with pytest.raises(JournalError, match="entry 3 of the ledger does not follow from the one before it"):
        tree.checkpoint(ORIGIN)


def test_what_was_changed_after_it_became_a_leaf_is_proven_no_more(store: DatabaseRunStore) -> None:
    run_some(store, "r0", "r1", "r2")
    tree = LedgerTree(store.database)
    size = tree.grow()
    with store.database.writing() as db:
        db.execute("UPDATE ledger SET data = (SELECT data FROM ledger WHERE seq = 2) WHERE seq = 3")
    with pytest.raises(JournalError, match="entry 3 of the ledger was changed since it became a leaf"):
        tree.prove("r1", size)


def test_a_proof_costs_a_select_a_level(store: DatabaseRunStore) -> None:
    run_some(store, *(f"r{number}" for number in range(12)))
    tree, asked = LedgerTree(store.database), list[str]()
    size, rows = tree.grow(), store.database.rows

    def count(table: str, query: str, *values: Any) -> Any:
        asked.append(query)
        return rows(table, query, *values)

    store.database.rows = count  # type: ignore[method-assign]
    tree.prove("r3", size)
    assert len(asked) <= 1 + 3 * size.bit_length()


@pytest.mark.exhaustive
def test_a_note_comes_back_as_it_was_written_and_each_change_is_found() -> None:
    made = signer()
    keys = PublicKeys.of(PublicKey(made.public))
    note = Checkpoint(ORIGIN, 42, bytes(range(32))).sign(made)
    text = note.write()
    assert Note.read(text) == note
    assert find_log_fault(note, keys) is None
    for at, letter in enumerate(text):
        for other in ("A" if letter != "A" else "B", "\n" if letter != "\n" else "x"):
            changed = text[:at] + other + text[at + 1 :]
            try:
                found = Note.read(changed)
                assert find_log_fault(found, keys) is not None, changed
            except NoteError:
                pass
    assert find_log_fault(note, PublicKeys.of(PublicKey(signer().public))) == "it is signed with no key that is given"
    revoked = PublicKeys.of(PublicKey(made.public, revoked="2026-01-01T00:00:00.000Z"))
    assert "is revoked" in str(find_log_fault(note, revoked))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n1\n",
        "a\n1\n\n",
        "a b\n1\n{root}\n",
        "a\n01\n{root}\n",
        "a\n-1\n{root}\n",
        "a\n१\n{root}\n",
        "a\n99999999999999999999999\n{root}\n",
        "a\n1\nAAAA\n",
        "a\n1\n{root}\nmore\n",
        "a\n1\n{root}",
        "a+b\n1\n{root}\n",
    ],
)
def test_a_text_that_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(NoteError):
        Checkpoint.read(text.format(root=base64.b64encode(bytes(32)).decode()))


def test_a_cosignature_says_who_saw_the_checkpoint_and_when() -> None:
    made, witness = signer(), signer()
    name, key = "audit.example", PublicKey(witness.public)
    note = cosign(Checkpoint(ORIGIN, 42, bytes(32)).sign(made), name, witness, 1_800_000_000)
    assert find_cosigned(note, name, key) == 1_800_000_000
    assert find_log_fault(note, PublicKeys.of(PublicKey(made.public))) is None
    assert find_cosigned(note, name, PublicKey(made.public)) is None
    assert find_cosigned(note, "another", key) is None
    later = Line(name, note.lines[1].tag, (1_900_000_000).to_bytes(8, "big") + note.lines[1].signature[8:])
    assert find_cosigned(Note(note.text, [note.lines[0], later]), name, key) is None
    other = Checkpoint(ORIGIN, 43, bytes(32)).write()
    assert find_cosigned(Note(other, note.lines), name, key) is None


@with_tlog
def test_another_program_reads_our_log_and_we_read_its_own(store: DatabaseRunStore, tmp_path: Path) -> None:
    run_some(store, *(f"r{number}" for number in range(6)))
    tree, made, witness = LedgerTree(store.database), signer(), signer()
    then = tree.checkpoint(ORIGIN, 3)
    now = tree.checkpoint(ORIGIN)
    key, eye = verifier_key(ORIGIN, made.public), verifier_key("audit.example", witness.public, COSIGNATURE_KIND)
    files = {name: tmp_path / name for name in ("old", "new", "leaf", "hashes", "growth")}
    files["old"].write_text(then.sign(made).write())
    files["new"].write_text(cosign(now.sign(made), "audit.example", witness, 1_800_000_000).write())
    proof = tree.prove("r4", now.size)
    files["leaf"].write_bytes(proof.data)
    for name, hashes in (("hashes", proof.hashes), ("growth", tree.prove_growth(then.size, now.size))):
        files[name].write_text("".join(f"{base64.b64encode(each).decode()}\n" for each in hashes))
    seen = tlog(
        "verify-checkpoint", "--note", str(files["new"]), "--log-key", key, "--witness-key", eye, "--quorum", "1"
    )
    assert (seen["ok"], seen["size"], seen["witnesses"]) == (True, now.size, ["audit.example"])
    words = ["--leaf", str(files["leaf"]), "--index", str(proof.index), "--proof", str(files["hashes"])]
    assert tlog("verify-inclusion", *words, "--checkpoint", str(files["new"]), "--log-key", key)["ok"]
    sizes = ["--old-size", str(then.size), "--new-size", str(now.size), "--proof", str(files["growth"])]
    roots = [base64.b64encode(each.root).decode() for each in (then, now)]
    assert tlog("verify-consistency", *sizes, "--old-root", roots[0], "--new-root", roots[1])["ok"]
    files["leaf"].write_bytes(proof.data.replace(b"completed", b"cancelled"))
    words = ["--leaf", str(files["leaf"]), "--index", str(proof.index), "--proof", str(files["hashes"])]
    assert not tlog("verify-inclusion", *words, "--checkpoint", str(files["new"]), "--log-key", key)["ok"]


THEIRS = """
import sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from aics_tlog.checkpoint import Checkpoint, sign_checkpoint
from aics_tlog.cosign import sign_cosignature
from aics_tlog.note import Note
log, eye = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
checkpoint = Checkpoint("example.com/log", 42, bytes(range(32)))
note = sign_checkpoint(checkpoint, log, "example.com/log")
_, line = sign_cosignature(eye, "example.com/eye", 1_800_000_000, "example.com/log", 42, checkpoint.root)
print(log.public_key().public_bytes_raw().hex(), eye.public_key().public_bytes_raw().hex())
sys.stdout.write(Note(note.text, (*note.signatures, line)).serialise())
"""


@with_tlog
def test_we_read_what_another_program_has_signed() -> None:
    python = str(Path(TLOG).with_name("python"))
    done = subprocess.run([python, "-c", THEIRS], capture_output=True, text=True, check=True)
    keys, _, text = done.stdout.partition("\n")
    log, eye = (PublicKey(bytes.fromhex(each)) for each in keys.split())
    note = Note.read(text)
    assert note.write() == text
    assert Checkpoint.read(note.text) == Checkpoint("example.com/log", 42, bytes(range(32)))
    assert find_log_fault(note, PublicKeys.of(log)) is None
    assert find_log_fault(note, PublicKeys.of(eye)) == "it is signed with no key that is given"
    assert find_cosigned(note, "example.com/eye", eye) == 1_800_000_000
