"""The ledger of a store: a chain with an entry for each run that ended or waits, so that a run which is gone, or was
put in the place of another, is found.

entry     says
began     the ledger begins: `rows` is how far the journal had come
ended     a run ended
rested    a run waits, or is paused
erased    the contents of a run were destroyed, `by` whom and `why`; in an encrypted store its records stay
deleted   a run was deleted
copied    all runs of the store `from` were copied here, with the head and count of its ledger; `kept`: it is kept here

An entry about a run has run, head, count, status, submitted_by, at, and the `root` that its seal names, if it has one.
An erasure is signed (`code`, by the key `kid`) where there is a key. Each entry names its store and tenant, so that the
ledger of another store is not taken for this one; older entries name neither. An entry is written in the transaction
that ends its run, drops it, or lists it as waiting. Each hash is SHA-256(hash before it, bytes of the entry); the chain
starts from SHA-256("ledger").
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from agent_core.journal.path import SEAL
from agent_core.journal.record import Row, encode, link, run_head
from agent_core.statuses import RunStatus, read_ended_status
from engine_shim.store.database import LAST, Database, Reader
from utools.databases.transaction import Transaction

ERASED: Final = "erased"
GENESIS: Final = hashlib.sha256(b"ledger").digest()
SUBJECT: Final = "ledger"
_BESIDE: Final = (SEAL, "control")
ENDS: Final = """SELECT strand, hash, n + 1 FROM rows AS one WHERE run = ?
    AND n = (SELECT max(n) FROM rows WHERE run = one.run AND strand = one.strand)"""
"""The last row of each strand of a run."""
_SEAL: Final = f"SELECT data FROM rows WHERE run = ? AND strand = '{SEAL}' ORDER BY n DESC LIMIT 1"
_PAGE: Final = "SELECT seq, data FROM ledger WHERE seq > ? ORDER BY seq LIMIT 1000"
_ABOUT: Final = "SELECT data FROM ledger WHERE run >= ? AND run < ? ORDER BY seq"
_LAST_ABOUT: Final = "SELECT data FROM ledger WHERE run = ? ORDER BY seq DESC LIMIT 1"
_LAST: Final = "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1"
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
                seal = next((each for each in reversed(rows) if each.path == SEAL), None)  # a copy brings all of them
                _add(db, run, "ended", read_ended_status(record), at=str(record.get("at")), seal=seal)

    def note_deleted(self, db: Transaction, run: str) -> None:
        """Enter that the run was deleted, if it was entered when it ended or waited."""
        entry = _last_about(db, run)
        if entry is not None:
            self._database.lock(db, SUBJECT)
            _add(db, run, "deleted", entry.get("status"), at=_now())


def enter_erasure(database: Database, db: Transaction, run: str, complete: Callable[[Entry], Entry]) -> None:
    """Enter that the contents of a run were erased; `complete` adds who did that, and signs."""
    database.lock(db, SUBJECT)
    last = _last_about(db, run) or {}
    _begin_from_start(db)
    entry = _make_entry(db, run, ERASED, last.get("status"), _now())
    write_entry(db, run, complete({**entry, **({"root": last["root"]} if "root" in last else {})}))


def note_rested(database: Database, db: Transaction, run: str, status: RunStatus) -> None:
    """Enter that a run waits or is paused, unless it is entered as it is."""
    head, count = find_head(db.execute(ENDS, (run,)))
    if not count:
        return
    database.lock(db, SUBJECT)
    last = _last_about(db, run) or {}
    if last.get("kind") in ("ended", ERASED, "deleted") or (last.get("head"), last.get("status")) == (head, status):
        return
    _begin_from_start(db)
    last_seal = db.execute(_SEAL, (run,)).fetchone()
    seal = None if last_seal is None else Row(SEAL, 0, b"", as_bytes(last_seal[0]))
    _add(db, run, "rested", status, at=_now(), seal=seal)


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _enter_beginning(db: Transaction, rows: int) -> None:
    write_entry(db, "", {"kind": "began", "rows": rows, "at": _now()})


def _begin(db: Transaction, run: str, count: int) -> None:
    """Write the first entry, which says where the journal stood before the rows that were just appended."""
    if db.execute(_LAST).fetchone() is None:
        newest = db.execute("SELECT seq FROM rows WHERE run = ? ORDER BY seq DESC LIMIT ?", (run, count)).fetchall()
        _enter_beginning(db, newest[-1][0] - 1)


def _begin_from_start(db: Transaction) -> None:
    """Write the first entry, where the journal stood when the store began to have a ledger."""
    if db.execute(_LAST).fetchone() is None:
        rows = db.execute("SELECT rows FROM ledger_start").fetchone()
        _enter_beginning(db, rows[0] if rows is not None else 0)


def _last_about(db: Transaction, run: str) -> Entry | None:
    """Return the last entry about a run, empty where it is no entry; None where there is none."""
    found = db.execute(_LAST_ABOUT, (run,)).fetchone()
    return None if found is None else read_entry(found[0]) or {}


def _add(db: Transaction, run: str, kind: str, status: RunStatus | None, at: str, *, seal: Row | None = None) -> None:
    entry = _make_entry(db, run, kind, status, at)
    if seal is not None and (root := _root_of(seal)) is not None:
        entry["root"] = root
    write_entry(db, run, entry)


def _make_entry(db: Transaction, run: str, kind: str, status: RunStatus | None, at: str) -> dict[str, Any]:
    head, count = find_head(db.execute(ENDS, (run,)))
    submitter = db.execute("SELECT submitter FROM run_submissions WHERE run = ?", (run,)).fetchone()
    by = None if submitter is None else submitter[0]
    return {"kind": kind, "run": run, "head": head, "count": count, "status": status, "submitted_by": by, "at": at}


def _root_of(seal: Row) -> str | None:
    """Return the root of the tree that a seal names; None where it names none, or is no record."""
    try:
        root = seal.record().get("root")
    except (ValueError, AttributeError):
        return None
    return root if isinstance(root, str) else None


def write_entry(db: Transaction, run: str, entry: Entry) -> None:
    """Add an entry at the end, in the name of the store and its tenant; the caller has the lock."""
    seq, previous = db.execute(_LAST).fetchone() or (0, GENESIS)
    store, tenant = db.execute("SELECT store, tenant FROM store_identity").fetchone() or ("", None)
    data = encode({**entry, "store": store, "tenant": tenant})
    db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (seq + 1, run, link(previous, data), data))


def as_bytes(value: object) -> bytes:
    """Return the bytes that a column holds; none for what no release writes there, such as a text."""
    return bytes(value) if isinstance(value, bytes | memoryview) else b""


def read_entry(data: object) -> Entry | None:
    """Return the entry of these bytes; None for what no release writes."""
    try:
        entry: Entry = json.loads(as_bytes(data))
    except ValueError:
        return None
    match entry:
        case {"kind": "began" | "copied"}:
            is_entry = True
        case {"kind": "ended" | "rested" | "erased" | "deleted", "run": str(), "head": str(), "count": int()}:
            is_entry = isinstance(entry.get("at"), str)
        case _:
            is_entry = False
    return entry if is_entry else None


def walk_entries(database: Reader) -> Iterator[Entry]:
    """Yield the entries of a ledger, the oldest first, a page in memory at a time; `prove_store` says what is none."""
    last = 0
    while page := database.rows("ledger", _PAGE, last):
        last = page[-1][0]
        yield from (entry for _, data in page if (entry := read_entry(data)) is not None)


def find_head(ends: Iterable[Sequence[Any]]) -> tuple[str, int]:
    """Return head and count of a run's own strands, as `verify` gives them, from the last row of each."""
    strands = [(path, digest, count) for path, digest, count in ends if path not in _BESIDE]
    return run_head(strands), sum(count for _, _, count in strands)


