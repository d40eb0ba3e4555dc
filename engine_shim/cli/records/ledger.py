"""The command ledger, and verify --all: the chain of all runs of a store, and the store held against it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import typer

from agent_core.evidence.checkpoints import Checkpoint, find_log_fault
from agent_core.evidence.notes import Note
from agent_core.journal.identity import read_identity
from agent_core.journal.signature import Keys
from engine_shim.cli import output
from engine_shim.cli.evidence.ledger import count_entries, describe_check, read_checkpoint
from engine_shim.cli.records.audit import keys_of
from engine_shim.cli.store import open_named_store
from engine_shim.host.find import find_host_config
from engine_shim.report.checked_runs import check_run
from engine_shim.store.erase import find_erasure_faults
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.ledger import count_ledger_runs, read_ledger
from engine_shim.store.ledger_proof import LedgerProof, prove_store
from engine_shim.store.ledger_tree import find_checkpoint_fault, origin_of
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress

MOST_FAULTS = 50


def show_ledger(path: StoreAddress | None, *, as_json: bool) -> int:
    """Write the ledger's head and count, to be kept elsewhere."""
    database = open_named_store(path).database
    (head, count), identity = read_ledger(database), read_identity(database.rows)
    store = identity.store or None
    if as_json:
        output.document({"head": head, "count": count, "store": store})
    else:
        runs = output.count(count_ledger_runs(database), "run")
        output.line(f"head {head}, {runs} in {count_entries(count)}{f', store {store}' if store else ''}")
    return output.OK


def verify_store(
    path: StoreAddress | None, head: str | None, checkpoint: Path | None, key: Path | None, *, as_json: bool
) -> int:
    """Hold a store against its ledger, and verify each of its runs. BadParameter for what is no head, or no
    checkpoint."""
    if head is not None and (len(head) != 64 or set(head) - set("0123456789abcdef")):
        raise typer.BadParameter("--ledger: a head is 64 hexadecimal digits, as `agent-core ledger` prints it")
    keys = keys_of(find_host_config(), key)
    store, seals = open_named_store(path), Counter[str]()
    proof = prove_store(store.database, head)
    kept = None if checkpoint is None else read_checkpoint(checkpoint)
    unkept = [] if kept is None else list(_find_checkpoint_faults(store, *kept, keys))
    proof.faults += unkept
    if keys is not None:
        proof.faults += find_erasure_faults(store.database, keys)
    faults = [*proof.faults, *find_damaged(store, keys, seals)]
    if as_json:
        output.document({**asdict(proof), "faults": faults, "ok": not faults, "seals": seals})
    else:
        for fault in faults[:MOST_FAULTS]:
            output.line(f"NOT ok: {fault.get('run', 'the ledger')}: {fault['why']}")
        if len(faults) > MOST_FAULTS:
            output.line(f"and {len(faults) - MOST_FAULTS:,} more")
        is_proven = head is not None and not any("run" not in fault for fault in proof.faults)
        proven = f"; {head} is a head that it proves" if is_proven and head != proof.head else ""
        output.line(f"{_describe(proof, bool(faults))}{proven}")
        if kept is not None and not unkept:
            begins = f"{checkpoint}: its {count_entries(kept[1].size)} are the beginning of the ledger"
            output.line(f"{begins}; signature {describe_check(keys)}")
        if seals:
            output.line("; ".join(f"{output.count(number, 'run')} {seal}" for seal, number in seals.most_common()))
    return output.AUDIT if faults else output.OK


def _find_checkpoint_faults(
    store: DatabaseRunStore, note: Note, checkpoint: Checkpoint, keys: Keys | None
) -> "Iterator[dict[str, str]]":
    """Yield why a store is not the one that a checkpoint was signed of."""
    if keys is not None and (why := find_log_fault(note, keys.public)) is not None:
        yield {"why": f"the checkpoint: {why}"}
        return  # what nobody has signed accuses no ledger
    own = origin_of(read_identity(store.database.rows).store)
    if checkpoint.origin != own:
        yield {"why": f"the checkpoint is of the log {checkpoint.origin}, and this is {own}"}
    elif (why := find_checkpoint_fault(store.database, checkpoint)) is not None:
        yield {"why": why}


def find_damaged(
    store: DatabaseRunStore, keys: Keys | None = None, seals: "Counter[str] | None" = None
) -> "list[dict[str, str]]":
    """Return the runs of a store with a record that is not what was written, and with `keys` those whose seal is not
    what it should be. `seals` counts what was checked of the seals."""
    found, identity = list[dict[str, str]](), read_identity(store.database.rows)
    for entry in list_runs(store):
        checked = check_run(store, identity, entry, keys)
        if checked is None:
            continue
        if seals is not None and checked.seal:
            seals[checked.seal] += 1
        if checked.fault is not None:
            found.append({"run": entry.run, "why": checked.fault})
    return found


def _describe(proof: LedgerProof, has_faults: bool) -> str:
    """Return how many runs the ledger tells of."""
    runs = proof.ended + proof.rested + proof.deleted
    parts = [f"{output.count(runs, 'run')} of the ledger in {count_entries(proof.count)}"]
    parts += [f"{proof.rested:,} waiting"] if proof.rested else []
    parts += [f"{proof.erased:,} erased"] if proof.erased else []
    parts += [f"{proof.deleted:,} deleted"] if proof.deleted else []
    parts += [f"{proof.older:,} older than the ledger"] if proof.older else []
    parts += [f"{proof.others:,} of other programs"] if proof.others else []
    return f"{'NOT ok' if has_faults else 'ok'}: {', '.join(parts)}; head {proof.head}"
