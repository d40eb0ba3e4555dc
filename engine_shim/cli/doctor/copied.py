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
from engine_shim.store.ledger import GENESIS, read_ledger
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from engine_shim.store.token_rows import list_tokens
from utools.context.store import ContextStore
from utools.databases.store_address import StoreAddress, describe_address

_FINE: Final[tuple[Comparison, ...]] = ("same", "continued")
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
            runs = list_all_runs(there)
            yield from _check_runs(there, here, runs, again)
            yield from _check_ledger(there, here, again)
            yield _check_tokens(there, here, again)
            stores = open_conversations(there, here)
            if stores is not None:
                yield asyncio.run(_check_conversations(*stores, sorted(find_sessions(there, runs)), again))
        except AgentCoreError as error:
            yield Finding("copy", "problem", str(error))


def _check_runs(there: DatabaseRunStore, here: DatabaseRunStore, runs: list[str], again: str) -> Iterator[Finding]:
    found = {run: compare_run(there, here, run) for run in runs}
    facts = {"compared": dict(Counter(found.values()))}
    fine = sum(each in _FINE for each in found.values())
    yield Finding("copy", "ok", f"{fine:,} of {output.count(len(runs), 'run')} as in the other store", facts=facts)
    others = [(run, each) for run, each in found.items() if each not in _FINE]
    for run, each in others[:_MOST]:
        text, advice = f"run {run} {COMPARISONS[each]}", again if each in ("missing", "incomplete") else ""
        yield Finding("copy", "problem", text, advice, {"run": run, "comparison": each})
    if len(others) > _MOST:
        yield Finding("copy", "problem", f"and {len(others) - _MOST:,} runs more")


def _check_ledger(there: DatabaseRunStore, here: DatabaseRunStore, again: str) -> Iterator[Finding]:
    head, count = read_ledger(there.database)
    if head == GENESIS.hex():
        return
    faults = [fault for fault in prove_store(here.database, head).faults if "run" not in fault]
    for fault in faults:
        yield Finding("ledger", "problem", fault["why"], again)
    if not faults:
        yield Finding("ledger", "ok", f"the head {head} of the other store, of {count:,} entries, is proven here")


def _check_tokens(there: DatabaseRunStore, here: DatabaseRunStore, again: str) -> Finding:
    known = dict(list_tokens(here.database))
    missing = [name for name, is_valid in list_tokens(there.database) if name not in known or known[name] > is_valid]
    if missing:
        return Finding("tokens", "problem", f"not as in the other store: {', '.join(missing)}", again)
    return Finding("tokens", "ok", "as in the other store")


async def _check_conversations(there: ContextStore, here: ContextStore, sessions: list[str], again: str) -> Finding:
    missing = []
    for session in sessions:
        turns = await there.turns(session)
        if (await here.turns(session))[: len(turns)] != turns:
            missing.append(session)
    if missing:
        return Finding("conversations", "problem", f"not as in the other store: {', '.join(missing[:_MOST])}", again)
    return Finding("conversations", "ok", f"{output.count(len(sessions), 'conversation')} as in the other store")
