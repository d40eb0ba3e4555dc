"""The command store copy: runs from one store into another, with the conversations beside them."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import typer

from agent_core.run.secrets import signing_keys
from engine_shim.cli import output
from engine_shim.cli.records.copied_conversations import find_sessions, open_conversations
from engine_shim.cli.records.run_names import find_run
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.beside_runs import list_left_behind
from engine_shim.store.copy import Copied, copy_runs
from engine_shim.store.entries import ALL, RunFilter
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.ledger import read_ledger
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from utools.context.copy import CopiedConversations, copy_conversations
from utools.databases.store_address import StoreAddress, describe_address, is_same

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
    if is_same(source, target):
        name = describe_address(source)
        raise typer.BadParameter(f"{name} would be copied into itself; name the store to copy from before it")
    load_environment(find_host_config())
    with closing(open_store(source)) as held:
        runs = _choose(held, names, wanted)
        left_behind = list_left_behind(held.database) if runs is None else []
        if not as_json:
            for each in left_behind:
                output.line(f"stays behind: {each}")
        with closing(open_store(target)) as other:
            copied = copy_runs(held, other, runs, keys=signing_keys())
            conversations = copy_conversations_of(held, other, [*copied.new, *copied.known])
            head = read_ledger(held.database)[0]
    if as_json:
        told = {
            "copied": copied.new,
            "known": copied.known,
            "driven": copied.driven,
            "other": copied.other,
            "damaged": copied.damaged,
            "unread": [{"run": run, "why": why} for run, why in copied.unread.items()],
        }
        more = {"waiting": copied.waiting, "ledger": copied.ledger, "conversations": conversations._asdict()}
        more["left_behind"] = left_behind
        output.document({**told, **more})
    else:
        _tell(copied, source, target, conversations, head if runs is None else None)
    return output.AUDIT if copied.other or copied.damaged or copied.unread else output.OK


def _choose(store: DatabaseRunStore, names: Sequence[str], wanted: RunFilter) -> list[str] | None:
    """Return the ids of the wanted runs, the oldest first; None for all of the store."""
    if names and wanted != ALL:
        raise typer.BadParameter("--run names the runs itself: it goes with no --status, --workflow or --since")
    if names:
        return [find_run(name, store) for name in names]
    if wanted == ALL:
        return None
    return [entry.run for entry in reversed(list_runs(store, wanted))]


def copy_conversations_of(
    source: DatabaseRunStore, target: DatabaseRunStore, runs: Iterable[str]
) -> CopiedConversations:
    """Copy the conversations that these runs read or wrote."""
    stores = open_conversations(source, target)
    if stores is None:
        return CopiedConversations([], [])
    return asyncio.run(copy_conversations(*stores, find_sessions(source, runs)))


def _tell(
    copied: Copied, source: StoreAddress, target: StoreAddress, conversations: CopiedConversations, head: str | None
) -> None:
    """Say what was copied and what was not, and how to prove it; `head` is that of the ledger that came along."""
    name, old = describe_address(target), describe_address(source)
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
    for run in copied.damaged:
        output.line(f"left out: {run}, which is damaged there: `agent-core verify {run} --store {name}` says where")
    for run, why in copied.unread.items():
        output.line(f"left out: {run}, which cannot be copied: {why}")
    if copied.waiting:
        waiting = ", ".join(copied.waiting)
        output.line(f"waiting in both stores: {waiting}; go on with each in one of them, or its calls are made twice")
    if head is not None:
        output.line(f"to compare both: agent-core doctor --store {name} --copied-from {old}")
    if head is not None and copied.ledger in ("carried", "kept"):
        output.line(f"to prove it: agent-core verify --all --store {name} --ledger {head}")
