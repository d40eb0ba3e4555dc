"""The command replay --all, and what else replays the runs of a store, on all cores."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

from engine_shim.cli.records.replays import Replayed, runs_since, try_run, write_table
from engine_shim.cli.store import find_address
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress

FEW = 200
"""So many runs are replayed here before other processes would have started."""
CHUNK = 25
"""Runs that a process takes at once."""
Named = tuple[str, str]
"""A run and its workflow."""
Try = Callable[[DatabaseRunStore, Named], list[Replayed]]
"""Replays one run; a function of a module, with all that it is given, so that another process can have it."""
_stores: list[DatabaseRunStore] = []
"""The store of a process that helps."""


def replay_all(
    store_path: StoreAddress | None, since: datetime | None, policy: Mapping[str, Any] | None, *, as_json: bool
) -> int:
    """Replay every run that began at `since` or later, newest first, and write a table; returns the exit code."""
    return write_table(replay_many(find_address(store_path), since, partial(_replay, policy)), as_json=as_json)


def _replay(policy: Mapping[str, Any] | None, store: DatabaseRunStore, run: Named) -> list[Replayed]:
    return [try_run(*run, store.journal.load, policy)]


def replay_many(address: StoreAddress, since: datetime | None, attempt: Try) -> list[Replayed]:
    """Return what came of each run that began at `since` or later, newest first.

    The first ones are replayed here: what cannot be tried at all is told before anything else starts.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    store = open_store(address)
    try:
        runs = runs_since(store, since)
        here = len(runs) if cores == 1 else FEW
        found = [each for run in runs[:here] for each in attempt(store, run)]
    finally:
        store.close()
    return found + (_replay_elsewhere(address, runs[here:], attempt, cores) if runs[here:] else [])


def _replay_elsewhere(address: StoreAddress, runs: Sequence[Named], attempt: Try, cores: int) -> list[Replayed]:
    pool = ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"), _open, (address,))
    try:
        return [each for found in pool.map(partial(_attempt, attempt), runs, chunksize=CHUNK) for each in found]
    finally:
        pool.shutdown(cancel_futures=True)


def _open(address: StoreAddress) -> None:
    """Prepare a process that helps; a Ctrl-C is for the one that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stores.append(open_store(address))


def _attempt(attempt: Try, run: Named) -> list[Replayed]:
    return attempt(_stores[0], run)
