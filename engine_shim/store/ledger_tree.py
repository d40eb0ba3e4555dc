"""LedgerTree: the ledger of a store as a transparency log (RFC 6962), whose leaves are its entries, in their order.

The nodes of the tree are in the table `ledger_nodes`. They are made of the entries when somebody asks for a checkpoint
or a proof, and never while a run is driven; each is written once. Nothing trusts them: a proof is checked before it is
given out, and whoever holds a store against its ledger computes the root anew.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.errors import JournalError
from agent_core.evidence.checkpoints import Checkpoint
from agent_core.evidence.merkle import (
    compute_root,
    grow,
    hash_leaf,
    prove_consistency,
    prove_inclusion,
    root_by_inclusion,
    root_of,
)
from agent_core.evidence.tiles import HEIGHT, WIDTH, Tile, write_bundle
from agent_core.journal.record import link
from engine_shim.store.database import Database, Reader
from engine_shim.store.ledger import GENESIS, SUBJECT, Entry, as_bytes
from utools.databases.transaction import Transaction

BATCH: Final = 4096
"""Leaves that are added in one transaction."""
_LEAVES: Final = "SELECT coalesce(max(n) + 1, 0) FROM ledger_nodes WHERE level = 0"
_NEW: Final = "SELECT seq, hash, data FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?"
_NODE: Final = "SELECT hash FROM ledger_nodes WHERE level = ? AND n = ?"
_ADD: Final = "INSERT INTO ledger_nodes (level, n, hash) VALUES (?, ?, ?)"


def origin_of(store: str) -> str:
    """Return the name of a store's log, which its checkpoints begin with."""
    return f"agent-core/{store}"


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """What proves that an entry is leaf `index` of a log that has `size` leaves: the entry's bytes, and hashes."""

    index: int
    size: int
    data: bytes
    hashes: Sequence[bytes] = field(repr=False)

    @property
    def entry(self) -> Entry:
        """The entry."""
        found: Entry = json.loads(self.data)
        return found

    @property
    def root(self) -> bytes | None:
        """The root that the proof leads to; None for one that leads nowhere."""
        return root_by_inclusion(self.index, self.size, hash_leaf(self.data), self.hashes)


class LedgerTree:
    """The tree over a store's ledger. JournalError for a store without a ledger, or whose tree is not that of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def grow(self) -> int:
        """Add the entries that are no leaves yet; the number of leaves."""
        while True:
            with self._database.writing() as db:
                self._database.lock(db, SUBJECT)
                size, added = _grow(db)
            if added < BATCH:
                return size + added

    def checkpoint(self, origin: str, size: int | None = None) -> Checkpoint:
        """Return the log as it is, or as it was with so many leaves."""
        newest = self.grow()
        size = newest if size is None else size
        if not 0 <= size <= newest:
            raise JournalError(f"the log has {newest} leaves, not {size}")
        return Checkpoint(origin, size, root_of(size, self.find))

    def prove(self, run: str, size: int) -> InclusionProof:
        """Return what proves the last entry about a run among the first `size` leaves."""
        query = "SELECT seq, data FROM ledger WHERE run = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
        found = self._database.rows("ledger", query, run, size)
        if not found:
            raise JournalError(f"the ledger has no entry about the run {run!r}: it has not ended")
        ((seq, data),) = found
        proof = InclusionProof(seq - 1, size, as_bytes(data), prove_inclusion(seq - 1, size, self.find))
        if proof.root != root_of(size, self.find):
            raise JournalError(f"entry {seq} of the ledger was changed since it became a leaf of the log")
        return proof

    def prove_growth(self, old: int, new: int) -> list[bytes]:
        """Return what proves that the log with `old` leaves is the beginning of that with `new` ones."""
        return prove_consistency(old, new, self.find)

    def read_tile(self, tile: Tile) -> bytes | None:
        """Return the bytes of a tile; None for one that the log does not have yet."""
        first = tile.number * WIDTH
        if tile.level is None:
            query = "SELECT data FROM ledger WHERE seq > ? AND seq <= ? ORDER BY seq"
            found = self._database.rows("ledger", query, first, first + tile.width)
        else:
            query = "SELECT hash FROM ledger_nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n"
            found = self._database.rows("ledger_nodes", query, HEIGHT * tile.level, first, first + tile.width)
        if len(found) < tile.width:
            return None
        values = [as_bytes(value) for (value,) in found]
        return write_bundle(values) if tile.level is None else b"".join(values)

    def find(self, level: int, index: int) -> bytes:
        """Return the hash of a node."""
        return _read_node(self._database.rows("ledger_nodes", _NODE, level, index), level, index)


def _read_node(found: Sequence[Any], level: int, index: int) -> bytes:
    if not found:
        raise JournalError(f"the tree of the ledger lacks node {index} of level {level}")
    return as_bytes(found[0][0])


def _grow(db: Transaction) -> tuple[int, int]:
    """Add at most a batch of leaves, and the nodes that they complete: how many there were, and how many are new."""
    size = int(db.execute(_LEAVES).fetchone()[0])
    new = dict[tuple[int, int], bytes]()

    def find(level: int, index: int) -> bytes:
        known = new.get((level, index))
        return known if known is not None else _read_node(db.execute(_NODE, (level, index)).fetchall(), level, index)

    previous = db.execute("SELECT hash FROM ledger WHERE seq = ?", (size,)).fetchone() if size else (GENESIS,)
    head = as_bytes(previous[0]) if previous is not None else b""
    entries = db.execute(_NEW, (size, BATCH)).fetchall()
    for number, (seq, entered, data) in enumerate(entries, size + 1):
        head = link(head, as_bytes(data))
        if seq != number or head != as_bytes(entered):
            raise JournalError(f"entry {number} of the ledger does not follow from the one before it")
        for level, index, digest in grow(seq - 1, hash_leaf(as_bytes(data)), find):
            new[level, index] = digest
    db.executemany(_ADD, [(*node, digest) for node, digest in new.items()])
    return size, len(entries)


def find_checkpoint_fault(database: Reader, checkpoint: Checkpoint) -> str | None:
    """Return why a store's ledger does not have what a checkpoint of it says; None when it begins with just that."""
    rows: list[Any] = database.rows("ledger", "SELECT data FROM ledger WHERE seq <= ? ORDER BY seq", checkpoint.size)
    if len(rows) < checkpoint.size:
        return (
            f"the checkpoint is of {checkpoint.size} entries, and the ledger has {len(rows)}: "
            "it was cut off, or an older copy of the store was put back"
        )
    if compute_root(hash_leaf(as_bytes(data)) for (data,) in rows) != checkpoint.root:
        return (
            f"the first {checkpoint.size} entries of the ledger are not those of the checkpoint: "
            "it was written anew, or an older copy of the store went on"
        )
    return None
