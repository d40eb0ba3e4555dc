"""JournalRuns: the runs of a store that only its journal holds, such as those that a program's own agents left there.

To find them, the runs of the journal are held against the list, one step in an index for each run. So a server notes in
the store up to which row that was done, and which it found; later rows are enough then.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import merge
from threading import Lock
from typing import Any, Final, NamedTuple

from agent_core.errors import JournalError
from agent_core.outputs import Json
from engine_shim.store.conversations import NewestTurn
from engine_shim.store.database import Database
from engine_shim.store.entries import ALL, RunEntry, RunFilter, place_of
from engine_shim.store.run_list import ROOT_STRANDS, complete_entry, open_data, read_beginning, read_record
from engine_shim.store.run_store import DatabaseRunStore

SLACK: Final = 1000
"""Rows whose numbers are not much higher are looked at again: they may have been written at the same time."""
NOTED_AFTER: Final = 10 * SLACK
"""So many rows behind the note a new one is written."""
ENOUGH_S: Final = 86_400.0
"""How long it is enough to look at what is newer; after that all is looked through again."""
PAGE: Final = 500
"""Entries that are read at once where all are walked through."""
MARK, RUNS = "journal_mark", "journal_runs"
"""The tables of the note: how far it goes, when all was looked through last, and what was found."""
_ALL: Final = """WITH RECURSIVE known(run) AS (SELECT min(run) FROM rows
    UNION ALL SELECT (SELECT min(run) FROM rows WHERE run > known.run) FROM known WHERE known.run IS NOT NULL)
    SELECT run FROM known WHERE run IS NOT NULL"""
_ALL_BUT_LISTED: Final = f"{_ALL} AND run NOT IN (SELECT run FROM workflow_runs)"
_HAS_LIST: Final = "SELECT 1 FROM workflow_runs LIMIT 1"
"""A journal of its own is no store, and has no table of this name."""
_LAST: Final = "SELECT seq, hash FROM rows ORDER BY seq DESC LIMIT 1"
_IS_THERE: Final = "SELECT 1 FROM rows WHERE seq = ? AND hash = ?"
"""Whether the row up to which a look went is there still: else its number may have been given to another one."""
_NEWER: Final = "SELECT DISTINCT run FROM (SELECT run FROM rows WHERE seq > ? ORDER BY seq LIMIT 1000000000) AS newer"
"""The limit keeps a database from walking through the whole index of runs for it."""
_UNLISTED: Final = """SELECT value FROM {values} AS each WHERE EXISTS (SELECT 1 FROM rows WHERE run = each.value)
    AND NOT EXISTS (SELECT 1 FROM workflow_runs WHERE run = each.value)"""
FIRST: Final = f"SELECT run, strand, n, hash, data FROM rows WHERE run IN {{values}} AND n = 0 AND {ROOT_STRANDS}"
"""The first record of each of some runs."""
Place = tuple[int, bytes]
"""A row: its number and its hash."""


class BegunRun(NamedTuple):
    """How a run began that only the journal holds."""

    entry: RunEntry
    turn: NewestTurn | None


class JournalRuns:
    """Such runs of one store. Threads may share it. With `notes` it notes in the store how far it has looked."""

    def __init__(self, store: DatabaseRunStore, *, notes: bool = False) -> None:
        self._store, self._notes = store, notes
        self._begun: dict[str, BegunRun] = {}
        self._mark: Place | None = None
        self._noted, self._looked_at = 0, 0.0
        self._lock = Lock()

    def find(self, database: Database) -> list[BegunRun]:
        """Return how all these runs began, in no order. That never changes, and is read once."""
        with self._lock:
            runs = self._find_runs(database)
            known = {run: begun for run, begun in self._begun.items() if run in runs}
            found = read_of(database, FIRST, sorted(runs - known.keys()))
            for run, *row in found:
                known[run] = _read_begun(run, read_record(open_data(self._store, run, *row)))
            self._begun = known
            if self._notes and self._mark is not None and not 0 <= self._mark[0] - self._noted < NOTED_AFTER:
                self._note(self._mark, known)
            return list(known.values())

    def _find_runs(self, database: Database) -> set[str]:
        """Return the runs without an entry. Where a look has gone before, those with newer rows are enough."""
        candidates: set[str] = {*self._begun}
        if self._mark is None:
            candidates |= self._recall(database)
        mark, last = self._mark, database.rows("rows", _LAST)
        self._mark = (last[0][0], last[0][1]) if last else None
        is_enough = 0 <= time.time() - self._looked_at < ENOUGH_S
        if mark is None or not is_enough or not database.rows("rows", _IS_THERE, *mark):
            self._noted, self._looked_at = -NOTED_AFTER, time.time()
            return self._look_through(database)
        candidates |= {run for (run,) in database.rows("rows", _NEWER, mark[0] - SLACK)}
        return {run for (run,) in read_of(database, _UNLISTED, sorted(candidates))}

    def _look_through(self, database: Database) -> set[str]:
        """Return what the whole journal holds."""
        query = _ALL_BUT_LISTED if database.rows("workflow_runs", _HAS_LIST) else _ALL
        return {run for (run,) in database.rows("rows", query)}

    def _recall(self, database: Database) -> set[str]:
        """Go on from what the store has noted; return the runs that it names."""
        found = database.rows(MARK, f"SELECT seq, hash, at FROM {MARK}")
        if not found:
            return set()
        self._noted, self._mark, self._looked_at = found[0][0], (found[0][0], found[0][1]), found[0][2]
        return {run for (run,) in database.rows(RUNS, f"SELECT run FROM {RUNS}")}

    def _note(self, mark: Place, known: dict[str, BegunRun]) -> None:
        """Note how far this look went. A store that takes nothing now is looked through again."""
        with suppress(JournalError), self._store.database.writing(MARK) as db:
            for table in (MARK, RUNS):
                db.execute(f"DELETE FROM {table}")
            db.execute(f"INSERT INTO {MARK} VALUES (?, ?, ?)", (*mark, self._looked_at))
            for run in known:
                db.execute(f"INSERT INTO {RUNS} VALUES (?)", (run,))
            self._noted = mark[0]


def list_runs(store: DatabaseRunStore, wanted: RunFilter = ALL) -> list[RunEntry]:
    """Return the entries of all runs of a store that the filter admits, those that only the journal holds among them,
    newest first."""
    listed = store.entries(wanted)
    plain = replace(wanted, statuses=())
    begun = [each.entry for each in JournalRuns(store).find(store.database) if plain.admits(each.entry)]
    if not begun:
        return listed
    if wanted.statuses:
        begun = [each for each in (complete_entry(store, each) for each in begun) if wanted.admits(each)]
    merged = sorted([*listed, *begun], key=place_of, reverse=True)
    return [complete_entry(store, each) for each in merged[: wanted.limit]]


def walk_runs(store: DatabaseRunStore, wanted: RunFilter = ALL) -> Iterator[RunEntry]:
    """Yield the entries of all runs that the filter admits, newest first, without all of them in memory; a status or a
    limit is none of its terms."""
    return (complete_entry(store, entry) for entry in _walk_all(store, wanted))


def walk_ids(store: DatabaseRunStore) -> Iterator[str]:
    """Yield the ids of all runs, newest first, without a look at how those stand that only the journal holds."""
    return (entry.run for entry in _walk_all(store, ALL))


def _walk_all(store: DatabaseRunStore, wanted: RunFilter) -> Iterator[RunEntry]:
    begun = [each.entry for each in JournalRuns(store).find(store.database) if wanted.admits(each.entry)]
    begun.sort(key=place_of, reverse=True)
    yield from merge(_walk_entries(store, wanted), begun, key=place_of, reverse=True)


def _walk_entries(store: DatabaseRunStore, wanted: RunFilter) -> Iterator[RunEntry]:
    page = store.entries(replace(wanted, limit=PAGE))
    while page:
        yield from page
        page = store.entries(replace(wanted, limit=PAGE, before=place_of(page[-1])))


def read_of(database: Database, query: str, runs: Sequence[str], *values: Any) -> list[Any]:
    """Return what a query finds about some runs, which are its first value."""
    return database.rows("rows", query.format(values=database.dialect.values), database.dialect.pack(runs), *values)


def _read_begun(run: str, first: Json) -> BegunRun:
    entry = read_beginning(run, first)
    match first.get("agent"):
        case {"name": str(agent), "conversation": str(conversation)}:
            return BegunRun(entry, NewestTurn(conversation, agent, entry.started_at))
        case _:
            return BegunRun(entry, None)
