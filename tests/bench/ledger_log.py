"""What the ledger costs as a transparency log: a leaf, a checkpoint, a proof, in CPU, selects and hashes.

    python tests/bench/ledger_log.py [ENTRIES]

The ledger is made by a script, as long as that of a store with so many runs (1,000,000); its runs are not.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from agent_core.evidence import merkle
from agent_core.evidence.ed25519 import make_key
from agent_core.evidence.key_files import KeyFiles
from agent_core.journal.record import encode, link
from engine_shim.store.ledger import GENESIS
from engine_shim.store.ledger_tree import LedgerTree
from engine_shim.store.run_store import SqliteRunStore

ENTRIES = 1_000_000
TIMES = 50


def fill(store: SqliteRunStore, first: int, count: int, head: bytes) -> bytes:
    """Add entries to a ledger; its head."""

    def entries() -> Any:
        nonlocal head
        for number in range(first, first + count):
            said = {"kind": "ended", "run": f"r{number}", "head": "0" * 64, "count": 12, "status": "completed"}
            data = encode(
                {**said, "submitted_by": None, "at": "2026-11-29T10:00:00.000Z", "store": "s", "tenant": None}
            )
            head = link(head, data)
            yield number + 1, f"r{number}", head, data

    with store.database.writing() as db:
        db.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", entries())
    return head


def measure(call: Callable[[int], object]) -> str:
    """Milliseconds of CPU, the median and the worst."""
    taken = []
    for number in range(TIMES):
        begin = time.process_time()
        call(number)
        taken.append(1000 * (time.process_time() - begin))
    return f"{median(taken):.2f} ms, at most {max(taken):.2f}"


def count(tree: LedgerTree, store: SqliteRunStore, call: Callable[[], object]) -> str:
    """How many selects, and how many hashes of nodes, a call takes."""
    counts, rows, node = {"selects": 0, "hashes": 0}, store.database.rows, merkle.hash_node

    def select(*words: Any) -> Any:
        counts["selects"] += 1
        return rows(*words)

    def hash_node(left: bytes, right: bytes) -> bytes:
        counts["hashes"] += 1
        return node(left, right)

    store.database.rows, merkle.hash_node = select, hash_node  # type: ignore[method-assign]
    try:
        call()
    finally:
        store.database.rows, merkle.hash_node = rows, node  # type: ignore[method-assign]
    return f"{counts['selects']} selects, {counts['hashes']} hashes"


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES
    signer = KeyFiles(make_key()).signer()
    assert signer is not None
    with tempfile.TemporaryDirectory() as name, closing(SqliteRunStore(Path(name) / "runs.db")) as store:
        head, tree = fill(store, 0, entries, GENESIS), LedgerTree(store.database)
        begin = time.process_time()
        assert tree.grow() == entries
        taken = time.process_time() - begin
        print(f"the tree of {entries:,} entries     {taken:.1f} s, {1e6 * taken / entries:.1f} us a leaf")

        def settle(number: int) -> None:
            nonlocal head
            head = fill(store, entries + number, 1, head)
            tree.grow()

        print(f"one entry more, and its leaf   {measure(settle)}")
        size = tree.grow()
        print(f"a checkpoint, signed           {measure(lambda _: tree.checkpoint('log').sign(signer))}")
        some = [number * 17 % entries for number in range(TIMES)]
        print(f"a proof of one run             {measure(lambda number: tree.prove(f'r{some[number]}', size))}")
        print(f"    {count(tree, store, lambda: tree.prove('r17', size))}")
        print(f"that the log has only grown    {measure(lambda number: tree.prove_growth(some[number] + 1, size))}")
        print(f"    {count(tree, store, lambda: tree.prove_growth(entries // 3, size))}")


if __name__ == "__main__":
    main()
