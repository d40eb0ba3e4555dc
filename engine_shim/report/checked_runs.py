"""check_run(): a run of a store with what was verified of it."""

from dataclasses import dataclass

from agent_core.audit.verify import Verification, verify_contents
from agent_core.errors import Damaged, JournalAway, JournalError
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.record import Tape
from agent_core.journal.signature import Keys
from agent_core.journal.source import open_source
from agent_core.statuses import SEALED
from engine_shim.store.entries import RunEntry
from engine_shim.store.ledger import was_deleted
from engine_shim.store.run_proof import find_misfit
from engine_shim.store.run_store import DatabaseRunStore


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """The records of a run, and what was `found`, None where it could not be read. `fault` says what is wrong: a record
    is not what was written or, with keys, the seal is not what it should be. `seal` is empty for a run that needs
    none."""

    tape: Tape
    found: Verification | None
    fault: str | None
    seal: str = ""


def check_run(
    store: DatabaseRunStore, identity: StoreIdentity, entry: RunEntry, keys: Keys | None
) -> CheckedRun | None:
    """Load a run of a store, which has this identity, and verify it, with `keys` also its seal if its host signs such
    runs; None if it was deleted since it was listed."""
    needs_seal = entry.status in SEALED
    try:
        contents = open_source(store.journal, entry.run, identity)
        found = verify_contents(contents, keys=keys if needs_seal else None)
        if found.complete and not needs_seal:  # whatever it is listed as
            found, needs_seal = verify_contents(contents, keys=keys), True
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
        fault = find_misfit(store, entry.run, contents.tape, entry.status)
    return CheckedRun(contents.tape, found, fault, found.seal if needs_seal or found.seal != "not sealed" else "")
