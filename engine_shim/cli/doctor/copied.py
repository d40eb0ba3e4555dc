"""check_copy(): a store held against the one from which its runs were copied."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from agent_core.errors import AgentCoreError
from engine_shim.cli import output
from engine_shim.cli.doctor.finding import Finding
from engine_shim.cli.records.copied_conversations import find_sessions, open_conversations
from engine_shim.store.compare import COMPARISONS, Comparison, compare_run
from engine_shim.store.copy import list_all_runs
from engine_shim.store.database import Database
from engine_shim.store.ledger import GENESIS, read_ledger
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from engine_shim.store.token_rows import list_tokens
from utools.context.store import ContextStore
from utools.databases.store_address import StoreAddress, describe_address

_FINE: Final[tuple[Comparison, ...]] = ("same", "continued")
_STATES: Final = {
    "missing": "no tables yet: nothing was copied",
    "older": "an older layout: the next write upgrades it",
}
_MOST: Final = 50
"""How many runs are named at most."""


def check_copy(source: StoreAddress, target: StoreAddress, patience: float) -> Iterator[Finding]:
    """Yield whether all that `store copy` brings along is in the target as it is in the source."""
    again = f"`agent-core store copy {describe_address(source)} {describe_address(target)}`"
    with (
        closing(open_store(source, patience=patience)) as there,
        closing(open_store(target, patience=patience)) as here,
    ):
        try:
            missing = [find_missing_tables(each.database) for each in (there, here)]
            if any(missing):
                yield Finding("copy", "problem", "; ".join(filter(None, missing)), again)
                return
            yield from _compare(there, here, again)
        except AgentCoreError as error:
            yield Finding("copy", "problem", str(error))


def find_missing_tables(database: Database) -> str | None:
    """Return why a store cannot be read without a change to it; None where it can."""
    if database.shared is None:
        return None
    from engine_shim.store.database_postgres import PostgresDatabase

    state = database.find_state() if isinstance(database, PostgresDatabase) else "current"
    return None if state == "current" else f"{database.name} has {_STATES[state]}"


def _compare(there: DatabaseRunStore, here: DatabaseRunStore, again: str) -> Iterator[Finding]:
    runs = list_all_runs(there)
    yield from _check_runs(there, here, runs, again)
    yield from _check_ledger(there, here, again)
    yield _check_tokens(there, here, again)
    places = open_conversations(there, here)
    if places is not None:
        yield from asyncio.run(_check_conversations(*places, sorted(find_sessions(there, runs)), again))


def _check_runs(there: DatabaseRunStore, here: DatabaseRunStore, runs: list[str], again: str) -> Iterator[Finding]:
    found: dict[str, Comparison] = {run: compare_run(there, here, run) for run in runs}
    facts = {"compared": Counter[str](found.values())}
    others: list[tuple[str, Comparison]] = [(run, each) for run, each in found.items() if each not in _FINE]
    text = f"{len(runs) - len(others):,} of {output.count(len(runs), 'run')} as in the other store"
    if number := facts["compared"]["continued"]:
        text += f", {number:,} of them continued here"
    advice = again if any(each in ("missing", "incomplete") for _, each in others) else ""
    yield Finding("copy", "problem" if others else "ok", text, advice, facts)
    for run, each in others[:_MOST]:
        yield Finding("copy", "problem", f"run {run} {COMPARISONS[each]}", "", {"run": run, "comparison": each})
    if len(others) > _MOST:
        yield Finding("copy", "problem", f"and {len(others) - _MOST:,} runs more")


def _check_ledger(there: DatabaseRunStore, here: DatabaseRunStore, again: str) -> Iterator[Finding]:
    head, count = read_ledger(there.database)
    if head == GENESIS.hex():
        return
    if any("run" not in fault for fault in prove_store(here.database, head).faults):
        yield Finding("ledger", "problem", f"the head {head} of the other store is not proven here", again)
    else:
        yield Finding("ledger", "ok", f"the head {head} of the other store, of {count:,} entries, is proven here")


def _check_tokens(there: DatabaseRunStore, here: DatabaseRunStore, again: str) -> Finding:
    known = dict(list_tokens(here.database))
    missing = [name for name, is_valid in list_tokens(there.database) if name not in known or known[name] > is_valid]
    if missing:
        return Finding("tokens", "problem", f"not as in the other store: {', '.join(missing)}", again)
    return Finding("tokens", "ok", "as in the other store")


async def _check_conversations(
    there: ContextStore, here: ContextStore, sessions: list[str], again: str
) -> list[Finding]:
    """Return how the conversations are; one that has continued in both stores is not completed by another copy."""
    lacking: list[str] = []
    parted: list[str] = []
    continued = 0
    for session in sessions:
        old, new = await there.turns(session), await here.turns(session)
        if old == new[: len(old)]:
            continued += len(new) > len(old)
        else:
            (lacking if new == old[: len(new)] else parted).append(session)
    text = f"{output.count(len(sessions) - len(lacking) - len(parted), 'conversation')} as in the other store"
    found = [Finding("conversations", "ok", f"{text}, {continued:,} of them continued here" if continued else text)]
    for session in parted[:_MOST]:
        advice = "both keep what they have; new turns belong here"
        found.append(Finding("conversations", "warning", f"{session} has continued in both stores", advice))
    if lacking:
        found.append(Finding("conversations", "problem", f"turns are missing: {', '.join(lacking[:_MOST])}", again))
    return found
