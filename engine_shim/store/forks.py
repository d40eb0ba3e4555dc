"""find_forks(): the runs that began with the past of others, and hold what was recorded there."""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from agent_core.journal.record import read_stored
from engine_shim.store.journal_runs import FIRST, PAGE, read_of, walk_ids
from engine_shim.store.run_list import read_record
from engine_shim.store.run_store import DatabaseRunStore

_MARK: Final = b'"forked":{'
"""What the first record of a fork holds."""


def find_forks(store: DatabaseRunStore, runs: Collection[str]) -> list[str]:
    """Return the forks of some runs, and the forks of these, but for the runs themselves, as far as records can be
    read."""
    origins, found = dict(_read_origins(store)), set(runs)
    while more := {run for run, origin in origins.items() if origin in found} - found:
        found |= more
    return sorted(found.difference(runs))


def _read_origins(store: DatabaseRunStore) -> Iterator[tuple[str, str]]:
    """Yield each fork of a store, and the run that it was forked from."""
    runs = walk_ids(store)
    while page := list(islice(runs, PAGE)):
        rows = ((run, read_stored(*row)) for run, *row in read_of(store.database, FIRST, page))
        for run, row in store.contents.open_many(store.database, rows):
            forked = read_record(row.data).get("forked") if _MARK in row.data else None
            if isinstance(forked, dict) and isinstance(origin := forked.get("run"), str):
                yield run, origin
