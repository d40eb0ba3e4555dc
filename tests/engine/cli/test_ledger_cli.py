"""The command ledger, of the ledger as a transparency log, and verify --all with a checkpoint that was kept."""

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_core.evidence.checkpoints import Checkpoint, find_log_fault
from agent_core.evidence.merkle import hash_leaf, root_by_inclusion
from agent_core.evidence.notes import Note
from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE
from support.command import Cli
from support.optional import needs

pytestmark = needs("cryptography")
FLOW = str(Path(__file__).parents[3] / "fixtures/workflows/parallel.yaml")
KEY, PUBLIC, STORE = "desk.key", "desk.key.pub", "data/agent-core/runs.db"


@pytest.fixture(autouse=True)
def _key(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("key", "new", KEY)
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def change(statement: str) -> None:
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute(statement)


def test_a_checkpoint_is_signed_and_a_later_log_is_held_against_it(cli: Cli) -> None:
    cli("run", FLOW)
    assert cli("ledger", "checkpoint", "--to", "kept.txt").out == "kept.txt\n"
    note = Note.read(Path("kept.txt").read_text())
    assert find_log_fault(note, PublicKeys.read(Path(PUBLIC).read_text(), PUBLIC)) is None
    assert Checkpoint.read(note.text).size == 2
    cli("run", FLOW)
    told = cli("ledger", "consistency", "kept.txt")
    assert (told.code, told.out) == (0, "ok: its 2 entries are the beginning of today's 3; signature checked\n")
    assert cli("ledger", "consistency", "kept.txt", "--json").json["ok"] is True
    for what in ("checkpoint", "proof last"):  # the file is written, and stdout is one document
        wrote = cli("ledger", *what.split(), "--to", "file.txt", "--json").json
        assert (wrote["path"], wrote["size"], Path("file.txt").is_file()) == ("file.txt", 3, True)
        Path("file.txt").unlink()
    held = cli("verify", "--all", "--checkpoint", "kept.txt", "--key", PUBLIC)
    assert (held.code, "kept.txt: its 2 entries are the beginning of the ledger; signature checked\n" in held.out) == (
        0,
        True,
    )


def test_a_change_of_the_trees_hashes_accuses_no_entry(cli: Cli) -> None:
    cli("run", FLOW)
    cli("ledger", "checkpoint", "--to", "kept.txt")
    change("UPDATE ledger_nodes SET hash = zeroblob(32)")
    told = cli("ledger", "consistency", "kept.txt")
    assert (told.code, "the ledger begins with the entries of the checkpoint, but the hashes" in told.out) == (5, True)
    assert cli("verify", "--all", "--checkpoint", "kept.txt").code == 0


def test_a_checkpoint_that_was_changed_is_told_from_a_ledger_that_was(cli: Cli) -> None:
    cli("run", FLOW)
    note = Path(cli("ledger", "checkpoint", "--to", "kept.txt").out.strip()).read_text()
    Path("kept.txt").write_text(note.replace("\n2\n", "\n1\n"))
    for words in (("ledger", "consistency", "kept.txt"), ("verify", "--all", "--checkpoint", "kept.txt")):
        told = cli(*words, "--key", PUBLIC)
        assert (told.code, "does not fit it: it was changed after it was signed" in told.out) == (5, True)
        assert "entries" not in told.out.splitlines()[0]


def test_a_run_that_is_gone_is_told_as_the_ledger_has_it(cli: Cli) -> None:
    erased, deleted, lost = (cli("run", FLOW, "--json").json["run_id"] for _ in range(3))
    cli("erase", erased, "--why", "request 71")
    change(f"DELETE FROM rows WHERE run = '{lost}'")
    change(f"DELETE FROM workflow_runs WHERE run = '{lost}'")
    for command in ("show", "verify"):
        told = cli(command, erased)
        assert (told.code, "in this store any more: it was erased at 2" in told.err) == (2, True)
        assert ": request 71; `agent-core verify --all` checks the store" in told.err
        assert "by the ledger it was completed at 2" in cli(command, lost).err
    cli("retention", "--older-than", "0m")
    assert "in this store any more: it was deleted at 2" in cli("show", deleted).err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM ledger WHERE seq > 1", "the ledger has 1"),
        ('UPDATE ledger SET data = CAST(\'{"kind":"began"}\' AS BLOB) WHERE seq = 1', "entry 1 of the ledger"),
        ("DELETE FROM rows", "is gone"),
    ],
)
def test_a_store_that_was_changed_is_found_by_a_checkpoint(cli: Cli, statement: str, told: str) -> None:
    cli("run", FLOW)
    cli("ledger", "checkpoint", "--to", "kept.txt")
    change(statement)
    ran = cli("verify", "--all", "--checkpoint", "kept.txt")
    assert (ran.code, told in ran.out) == (5, True), ran.out