def read_ledger(database: Reader) -> tuple[str, int]:
    """Head (hex) and count of a store's ledger."""
    found = database.rows("ledger", _LAST)
    return (as_bytes(found[0][1]).hex(), found[0][0]) if found else (GENESIS.hex(), 0)


def count_ledger_runs(database: Reader) -> int:
    """Return how many runs a store's ledger has an entry of."""
    found = database.rows("ledger", "SELECT count(DISTINCT run) FROM ledger WHERE run <> ''")
    return int(found[0][0]) if found else 0


def describe_gone(database: Reader, run: str) -> str:
    """Return what the ledger says of a run that the store does not hold, named by its id or the beginning of it; an
    empty text where it says nothing."""
    found = database.rows("ledger", _ABOUT, run, f"{run}{LAST}") if run else []
    entries = [entry for (data,) in found if (entry := read_entry(data)) is not None and "run" in entry]
    if len({entry["run"] for entry in entries}) != 1:
        return ""
    last = next((entry for entry in entries if entry["kind"] == ERASED), entries[-1])
    if last["kind"] == "deleted":
        return f"it was deleted at {last['at']}"
    if last["kind"] == ERASED:
        why = f": {last['why']}" if last.get("why") else ""
        return f"it was erased at {last['at']} by {last.get('by') or 'somebody'}{why}"
    return f"by the ledger it was {last.get('status')} at {last['at']}, and it was never deleted: it is missing"


def find_last(database: Reader, run: str) -> Entry | None:
    """Return the last entry about a run; None where there is none."""
    found = database.rows("ledger", _LAST_ABOUT, run)
    return read_entry(found[0][0]) if found else None


def was_deleted(database: Reader, run: str) -> bool:
    """Return whether the last entry about a run is a tombstone."""
    last = find_last(database, run)
    return last is not None and last["kind"] == "deleted"
