"""carry_ledger() and note_copy(): what a store notes when runs of another one are copied into it."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, Literal

from agent_core.journal.identity import COPIES, StoreIdentity, read_identity
from agent_core.journal.signature import Keys, is_signed_copy
from engine_shim.store.database import Database
from engine_shim.store.kept_ledgers import Link, keep_ledger, list_kept_ledgers
from engine_shim.store.ledger import SUBJECT, Entry, write_entry
from utools.databases.transaction import Transaction

_ALL: Final = "SELECT seq, run, hash, data FROM ledger ORDER BY seq"
_NOTE: Final = f"""INSERT INTO {COPIES} (store, at, kid, mac) VALUES (?, ?, ?, ?)
    ON CONFLICT (store) DO UPDATE SET at = excluded.at, kid = excluded.kid, mac = excluded.mac"""
Carried = Literal["carried", "kept", "noted"]


def note_copy(target: Database, source: StoreIdentity, own: StoreIdentity, keys: Keys | None) -> None:
    """Note that runs sealed in the source, or in a store whose runs were copied there, are at home in the target.

    With keys the note is signed, as a seal is, unless the source itself cannot prove an older copy; what is signed
    already stays.
    """
    with target.writing() as db:
        for store in sorted({source.store, *source.copies} - {own.store}):
            is_proven = keys is not None and (store == source.store or is_signed_copy(store, source, keys))
            if keys is not None and is_proven:
                db.execute(_NOTE, (store, _now(), *keys.sign_copy(store, own.store)))
            elif store not in own.copies:
                db.execute(_NOTE, (store, _now(), None, None))


def carry_ledger(source: Database, target: Database) -> Carried | None:
    """Bring the ledger of one store into another; None where there is none, or where it is there already.

    - carried: a target without a ledger takes all entries over, so that it knows each head that the source had.
    - kept: a target with a ledger keeps that of the source beside it, and enters the deletions of runs that it does not
      know.
    - noted: the target keeps another ledger of the source already; only head and count are noted.

    An entry `copied` says so. Its `head` and `count` are those of the source; `rows`, if the entries were taken over,
    is how far the journal of the target had come.
    """
    entries = [(seq, run, bytes(digest), bytes(data)) for seq, run, digest, data in source.rows("ledger", _ALL)]
    if not entries:
        return None
    head, store = entries[-1][2].hex(), read_identity(source.rows).store
    note = {"kind": "copied", "from": store, "head": head, "count": len(entries), "at": _now()}
    others = list(list_kept_ledgers(source))
    with target.writing() as db:
        target.lock(db, SUBJECT)
        known = db.execute(_ALL).fetchall()
        noted = _find_noted_heads(json.loads(data) for _, _, _, data in known)
        if noted.get(head) or any(bytes(digest).hex() == head for _, _, digest, _ in known):
            return None
        for other, links in others:
            keep_ledger(db, other, links)
        if known:
            is_kept = keep_ledger(db, store, (Link(seq, digest, data) for seq, _, digest, data in entries))
            if not is_kept and head in noted:
                return None
            _add_tombstones(db, entries, {run for _, run, _, _ in known})
            write_entry(db, "", {**note, "kept": True} if is_kept else note)
            return "kept" if is_kept else "noted"
        rows = db.execute("SELECT coalesce(max(seq), 0) FROM rows").fetchall()[0][0]
        db.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", entries)
        write_entry(db, "", {**note, "rows": rows})
    return "carried"


def _find_noted_heads(entries: Iterable[Entry]) -> dict[str, bool]:
    """Return the heads of other ledgers that these entries name, and of each whether that ledger is here as well."""
    notes = [entry for entry in entries if entry["kind"] == "copied"]
    return {str(note["head"]): "kept" in note or "rows" in note for note in notes}


def _add_tombstones(db: Transaction, entries: list[Any], known: set[str]) -> None:
    """Enter that runs were deleted which neither the ledger nor the journal of the target knows."""
    for _, run, _, data in entries:
        entry = json.loads(data)
        if entry["kind"] != "deleted" or run in known:
            continue
        if db.execute("SELECT 1 FROM rows WHERE run = ? LIMIT 1", (run,)).fetchone() is None:
            write_entry(db, run, {**entry, "from": entry.get("store")})


def _now() -> str:
    return datetime.now(UTC).isoformat()