def test_a_store_that_was_put_back_is_found(cli: Cli) -> None:
    cli("run", FLOW)
    with closing(sqlite3.connect(STORE)) as db, closing(sqlite3.connect("yesterday.db")) as copy:
        db.backup(copy)
    cli("run", FLOW)
    cli("ledger", "checkpoint", "--to", "kept.txt")
    with closing(sqlite3.connect("yesterday.db")) as copy, closing(sqlite3.connect(STORE)) as db:
        copy.backup(db)
    told = cli("ledger", "consistency", "kept.txt")
    why = "the checkpoint is of 3 entries, and the ledger has 2: it was cut off, or an older copy of the store"
    assert (told.code, told.out) == (5, f"NOT ok: {why} was put back\n")
    cli("run", FLOW)
    told = cli("ledger", "consistency", "kept.txt")
    why = "the first 3 entries of the ledger are not those of the checkpoint: it was written anew, or an older copy of"
    assert (told.code, told.out) == (5, f"NOT ok: {why} the store went on\n")
    ran = cli("verify", "--all", "--checkpoint", "kept.txt")
    assert (ran.code, "are not those of the checkpoint: it was written anew" in ran.out) == (5, True)


def test_a_run_that_ended_is_held_to_its_seal_whatever_it_is_listed_as(cli: Cli) -> None:
    cli("run", FLOW)
    change("DELETE FROM rows WHERE strand = 'seal'")
    change("UPDATE workflow_runs SET status = 'running'")
    ran = cli("verify", "--all")
    assert (ran.code, "it is not sealed, though a key is given" in ran.out) == (5, True), ran.out


def test_a_seal_that_is_gone_is_found_without_a_key(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("run", FLOW)
    monkeypatch.delenv(KEY_VARIABLE)
    assert cli("verify", "--all").code == 0
    change("DELETE FROM rows WHERE strand = 'seal'")
    ran = cli("verify", "--all")
    assert (ran.code, "the seal with which it ended, as the ledger says, is gone" in ran.out) == (5, True), ran.out


def test_a_proof_shows_how_a_run_ended(cli: Cli) -> None:
    runs = [cli("run", FLOW, "--json").json["run_id"] for _ in range(3)]
    proof = json.loads(cli("ledger", "proof", runs[1]).out)
    entry, checkpoint = json.loads(proof["entry"]), Checkpoint.read(Note.read(proof["checkpoint"]).text)
    assert (proof["format"], entry["run"], entry["status"]) == ("agent-core/ledger-proof/1", runs[1], "completed")
    hashes = [base64.b64decode(each) for each in proof["hashes"]]
    leaf = hash_leaf(proof["entry"].encode())
    assert root_by_inclusion(proof["index"], checkpoint.size, leaf, hashes) == checkpoint.root
    assert entry["head"] == cli("verify", runs[1], "--json").json["head"]


def test_a_checkpoint_of_another_log_or_key_is_told_apart(cli: Cli) -> None:
    cli("run", FLOW)
    cli("ledger", "checkpoint", "--to", "kept.txt")
    cli("run", FLOW, "--store", "other.db")
    told = cli("ledger", "consistency", "kept.txt", "--store", "other.db")
    assert (told.code, "the checkpoint is of the log agent-core/" in told.out) == (5, True)
    ran = cli("verify", "--all", "--checkpoint", "kept.txt", "--store", "other.db")
    assert "the checkpoint is of the log" in ran.out
    cli("key", "new", "other.key")
    told = cli("ledger", "consistency", "kept.txt", "--key", "other.key.pub")
    assert (told.code, told.out) == (5, "NOT ok: the checkpoint: it is signed with no key that is given\n")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("proof",), "proof needs a RUN"),
        (("consistency",), "consistency needs the FILE of a checkpoint"),
        (("consistency", "none.txt"), "none.txt cannot be read: No such file or directory"),
        (("consistency", KEY), f"{KEY} is no checkpoint: it is no signed note"),
        (("checkpoint", "--to", "no/such/file"), "no/such/file cannot be written: No such file or directory"),
        (("proof", "nobody"), "nobody"),
        (("cosign", "http://127.0.0.1:1", "--key", PUBLIC, "--to", "no/such"), "--to no/such cannot be written: there"),
    ],
)
def test_what_cannot_be_done_is_told(cli: Cli, words: tuple[str, ...], told: str) -> None:
    cli("run", FLOW)
    ran = cli("ledger", *words)
    assert (ran.code, told in ran.err) == (2, True), ran.err


def test_only_a_key_whose_signatures_others_can_check_signs_a_checkpoint(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", FLOW)
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:a-secret-key-of-this-host")
    refused = cli("ledger", "checkpoint")
    assert (refused.code, "AGENT_CORE_SIGNING_KEY is not set here" in refused.err) == (2, True)
