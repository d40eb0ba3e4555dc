"""check_run(): a run of a store with what was verified of it."""

from dataclasses import dataclass

from agent_core.audit.verify import Verification, verify_contents
from agent_core.errors import Damaged, JournalAway, JournalError
from agent_core.evidence.excerpts import root_of_records
from agent_core.evidence.notes import read_base64
from agent_core.journal.chain import has_closed
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.path import CONTROL, SEAL, find_root
from agent_core.journal.record import Tape
from agent_core.journal.signature import Keys, is_encrypted, is_sealed, records_of, split_own_strands
from agent_core.journal.source import open_source
from agent_core.statuses import ENDED, SEALED, ListedStatus, read_ended_status
from engine_shim.store.entries import RunEntry
from engine_shim.store.ledger import find_last, was_deleted
from engine_shim.store.run_store import DatabaseRunStore


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """The records of a run, and what was `found`, None where it could not be read. `fault` says what is wrong: a record
    is not what was written or, with keys, the seal is not what it should be. `seal` is empty for a run that needs
    none, and has none that holds."""

    tape: Tape
    found: Verification | None
    fault: str | None
    seal: str = ""


def check_run(
    store: DatabaseRunStore, identity: StoreIdentity, entry: RunEntry, keys: Keys | None
) -> CheckedRun | None:
    """Load a run of a store, which has this identity, and verify it, with `keys` also its seal if its host signs such
    runs; None if it was deleted since it was listed."""
    try:
        contents = open_source(store.journal, entry.run, identity)
        found = verify_contents(contents, keys=keys)
        needs_seal = entry.status in SEALED or found.complete  # whatever it is listed as
        if goes_on := keys is not None and not (needs_seal or found.ok):  # it may be ahead of its last seal
            found = verify_contents(contents)
    except Damaged as error:
        return CheckedRun({}, None, str(error))
    except JournalAway:
        raise
    except JournalError as error:  # it was deleted since it was listed, or is listed and has no record
        is_gone = store.entry(entry.run) is None or was_deleted(store.database, entry.run)
        return None if is_gone else CheckedRun({}, None, str(error))
    is_unproven = found.first_bad or found.contents == "newer" or (keys is not None and needs_seal)
    fault = found.why if is_unproven else None
    if fault is None and found.complete:
        fault = _find_misfit(store, entry.run, contents.tape, entry.status)
    has_seal = not goes_on and (needs_seal or found.seal != "not sealed")
    return CheckedRun(contents.tape, found, fault, found.seal if has_seal else "")


def _find_misfit(store: DatabaseRunStore, run: str, tape: Tape, status: ListedStatus) -> str | None:
    """Return what a list or the ledger says otherwise than the records of a run that ended; None when nothing does.

    `prove_store` holds head and count against the ledger. They are those of the run's own strands; the tree that the
    ledger names has who stopped the run as well.
    """
    own = split_own_strands(tape)[0]
    if not own or has_closed(tape):  # it was deleted since it was listed, or cannot be read here
        return None
    ended = read_ended_status(own[find_root(own)][-1].record())
    if status in ENDED and status != ended:
        return f"it ended as {ended} by its records, and is listed as {status}"
    match find_last(store.database, run):
        case {"kind": "ended", "root": str(root), "count": int(count)}:
            salt = store.contents.find_salt(run) if is_encrypted(tape) else None
            return _find_other_tree(tape, root, count, salt)
        case _:
            return None


def _find_other_tree(tape: Tape, root: str, count: int, salt: bytes | None) -> str | None:
    """Return why the records are not those of a tree, by the seal that it is of: that has its salt, unless the run is
    encrypted."""
    seals = [row.record() for row in tape.get(SEAL, [])]
    seal = next((seal for seal in seals if is_sealed(seal) and seal.get("root") == root), None)
    if seal is None:
        return "the seal with which it ended, as the ledger says, is gone"
    own, others = split_own_strands(tape)
    sealed = {**own, CONTROL: others.get(CONTROL, [])[: max(0, seal["count"] - count)]}
    salt = salt or read_base64(seal.get("salt", "")) or b""
    if root_of_records(salt, records_of(sealed)) != root:
        return "its records are not those with which it ended, as the ledger says"
    return None
