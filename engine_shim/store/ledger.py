"""The ledger of a store: a chain with an entry for each run that ended, so that a run which is gone, or was put in the
place of another, is found.

Entries are `began` (the first one: with `rows`, how far the journal had come), `ended` and `deleted` (run, head, count,
status, submitted_by, at: a deletion leaves a tombstone), and `copied` (`from` which store all runs were copied here,
with head and count of its ledger). Each names its store and tenant, so that the ledger of another store is none of this
one; older entries name none. An entry is written in the transaction that ends or drops
its run. Each hash is SHA-256(hash before it, bytes of the entry); the chain starts from SHA-256("ledger").
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from agent_core.journal.identity import StoreIdentity, read_identity
from agent_core.journal.kinds import beginning
from agent_core.journal.record import Row, encode, link, run_head
from agent_core.statuses import ENDED, ListedStatus, RunStatus, read_ended_status
from engine_shim.store.database import Database, Reader
from utools.databases.transaction import Transaction

GENESIS: Final = hashlib.sha256(b"ledger").digest()
SUBJECT: Final = "ledger"
_BESIDE: Final = ("seal", "control")
_ENDS: Final = """SELECT strand, hash, n + 1 FROM rows AS one WHERE run = ?
    AND n = (SELECT max(n) FROM rows WHERE run = one.run AND strand = one.strand)"""
"""The last row of each strand."""
_LAST: Final = "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1"
_ENDED: Final = """SELECT run, max(seq) FROM rows WHERE strand NOT LIKE '%/%' AND strand NOT IN ('seal', 'control')
    AND substr(data, 1, 22) = ? GROUP BY run"""
Entry = Mapping[str, Any]


class LedgerKeeper:
    """Writes the ledger of a store, in the transactions of its journal: one of them at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note_appended(self, db: Transaction, run: str, rows: Sequence[Row]) -> None:
        """Enter the run, if these rows end it."""
        for row in rows:
            if row.kind == "run_finished" and "/" not in row.path and row.path not in _BESIDE:
                record = row.record()
                self._database.lock(db, SUBJECT)
                _begin(db, run, len(rows))
                _add(db, run, "ended", read_ended_status(record), at=str(record.get("at")))

    def note_deleted(self, db: Transaction, run: str) -> None:
        """Enter that the run was deleted, if it was entered when it ended."""
        found = db.execute("SELECT data FROM ledger WHERE run = ? ORDER BY seq DESC LIMIT 1", (run,)).fetchone()
        if found is not None:
            self._database.lock(db, SUBJECT)
            _add(db, run, "deleted", json.loads(found[0]).get("status"), at=datetime.now(UTC).isoformat())


def _begin(db: Transaction, run: str, count: int) -> None:
    """Write the first entry, which says where the journal stood before the rows that were just appended."""
    if db.execute(_LAST).fetchone() is None:
        newest = db.execute("SELECT seq FROM rows WHERE run = ? ORDER BY seq DESC LIMIT ?", (run, count)).fetchall()
        write_entry(db, "", {"kind": "began", "rows": newest[-1][0] - 1, "at": datetime.now(UTC).isoformat()})


def _add(db: Transaction, run: str, kind: str, status: RunStatus | None, at: str) -> None:
    head, count = _head(db, run)
    submitter = db.execute("SELECT submitter FROM run_submissions WHERE run = ?", (run,)).fetchone()
    by = None if submitter is None else submitter[0]
    entry = {"kind": kind, "run": run, "head": head, "count": count, "status": status, "submitted_by": by, "at": at}
    write_entry(db, run, entry)


def write_entry(db: Transaction, run: str, entry: Entry) -> None:
    """Add an entry at the end, in the name of the store and its tenant; the caller has the lock."""
    seq, previous = db.execute(_LAST).fetchone() or (0, GENESIS)
    store, tenant = db.execute("SELECT store, tenant FROM store_identity").fetchone() or ("", None)
    data = encode({**entry, "store": store, "tenant": tenant})
    db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (seq + 1, run, link(previous, data), data))


def _head(db: Transaction, run: str) -> tuple[str, int]:
    """Head and count of a run's own strands, as `verify` gives them."""
    strands = [each for each in db.execute(_ENDS, (run,)) if each[0] not in _BESIDE]
    return run_head(strands), sum(count for _, _, count in strands)


# ── the proof of a store ─────────────────────────────────────────────────────────────────────────


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
    deleted: int = 0
    older: int = 0
    others: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults


