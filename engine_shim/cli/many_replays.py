"""The command replay --all, and what else replays the runs of a store, on all cores."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from engine_shim.cli.replays import Replayed, runs_since, try_run, write_table
from engine_shim.runs.store import SqliteRunStore, default_store

FEW = 200
"""So many runs are replayed here before other processes would have started."""
CHUNK = 25
"""Runs that a process takes at once."""
Named = tuple[str, str]
"""A run and its workflow."""
Try = Callable[[SqliteRunStore, Named], list[Replayed]]
"""Replays one run; a function of a module, with all that it is given, so that another process can have it."""
_stores: list[SqliteRunStore] = []
"""The store of a process that helps."""


def replay_all(
    store_path: Path | None, since: datetime | None, policy: Mapping[str, Any] | None, *, as_json: bool
) -> int:
    """Replay every run that began at `since` or later, newest first, and write a table; returns the exit code."""
    path = store_path or default_store()
    return write_table(replay_many(path, since, partial(_replay, policy)), as_json=as_json)


def _replay(policy: Mapping[str, Any] | None, store: SqliteRunStore, run: Named) -> list[Replayed]:
    return [try_run(*run, store.journal.load, policy)]


def replay_many(path: Path, since: datetime | None, attempt: Try) -> list[Replayed]:
    """What came of each run that began at `since` or later, newest first.

    The first ones are replayed here: what cannot be tried at all is told before anything else starts.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    store = SqliteRunStore(path)
    try:
        runs = runs_since(store, since)
        here = len(runs) if cores == 1 else FEW
        found = [each for run in runs[:here] for each in attempt(store, run)]
    finally:
        store.close()
    return found + (_replay_elsewhere(path, runs[here:], attempt, cores) if runs[here:] else [])


def _replay_elsewhere(path: Path, runs: Sequence[Named], attempt: Try, cores: int) -> list[Replayed]:
    pool = ProcessPoolExecutor(cores, multiprocessing.get_context("spawn"), _open, (path,))
    try:
        return [each for found in pool.map(partial(_attempt, attempt), runs, chunksize=CHUNK) for each in found]
    finally:
        pool.shutdown(cancel_futures=True)


def _open(path: Path) -> None:
    """Prepare a process that helps; a Ctrl-C is for the one that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stores.append(SqliteRunStore(path))


def _attempt(attempt: Try, run: Named) -> list[Replayed]:
    return attempt(_stores[0], run)
