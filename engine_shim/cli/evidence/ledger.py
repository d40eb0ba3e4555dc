"""The command ledger, of the ledger as a transparency log: its checkpoints, and what is proven by them."""

import base64
import json
from pathlib import Path
from typing import Final

import typer

from agent_core.evidence.checkpoints import Checkpoint, find_log_fault
from agent_core.evidence.merkle import is_consistent
from agent_core.evidence.notes import Note, NoteError, verifier_key
from agent_core.evidence.public_keys import Signer
from agent_core.journal.identity import read_identity
from agent_core.journal.signature import Keys
from agent_core.run.secrets import find_signer
from engine_shim.cli import output
from engine_shim.cli.records.audit import keys_of
from engine_shim.cli.records.run_names import find_run
from engine_shim.cli.store import open_named_store
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.ledger_tree import LedgerTree, find_checkpoint_fault, origin_of
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress

PROOF: Final = "agent-core/ledger-proof/1"
"""The format of a proof of one entry."""
_TREE_CHANGED: Final = (
    "the ledger begins with the entries of the checkpoint, but the hashes that the store keeps of the log's tree are "
    "not those of its entries: somebody changed them; `verify --all --checkpoint FILE` goes by the entries alone"
)


def write_checkpoint(address: StoreAddress | None, target: str | None, *, as_json: bool) -> int:
    """Sign how the log is now, for others to keep. BadParameter where no key signs, or nothing has ended yet."""
    store, signer = open_named_store(address), require_signer()
    found = LedgerTree(store.database).checkpoint(_name_of(store))
    note = found.sign(signer).write()
    key = verifier_key(found.origin, signer.public)
    told = {"checkpoint": note, "size": found.size, "root": found.root.hex(), "key": key}
    if as_json and target in (None, "-"):
        output.document(told)
        return output.OK
    return output.write_file(note, target or "-", as_json=as_json, told=told)


def write_proof(run: str, address: StoreAddress | None, target: str | None, *, as_json: bool) -> int:
    """Write what proves the last entry about a run: the entry, its place, hashes, and a checkpoint of the log."""
    store, signer = open_named_store(address), require_signer()
    tree = LedgerTree(store.database)
    found = tree.checkpoint(_name_of(store))
    proof = tree.prove(find_run(run, store), found.size)
    document = {
        "format": PROOF,
        "entry": proof.data.decode(),
        "index": proof.index,
        "hashes": [base64.b64encode(each).decode() for each in proof.hashes],
        "checkpoint": found.sign(signer).write(),
    }
    text, told = json.dumps(document, indent=2, ensure_ascii=False) + "\n", {"index": proof.index, "size": found.size}
    is_told = as_json and target not in (None, "-")  # else what is written is the document
    return output.write_file(text, target or "-", as_json=is_told, told=told)


def check_consistency(file: Path, address: StoreAddress | None, key: Path | None, *, as_json: bool) -> int:
    """Hold the log against a checkpoint that was kept: whether it has only grown since."""
    keys, store = keys_of(find_host_config(), key), open_named_store(address)
    note, then = read_checkpoint(file)
    tree = LedgerTree(store.database)
    now = tree.checkpoint(_name_of(store))
    why, hashes = _find_fault(note, then, now, keys), list[bytes]()
    if why is None:
        hashes = tree.prove_growth(then.size, now.size)
        if not is_consistent(then.size, now.size, then.root, now.root, hashes):
            why = find_checkpoint_fault(store.database, then) or _TREE_CHANGED
    signed = describe_check(keys)
    if as_json:
        proof = [base64.b64encode(each).decode() for each in hashes]
        output.document({"ok": why is None, "why": why, "old": then.size, "new": now.size, "hashes": proof})
    elif why is None:
        output.line(f"ok: its {count_entries(then.size)} are the beginning of today's {now.size:,}; signature {signed}")
    else:
        output.line(f"NOT ok: {why}")
    return output.OK if why is None else output.AUDIT


def describe_check(keys: Keys | None) -> str:
    """Return whether the signature of a checkpoint was checked, once it is found to be sound."""
    return "not checked: no key here" if keys is None else "checked"


def _find_fault(note: Note, then: Checkpoint, now: Checkpoint, keys: Keys | None) -> str | None:
    """Return what of a checkpoint does not fit this log, before its hashes are looked at."""
    if keys is not None and (why := find_log_fault(note, keys.public)) is not None:
        return f"the checkpoint: {why}"
    if then.origin != now.origin:
        return f"the checkpoint is of the log {then.origin}, and this is {now.origin}"
    if then.size > now.size:
        return (
            f"the checkpoint is of {count_entries(then.size)}, and the ledger has {now.size:,}: "
            "it was cut off, or an older copy of the store was put back"
        )
    return None


def read_checkpoint(file: Path) -> tuple[Note, Checkpoint]:
    """Return the checkpoint in a file, with its signatures. BadParameter for a file that has none."""
    try:
        note = Note.read(file.read_text("utf-8"))
        return note, Checkpoint.read(note.text)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from None
    except (NoteError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} is no checkpoint: {error}") from None


def require_signer() -> Signer:
    """Return the key of this host that signs. BadParameter where it has none whose signatures others can check."""
    load_environment(find_host_config())
    signer = find_signer()
    if signer is None:
        told = "; only the host of the runs signs: where it has no key yet, `agent-core key new FILE` makes one"
        raise typer.BadParameter(f"AGENT_CORE_SIGNING_KEY is not set here{told}")
    return signer


def _name_of(store: DatabaseRunStore) -> str:
    """Return the name of a store's log. BadParameter for a store that has none yet."""
    identity = read_identity(store.database.rows)
    if not identity.store:
        raise typer.BadParameter(f"{store.database.name} has no id yet: it gets one with its next run")
    return origin_of(identity.store)


def count_entries(number: int) -> str:
    """Return a number of entries, in words."""
    return "1 entry" if number == 1 else f"{number:,} entries"
