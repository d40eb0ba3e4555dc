"""The command store copy: runs from one store into another, with the conversations beside them."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import typer

from agent_core.journal.facts import Call, RunStarted
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Tape
from agent_core.run.secrets import signing_keys
from engine_shim.cli import output
from engine_shim.cli.records.run_names import find_run
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.copy import Copied, copy_runs
from engine_shim.store.entries import ALL, RunFilter
from engine_shim.store.ledger import read_ledger
from engine_shim.store.open import open_store, shared_database
from engine_shim.store.run_list import list_runs
from engine_shim.store.run_store import DatabaseRunStore
from utools.context.copy import CopiedConversations, copy_conversations
from utools.context.open_store import configured_address
from utools.databases.redis_server import redis_of_host
from utools.databases.store_address import StoreAddress, describe_address
from utools.defaults import host_context_store

_LEDGER: Final = {
    "carried": "the ledger continues there, with each head that it had",
    "kept": "the ledger of this store is kept there beside its own, with each head that it had",
    "noted": "the ledger there notes the head of this one, which is not the ledger that was copied before",
}


def copy_store(
    source: StoreAddress, target: StoreAddress, names: Sequence[str], wanted: RunFilter, *, as_json: bool
) -> int:
    """Copy the runs of these names, or those that the filter admits, and say what was done. BadParameter for a source
    that is not there, or is the target, and for a name that no run has."""
    if isinstance(source, Path) and not source.exists():
        raise typer.BadParameter(f"there is no run store {describe_address(source)}")
    if source == target:
        raise typer.BadParameter(f"{describe_address(source)} cannot be copied into itself")
    load_environment(find_host_config())
    with closing(open_store(source)) as held:
        runs = _choose(held, names, wanted)
        with closing(open_store(target)) as other:
            copied = copy_runs(held, other, runs, keys=signing_keys())
            conversations = _copy_conversations(held, other, [*copied.new, *copied.known])
            head = read_ledger(held.database)[0]
    if as_json:
        told = {"copied": copied.new, "known": copied.known, "driven": copied.driven, "other": copied.other}
        more = {"waiting": copied.waiting, "ledger": copied.ledger, "conversations": conversations._asdict()}
        output.document({**told, **more})
    else:
        _tell(copied, target, conversations, head if runs is None else None)
    return output.AUDIT if copied.other else output.OK


def _choose(store: DatabaseRunStore, names: Sequence[str], wanted: RunFilter) -> list[str] | None:
    """Return the ids of the wanted runs, the oldest first; None for all of the store."""
    if names:
        return [find_run(name, store) for name in names]
    if wanted == ALL:
        return None
    return [entry.run for entry in reversed(list_runs(store, wanted))]


def _copy_conversations(source: DatabaseRunStore, target: DatabaseRunStore, runs: Iterable[str]) -> CopiedConversations:
    """Copy the conversations of the host, or of the tenant whose stores these are, that these runs read or wrote."""
    databases = [shared_database(store) for store in (source, target)]
    if databases[0] is databases[1] or redis_of_host() is not None or configured_address() is not None:
        return CopiedConversations([], [])  # both stores have the same conversations
    tenant = None if source.journal.identity is None else source.journal.identity.tenant
    held, other = (host_context_store(tenant, database=database) for database in databases)
    sessions = {session for run in runs for session in _find_sessions(source.journal.load(run))}
    return asyncio.run(copy_conversations(held, other, sessions))


def _find_sessions(tape: Tape) -> Iterator[str]:
    """Yield the conversations that a run read or wrote."""
    for fact in read_tape(tape, {"run_started", "asked"}):
        match fact:
            case Call(tool="context_manager", args={"session_id": str(session)}):
                yield session
            case RunStarted(begun=begun) if begun.conversation is not None:
                yield begun.conversation
            case _:
                pass


def _tell(copied: Copied, target: StoreAddress, conversations: CopiedConversations, head: str | None) -> None:
    """Say what was copied and what was not, and how to prove it; `head` is that of the ledger that came along."""
    name = describe_address(target)
    known = f", {len(copied.known)} were there already" if copied.known else ""
    output.line(f"copied: {output.count(len(copied.new), 'run')} to {name}, verified{known}")
    if conversations.new:
        output.line(f"copied: {output.count(len(conversations.new), 'conversation')} of these runs")
    for session in conversations.parted:
        output.line(f"left out: the conversation {session}, which has continued in the store to copy to")
    if copied.ledger is not None:
        output.line(_LEDGER[copied.ledger])
    for run in copied.driven:
        output.line(f"left out: {run}, which a process drives; copy it once it has ended or waits")
    for run in copied.other:
        output.line(f"left out: {run}, which has continued in the store to copy to; both keep what they have")
    if copied.waiting:
        waiting = ", ".join(copied.waiting)
        output.line(f"waiting in both stores: {waiting}; go on with each in one of them, or its calls are made twice")
    if head is not None and copied.ledger in ("carried", "kept"):
        output.line(f"to prove it: agent-core verify --all --store {name} --ledger {head}")