def read_ledger(database: Reader) -> tuple[str, int]:
    """Head (hex) and count of a store's ledger."""
    found = database.rows("ledger", _LAST)
    return (found[0][1].hex(), found[0][0]) if found else (GENESIS.hex(), 0)


def count_ledger_runs(database: Reader) -> int:
    """Return how many runs a store's ledger has an entry of."""
    return int(database.rows("ledger", "SELECT count(DISTINCT run) FROM ledger WHERE run <> ''")[0][0])


def was_deleted(database: Reader, run: str) -> bool:
    """Return whether the last entry about a run is a tombstone."""
    found = database.rows("ledger", "SELECT data FROM ledger WHERE run = ? ORDER BY seq DESC LIMIT 1", run)
    return bool(found) and json.loads(found[0][0])["kind"] == "deleted"


def prove_store(database: Database, head: str | None = None) -> LedgerProof:
    """Hold a store against its ledger, both as they are at one moment; with a `head` that was kept elsewhere, the
    ledger itself against that."""
    with database.open_snapshot() as seen:
        return _prove(seen, head)


def _prove(database: Reader, head: str | None) -> LedgerProof:
    proof = LedgerProof(*read_ledger(database))
    entries = list(_read_chain(database, proof, head))
    proof.faults += _find_strangers(entries, read_identity(database.rows))
    told: dict[str, Entry] = {}
    older_rows = _find_start(database)
    for entry in entries:
        if entry["kind"] in ("began", "copied"):
            older_rows = entry.get("rows", older_rows)
        else:
            told[entry["run"]] = entry
    ended = dict(database.rows("rows", _ENDED, beginning("run_finished")))
    for run, entry in told.items():
        _check_run(database, proof, run, entry, is_there=run in ended)
    listed = dict(database.rows("workflow_runs", "SELECT run, status FROM workflow_runs"))
    submitters = dict(database.rows("run_submissions", "SELECT run, submitter FROM run_submissions"))
    for run in told.keys() & ended.keys():
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


def _read_chain(database: Reader, proof: LedgerProof, head: str | None) -> Iterator[Entry]:
    """Yield the entries, as far as each follows from the one before it."""
    previous, kept, noted = GENESIS, head is None or head == GENESIS.hex(), ""
    for number, (seq, digest, data) in enumerate(
        database.rows("ledger", "SELECT seq, hash, data FROM ledger ORDER BY seq"), 1
    ):
        if seq != number or link(previous, data) != digest:
            proof.faults.append({"why": f"entry {number} of the ledger does not follow from the one before it"})
            return
        previous, kept = digest, kept or digest.hex() == head
        entry = json.loads(data)
        noted = str(entry.get("from")) if head is not None and _is_note_of(entry, head) else noted
        yield entry
    if not kept and noted:
        why = f"{head} is a head of the store {noted}, which was copied here: only that store proves it"
        proof.faults.append({"why": why})
    elif not kept:
        proof.faults.append({"why": f"no entry of the ledger has the head {head}: it was cut off or written anew"})


def _is_note_of(entry: Entry, head: str) -> bool:
    """Return whether an entry notes this head of a store whose runs were copied here."""
    return entry["kind"] == "copied" and entry.get("head") == head


def _find_strangers(entries: Sequence[Entry], identity: StoreIdentity) -> Iterator[dict[str, Any]]:
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
    proof.ended += 1
    strands = [each for each in database.rows("rows", _ENDS, run) if each[0] not in _BESIDE]
    if not strands:
        proof.faults.append({"run": run, "why": f"it ended at {entry['at']}, and is gone"})
    elif (run_head(strands), sum(count for _, _, count in strands)) != (entry["head"], entry["count"]):
        proof.faults.append(
            {"run": run, "why": f"it ended at {entry['at']} with another head and count than it has now"}
        )


def _find_other_words(entry: Entry, status: ListedStatus | None, submitter: str | None) -> Iterator[dict[str, Any]]:
    """Yield what the columns beside the journal say of a run that its entry says otherwise; older entries say
    nothing."""
    if entry["kind"] != "ended" or "submitted_by" not in entry:
        return
    if status in ENDED and status != entry["status"]:
        yield {"run": entry["run"], "why": f"it ended as {entry['status']}, and is listed as {status}"}
    if submitter != entry["submitted_by"]:
        was, now = (each or "nobody" for each in (entry["submitted_by"], submitter))
        yield {"run": entry["run"], "why": f"it was handed in by {was}, and is listed as handed in by {now}"}
