"""The ledgers of stores whose runs were copied into this one: kept whole, so that their heads prove the runs here too.

They are in the table `kept_ledgers`, by store. An entry `copied` of this store's own ledger, or of one that it keeps,
says with `kept` that a ledger is kept, and with head and count what it has to be.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agent_core.journal.record import link
from engine_shim.store.database import Database, Reader
from engine_shim.store.ledger import GENESIS, Entry, as_bytes, read_entry
from utools.databases.transaction import Transaction

_ALL: Final = "SELECT store, seq, hash, data FROM kept_ledgers ORDER BY store, seq"
_OF_STORE: Final = "SELECT seq, hash, data FROM kept_ledgers WHERE store = ? ORDER BY seq"
_KEPT: Final = "SELECT seq, hash FROM kept_ledgers WHERE store = ?"


class Link(NamedTuple):
    """A row of a ledger."""

    seq: int
    hash: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Chain:
    """A ledger as far as each entry follows from the one before it; `is_whole` if that is to its end."""

    heads: list[str]
    entries: list[Entry]
    is_whole: bool


@dataclass(slots=True)
class KeptLedgers:
    """The ledgers that a store keeps of others, by store, as far as its notes vouch for them; and what is wrong."""

    ledgers: dict[str, Chain]
    faults: list[dict[str, Any]]

    def find(self, head: str) -> tuple[str, Chain] | None:
        """Return the store that has had this head, and its ledger."""
        return next((found for found in self.ledgers.items() if head in found[1].heads), None)


def read_chain(rows: Iterable[Sequence[Any]]) -> Chain:
    """Return the ledger in these rows (seq, hash, data), as far as they are one."""
    chain, previous = Chain([], [], is_whole=True), GENESIS
    for number, (seq, digest, data) in enumerate(rows, 1):
        entry = read_entry(data)
        if entry is None or seq != number or link(previous, as_bytes(data)) != digest:
            return Chain(chain.heads, chain.entries, is_whole=False)
        previous = as_bytes(digest)
        chain.heads.append(previous.hex())
        chain.entries.append(entry)
    return chain


def keep_ledger(db: Transaction, store: str, rows: Iterable[Link]) -> bool:
    """Keep the ledger of another store, or add what is new of it; the caller has the lock.

    False, with nothing changed, if it is not the one that is kept: that store was restored from a backup since.
    """
    kept = {seq: bytes(digest) for seq, digest in db.execute(_KEPT, (store,)).fetchall()}
    rows = list(rows)
    if any(kept.get(row.seq, row.hash) != row.hash for row in rows):
        return False
    new = [(store, *row) for row in rows if row.seq not in kept]
    if new:
        db.executemany("INSERT INTO kept_ledgers (store, seq, hash, data) VALUES (?, ?, ?, ?)", new)
    return True


def list_kept_ledgers(database: Database) -> Iterator[tuple[str, list[Link]]]:
    """Yield the ledgers that a store keeps, with the store of each."""
    found: dict[str, list[Link]] = {}
    for store, seq, digest, data in database.rows("kept_ledgers", _ALL):
        found.setdefault(store, []).append(Link(seq, bytes(digest), bytes(data)))
    yield from found.items()


def read_kept_ledgers(database: Reader, entries: Iterable[Entry]) -> KeptLedgers:
    """Return the ledgers that the `entries` of a store's own ledger vouch for, and those that these vouch for in turn.

    A fault for each that is not what it was when it was copied.
    """
    found, vouched = KeptLedgers({}, []), dict[str, int]()
    notes = deque(_find_notes(entries))
    while notes:
        note = notes.popleft()
        store, count = note["from"], note["count"]
        if store not in found.ledgers:
            chain = found.ledgers[store] = read_chain(database.rows("kept_ledgers", _OF_STORE, store))
            notes += _find_notes(chain.entries)
        if found.ledgers[store].heads[count - 1 : count] == [note["head"]]:
            vouched[store] = max(count, vouched.get(store, 0))
        else:
            why = f"the ledger of the store {store}, which is kept here, is not as it was when it was copied"
            found.faults.append({"why": why})
    for store, chain in found.ledgers.items():
        most = vouched.get(store, 0)
        found.ledgers[store] = Chain(chain.heads[:most], chain.entries[:most], chain.is_whole)
    return found


def _find_notes(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry["kind"] == "copied" and entry.get("kept")]
