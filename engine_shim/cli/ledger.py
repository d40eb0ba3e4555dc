"""The command ledger, and verify --all: the chain of all runs of a store, and the store held against it."""

from dataclasses import asdict

import typer

from agent_core.audit.verify import verify
from agent_core.errors import Damaged, JournalAway, JournalError
from engine_shim.cli import output
from engine_shim.cli.store import open_named_store
from engine_shim.runs.ledger import prove_store, read_ledger, was_deleted
from engine_shim.runs.run_list import list_runs
from engine_shim.runs.store import DatabaseRunStore
from utools.store_address import StoreAddress

MOST_FAULTS = 50


def show_ledger(path: StoreAddress | None, *, as_json: bool) -> int:
    """Write the ledger's head and count, to be kept elsewhere."""
    head, count = read_ledger(open_named_store(path).database)
    if as_json:
        output.document({"head": head, "count": count})
    else:
        output.line(f"head {head}, {output.count(count, 'entry') if count == 1 else f'{count:,} entries'}")
    return output.OK


def verify_store(path: StoreAddress | None, head: str | None, *, as_json: bool) -> int:
    """Hold a store against its ledger, and verify each of its runs. BadParameter for what is no head."""
    if head is not None and (len(head) != 64 or set(head) - set("0123456789abcdef")):
        raise typer.BadParameter("--ledger: a head is 64 hexadecimal digits, as `agent-core ledger` prints it")
    store = open_named_store(path)
    proof = prove_store(store.database, head)
    damaged = list(find_damaged(store))
    faults = [*proof.faults, *damaged]
    if as_json:
        output.document({**asdict(proof), "faults": faults, "ok": not faults})
    else:
        for fault in faults[:MOST_FAULTS]:
            output.line(f"NOT ok: {fault.get('run', 'the ledger')}: {fault['why']}")
        if len(faults) > MOST_FAULTS:
            output.line(f"and {len(faults) - MOST_FAULTS:,} more")
        output.line(_describe(proof.ended, proof.deleted, proof.older, proof.others, proof.head, bool(faults)))
    return output.AUDIT if faults else output.OK


def find_damaged(store: DatabaseRunStore) -> "list[dict[str, str]]":
    """The runs of a store with a record that is not what was written."""
    found = ((entry.run, _find_damage(store, entry.run)) for entry in list_runs(store))
    return [{"run": run, "why": why} for run, why in found if why is not None]


def _find_damage(store: DatabaseRunStore, run: str) -> str | None:
    try:
        verdict = verify(store.journal, run_id=run)
    except Damaged as error:
        return str(error)
    except JournalAway:
        raise
    except JournalError as error:  # it was deleted since it was listed, or is listed and has no record
        return None if store.entry(run) is None or was_deleted(store.database, run) else str(error)
    return verdict.why if verdict.first_bad else None


def _describe(ended: int, deleted: int, older: int, others: int, head: str, has_faults: bool) -> str:
    """How many runs the ledger tells of."""
    parts = [f"{output.count(ended, 'run')} of the ledger"]
    parts += [f"{deleted:,} deleted"] if deleted else []
    parts += [f"{older:,} older than the ledger"] if older else []
    parts += [f"{others:,} of other programs"] if others else []
    return f"{'NOT ok' if has_faults else 'ok'}: {', '.join(parts)}; head {head}"
