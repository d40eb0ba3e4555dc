"""find_misfit(): a run that has ended, held against what a store says of it beside its journal."""

from agent_core.evidence.excerpts import root_of_records
from agent_core.evidence.notes import read_base64
from agent_core.journal.chain import has_closed
from agent_core.journal.path import CONTROL, SEAL, find_root
from agent_core.journal.record import Tape
from agent_core.journal.signature import is_encrypted, is_sealed, records_of, split_own_strands
from agent_core.statuses import ENDED, ListedStatus, read_ended_status
from engine_shim.store.ledger import find_last
from engine_shim.store.run_store import DatabaseRunStore


def find_misfit(store: DatabaseRunStore, run: str, tape: Tape, status: ListedStatus) -> str | None:
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
