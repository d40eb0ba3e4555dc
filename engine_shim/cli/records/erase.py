"""The command erase: destroys the contents of runs and conversations, and leaves what proves that they were there."""

import asyncio
from collections.abc import Sequence

import typer

from agent_core.run.clock import now
from agent_core.run.secrets import signing_keys
from engine_shim.cli import output
from engine_shim.cli.records.run_names import find_run
from engine_shim.cli.store import open_named_store
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.erase import Erased, ErasureRequest, erase_runs, find_runs, plan_erasure, was_erased
from engine_shim.store.open import shared_database
from engine_shim.store.run_store import DatabaseRunStore
from utools.context.store import ContextStore
from utools.context.store_encrypted import subject_of
from utools.databases.store_address import StoreAddress
from utools.defaults import host_context_store


def erase_named(
    runs: Sequence[str],
    conversation: str | None,
    submitter: str | None,
    why: str | None,
    path: StoreAddress | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Erase some runs, all of a conversation with what is remembered of it, or all that somebody handed in.
    BadParameter where none of them is named."""
    if len([each for each in (list(runs), conversation, submitter) if each]) != 1:
        raise typer.BadParameter("name runs, or --conversation, or --subject")
    load_environment(find_host_config())
    store = open_named_store(path)
    try:
        named = [name if was_erased(store.database, name) else find_run(name, store) for name in runs]
        found = named or find_runs(store, conversation=conversation, submitter=submitter)
        if dry_run:
            erased = plan_erasure(store, found)
        else:
            subjects = [] if conversation is None else [subject_of(conversation)]
            request = ErasureRequest(output.user(), now(), why)
            erased = erase_runs(store, found, request, signing_keys(), subjects)
        is_remembered = conversation is not None and _find_conversation(store, conversation, clear=not dry_run)
    finally:
        store.close()
    if not found and not is_remembered and not as_json:
        whose = f"was handed in by {submitter!r}"
        if conversation is not None:
            whose = f"is of the conversation {conversation!r}, and nothing is remembered of it"
        output.line(f"nothing to erase: no run of this store {whose}")
        return output.OK
    _tell(erased, dry_run=dry_run, as_json=as_json)
    return output.OK


def _find_conversation(store: DatabaseRunStore, conversation: str, *, clear: bool) -> bool:
    """Return whether something is remembered of a conversation, after it is cleared if that is wanted."""
    remembered = host_context_store(database=shared_database(store))
    return asyncio.run(_clear(remembered, conversation) if clear else _is_known(remembered, conversation))


async def _clear(remembered: ContextStore, conversation: str) -> bool:
    return await remembered.clear(conversation)


async def _is_known(remembered: ContextStore, conversation: str) -> bool:
    return bool(await remembered.turns(conversation))


def _tell(erased: Erased, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        key = "would_erase" if dry_run else "erased"
        output.document({key: erased.runs, "before": erased.before, "left": erased.left, "dry_run": dry_run})
        return
    for run in erased.runs:
        output.line(run)
    for run in erased.before:
        output.line(f"{run}  (was erased before)")
    output.line(f"{'would erase' if dry_run else 'erased'} {output.count(len(erased.runs), 'run')}")
    if erased.left:
        output.line(f"left: {erased.left}")
