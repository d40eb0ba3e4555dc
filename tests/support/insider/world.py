"""A store with runs of every kind, and what others have kept of it: what an insider is let loose on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent_core import Approve
from agent_core.evidence.checkpoints import Checkpoint
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.public_keys import PublicKey, PublicKeys, Signer
from agent_core.journal.identity import read_identity
from agent_core.journal.record import Row
from agent_core.run.clock import write_time
from engine_shim import Engine
from engine_shim.store.entries import RunEntry
from engine_shim.store.ledger_tree import LedgerTree, origin_of
from engine_shim.store.run_store import DatabaseRunStore

FLOW: Final[dict[str, Any]] = {
    "id": "f",
    "nodes": [
        {"id": "a", "tool": "echo", "config": {"text": "twelve lamps"}},
        {"id": "b", "tool": "echo", "config": {"text": "sent"}},
    ],
    "edges": [{"from": "a", "to": "b"}],
}
ASKS: Final[dict[str, Any]] = {**FLOW, "nodes": [{**node, "approval": "always"} for node in FLOW["nodes"]]}
TABLES: Final = {
    "rows": "run, strand, n, hash, data",
    "workflow_runs": "*",
    "run_hosts": "*",
    "run_submissions": "*",
    "run_turns": "*",
    "ledger": "*",
    "ledger_nodes": "*",
    "ledger_start": "*",
    "store_identity": "*",
}
Snapshot = Mapping[str, Sequence[Sequence[Any]]]


def new_key(path: Path) -> PublicKey:
    """A private key in a file, and beside it the file of its public one."""
    made = make_key_file(path)
    replace_text(public_file(path), PublicKeys.of(made).write())
    return made


def signer_of(path: Path) -> Signer:
    signer = KeyFiles(str(path)).signer()
    assert signer is not None
    return signer


def save(store: DatabaseRunStore) -> Snapshot:
    """All that is in a store."""
    order = {"rows": " ORDER BY seq"}
    return {
        table: [
            tuple(row) for row in store.database.rows(table, f"SELECT {columns} FROM {table}{order.get(table, '')}")
        ]
        for table, columns in TABLES.items()
    }


def put_back(store: DatabaseRunStore, saved: Snapshot) -> None:
    """Make a store what it was."""
    with store.database.writing() as db:
        for table, found in saved.items():
            db.execute(f"DELETE FROM {table}")
            names = "" if TABLES[table] == "*" else f" ({TABLES[table]})"
            for row in found:
                db.execute(f"INSERT INTO {table}{names} VALUES ({', '.join('?' for _ in row)})", tuple(row))


@dataclass(frozen=True)
class World:
    """A store of the tenant acme, as it was yesterday, and today, and in between, when a checkpoint of it was kept; and
    that of the tenant globex on the same host.

    Its files: the host's key `host/desk.key`, and, out of the insider's reach, `away/`: a checkpoint, what the second
    host has seen, the public keys.
    """

    store: DatabaseRunStore
    other: DatabaseRunStore
    folder: Path
    address: str
    yesterday: Snapshot
    since: Snapshot
    today: Snapshot

    @property
    def key(self) -> Path:
        return self.folder / "host/desk.key"

    def away(self, name: str) -> Path:
        return self.folder / "away" / name


async def _live(store: DatabaseRunStore, run: str, flow: Any, approvals: int = 0) -> None:
    """Drive a run by the program itself, with the decisions of a person on what it asks."""
    store.save_submission(run, "cara")
    engine = Engine(store=store)
    result = await engine.run(flow, run_id=run)
    for _ in range(approvals):
        place = (result.waiting[0]["strand"], result.waiting[0]["n"])
        result = await engine.resume(run, decisions={place: Approve()}, by="cara")


async def _begin(store: DatabaseRunStore) -> None:
    await _live(store, "first", FLOW)


async def _work(store: DatabaseRunStore) -> None:
    engine = Engine(store=store)
    await _live(store, "told", FLOW)
    await _live(store, "other", {**FLOW, "nodes": [{**node, "config": {"text": "?"}} for node in FLOW["nodes"]]})
    await _live(store, "decided", ASKS, approvals=2)
    await _live(store, "waits", ASKS)
    await _live(store, "twice", ASKS, approvals=1)
    await _live(store, "stopped", ASKS)
    await engine.cancel("stopped", by="ann")
    await _live(store, "paused", ASKS, approvals=1)
    await engine.pause("paused", by="ann")
    await _die(store, "running")


async def _die(store: DatabaseRunStore, run: str) -> None:
    """A run whose driver has died in its first node."""
    from support.insider.attack import chain_anew

    tape = store.journal.load("told")
    begun = {path: [row.record() for row in rows][:1] for path, rows in tape.items() if path in ("flow", "flow/a.1")}
    strands = chain_anew(run, begun)
    rows: list[Row] = [row for strand in strands.values() for row in strand]
    store.journal.append(run, rows)
    told = store.entry("told")
    assert told is not None
    store.save(RunEntry(run, told.workflow, told.version, "running", write_time(datetime.now(UTC)), told.base))


def make_world(store: DatabaseRunStore, other: DatabaseRunStore, folder: Path, address: str) -> World:
    """Run what is to be tampered with. The variable KEY_VARIABLE names `host/desk.key` of the folder."""
    for name in ("host", "away"):
        (folder / name).mkdir()
    new_key(folder / "host/desk.key")
    old = new_key(folder / "host/old.key")
    store.note_tenant("acme")
    other.note_tenant("globex")
    asyncio.run(_begin(store))
    asyncio.run(_live(other, "theirs", FLOW))
    yesterday = save(store)
    asyncio.run(_work(store))
    keep(store, folder, "kept.txt")
    asyncio.run(_live(store, "late", FLOW))
    since = save(store)
    asyncio.run(_live(store, "later", FLOW))
    keep(store, folder, "seen.txt")
    asyncio.run(_live(store, "newest", FLOW))
    known = PublicKeys.read(public_file(folder / "host/desk.key").read_text(), "").keys
    revoked = replace(old, revoked=write_time(datetime.now(UTC)), reason="its disk was stolen")
    replace_text(folder / "away/desk.key.pub", PublicKeys({**known, old.kid: revoked}).write())
    return World(store, other, folder, address, yesterday, since, save(store))


def checkpoint_of(store: DatabaseRunStore) -> Checkpoint:
    return LedgerTree(store.database).checkpoint(origin_of(read_identity(store.database.rows).store))


def keep(store: DatabaseRunStore, folder: Path, name: str) -> None:
    """Put a checkpoint of the log where the insider cannot reach it."""
    note = checkpoint_of(store).sign(signer_of(folder / "host/desk.key"))
    replace_text(folder / "away" / name, note.write())
