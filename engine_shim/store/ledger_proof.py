"""prove_store(): a store held against its ledger, and the ledger against a head that was kept elsewhere."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.journal.identity import StoreIdentity, read_identity
from agent_core.journal.kinds import beginning
from agent_core.statuses import ENDED, ListedStatus
from engine_shim.store.database import Database, Reader
from engine_shim.store.kept_ledgers import Chain, KeptLedgers, read_chain, read_kept_ledgers
from engine_shim.store.ledger import ENDS, ERASED, GENESIS, Entry, find_head, read_ledger

_ENDED: Final = """SELECT run, max(seq) FROM rows WHERE strand NOT LIKE '%/%' AND strand NOT IN ('seal', 'control')
    AND substr(data, 1, 22) = ? GROUP BY run"""
_DID: Final = {"ended": "ended", ERASED: "was erased"}
Fault = dict[str, Any]


@dataclass(slots=True)
class LedgerProof:
    """What the ledger says of a store. `head` and `count` are its own; `faults` are {run?, why} of what does not fit.

    Nothing is known of `older` runs, which had ended before there was a ledger: before its first entry, or, until it
    has one, before the store was migrated to a release with ledgers. Nor is it of `others`, which another program wrote
    into the journal.
    """

    head: str
    count: int
    ended: int = 0
    rested: int = 0
    erased: int = 0
    deleted: int = 0
    older: int = 0
    others: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults


def prove_store(database: Database, head: str | None = None) -> LedgerProof:
    """Hold a store against its ledger, both as they are at one moment; with a `head` that was kept elsewhere, the
    ledger itself against that."""
    with database.open_snapshot() as seen:
        return _prove(seen, head)


def _prove(database: Reader, head: str | None) -> LedgerProof:
    proof = LedgerProof(*read_ledger(database))
    chain = read_chain(database.rows("ledger", "SELECT seq, hash, data FROM ledger ORDER BY seq"))
    entries, kept = chain.entries, read_kept_ledgers(database, chain.entries)
    if not chain.is_whole:
        why = f"entry {len(entries) + 1} of the ledger does not follow from the one before it"
        why = f"{why}: one of the two was changed, taken out or put in; what comes from there on proves nothing"
        proof.faults.append({"why": why})
    proof.faults += kept.faults
    proof.faults += _find_strangers(entries, read_identity(database.rows))
    told: dict[str, Entry] = {}
    older_rows = _find_start(database)
    for entry in entries:
        if entry["kind"] in ("began", "copied"):
            older_rows = entry.get("rows", older_rows)
        else:
            told[entry["run"]] = entry
    if head is not None:
        proof.faults += _find_other_head(chain, kept, told, head)
    ended = dict(database.rows("rows", _ENDED, beginning("run_finished")))
    for run, entry in told.items():
        _check_run(database, proof, run, entry, is_there=run in ended)
    listed = dict(database.rows("workflow_runs", "SELECT run, status FROM workflow_runs"))
    submitters = dict(database.rows("run_submissions", "SELECT run, submitter FROM run_submissions"))
    encrypted = {run for (run,) in database.rows("content_keys", "SELECT subject FROM content_keys")}
    for run in told.keys() & (ended.keys() | encrypted):  # whether an encrypted one has ended, the ledger alone tells
        proof.faults += _find_other_words(told[run], listed.get(run), submitters.get(run))
    for run in sorted(ended.keys() - told.keys()):
        if ended[run] <= older_rows:
            proof.older += 1
        elif run not in listed:
            proof.others += 1
        else:
            proof.faults.append({"run": run, "why": "it ended, and is not in the ledger"})
    return proof


def _find_start(database: Reader) -> float:
    """Return how far the journal had come when the store was migrated to a release with ledgers; before that it is all
    of it."""
    found = database.rows("ledger_start", "SELECT rows FROM ledger_start")
    return found[0][0] if found else math.inf


def _find_other_head(chain: Chain, kept: KeptLedgers, told: Mapping[str, Entry], head: str) -> Iterator[Fault]:
    """Yield what a head that was kept elsewhere shows: of this ledger, or of the store that runs were copied from."""
    if not chain.is_whole or head in (GENESIS.hex(), *chain.heads):
        return
    if (found := kept.find(head)) is not None:
        yield from _find_uncopied(*found, told)
    elif (noted := next((entry for entry in chain.entries if _is_note_of(entry, head)), None)) is not None:
        yield {
            "why": f"{head} is a head of the store {noted['from']}, which was copied here: only that store proves it"
        }
    else:
        yield {"why": f"no entry of the ledger has the head {head}: it was cut off or written anew"}


def _find_uncopied(store: str, chain: Chain, told: Mapping[str, Entry]) -> Iterator[Fault]:
    """Yield each run that ended in a store whose runs were copied here, and is not here as it was there."""
    there = {entry["run"]: entry for entry in chain.entries if "run" in entry}
    for run, entry in there.items():
        here = told.get(run)
        if entry["kind"] not in _DID or (here is not None and here["kind"] == "deleted"):
            continue
        if here is None:
            yield {"run": run, "why": f"it ended at {entry['at']} in the store {store}, and was not copied here"}
        elif (here["head"], here["count"]) != (entry["head"], entry["count"]):
            yield {"run": run, "why": f"it ended in the store {store} with another head and count than it has here"}


def _is_note_of(entry: Entry, head: str) -> bool:
    """Return whether an entry notes this head of a store whose runs were copied here."""
    return entry["kind"] == "copied" and entry.get("head") == head


def _find_strangers(entries: Sequence[Entry], identity: StoreIdentity) -> Iterator[Fault]:
    """Yield the first entry that the ledger of this store has no reason to hold: of another store, or another tenant.

    Where a store without a ledger took over that of another one, the entries before the note of that name the other.
    """
    taken = max((at for at, entry in enumerate(entries) if entry["kind"] == "copied" and "rows" in entry), default=0)
    for number, entry in enumerate(entries[taken:], taken + 1):
        store, tenant = entry.get("store"), entry.get("tenant")
        if store is None:
            continue
        if store != identity.store:
            here = f"this is {identity.store}" if identity.store else "this one has no id"
            yield {"why": f"entry {number} of the ledger is of the store {store}, and {here}"}
            return
        if None not in (tenant, identity.tenant) and tenant != identity.tenant:
            yield {"why": f"entry {number} of the ledger is of the tenant {tenant}, not of {identity.tenant}"}
            return


def _check_run(database: Reader, proof: LedgerProof, run: str, entry: Entry, *, is_there: bool) -> None:
    """Hold a run against the last entry about it."""
    if entry["kind"] == "deleted":
        proof.deleted += 1
        if is_there:
            proof.faults.append({"run": run, "why": f"it was deleted at {entry['at']}, and is there again"})
        return
    has_ended = entry["kind"] in ("ended", ERASED)
    proof.ended, proof.rested = proof.ended + has_ended, proof.rested + (not has_ended)
    proof.erased += entry["kind"] == ERASED
    head, count = find_head(database.rows("rows", ENDS, run))
    then = f"it {_DID.get(entry['kind']) or 'was ' + str(entry['status'])} at {entry['at']}"
    if not count:
        proof.faults.append({"run": run, "why": f"{then}, and is gone"})
    elif not has_ended and is_there:
        proof.faults.append({"run": run, "why": f"{then}, and its end is not in the ledger"})
    elif not has_ended and count < entry["count"]:
        proof.faults.append({"run": run, "why": f"{then} with {entry['count']} records, and has {count}"})
    elif (has_ended or count == entry["count"]) and (head, count) != (entry["head"], entry["count"]):
        proof.faults.append({"run": run, "why": f"{then} with another head and count than it has now"})


def _find_other_words(entry: Entry, status: ListedStatus | None, submitter: str | None) -> Iterator[Fault]:
    """Yield what the columns beside the journal say of a run that its entry says otherwise; older entries say
    nothing."""
    if entry["kind"] not in _DID or "submitted_by" not in entry:
        return
    if status in ENDED and status != entry["status"]:
        yield {"run": entry["run"], "why": f"it ended as {entry['status']}, and is listed as {status}"}
    if submitter != entry["submitted_by"]:
        was, now = (each or "nobody" for each in (entry["submitted_by"], submitter))
        yield {"run": entry["run"], "why": f"it was handed in by {was}, and is listed as handed in by {now}"}
