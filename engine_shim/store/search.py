"""RunSearch: pages of the runs of a store, newest first, also by what was recorded of them."""

import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from threading import Lock
from typing import Any, Final, NamedTuple

import orjson

from agent_core.journal.kinds import beginning
from agent_core.outputs import Json
from engine_shim.errors import DefinitionError
from engine_shim.store.conversations import NewestTurn, list_newest_turns
from engine_shim.store.database import Database, Dialect
from engine_shim.store.digest import RunDigest, digest_runs, read_calls
from engine_shim.store.entries import RunEntry, RunFilter, select_entries
from engine_shim.store.run_list import ROOT_STRANDS, complete_entry, read_beginning, read_record
from engine_shim.store.run_store import DatabaseRunStore

SEARCH_S: Final = 3.0
"""How long one page is searched for; it then has what was found, and the next one begins there."""
WINDOW: Final = 100
"""Runs whose records are looked into at once."""
SCAN_S: Final = 60.0
"""How long it is enough to look at what is newer."""
_RUNS_OF_JOURNAL: Final = """WITH RECURSIVE known(run) AS (SELECT min(run) FROM rows
    UNION ALL SELECT (SELECT min(run) FROM rows WHERE run > known.run) FROM known WHERE known.run IS NOT NULL)
    SELECT run FROM known WHERE run IS NOT NULL AND run NOT IN (SELECT run FROM workflow_runs)"""
"""The runs without an entry; one step in the index for each run, however many rows it has."""
_LAST_ROW: Final = "SELECT seq, hash FROM rows ORDER BY seq DESC LIMIT 1"
_SAME_ROW: Final = "SELECT 1 FROM rows WHERE seq = ? AND hash = ?"
"""Whether the newest row of an earlier look is there still: else its number may have been given to another one."""
_NEWER: Final = "SELECT DISTINCT run FROM rows WHERE seq > ?"
_UNLISTED: Final = """SELECT value FROM {values} AS each WHERE EXISTS (SELECT 1 FROM rows WHERE run = each.value)
    AND NOT EXISTS (SELECT 1 FROM workflow_runs WHERE run = each.value)"""
_FIRST: Final = f"SELECT run, data FROM rows WHERE run IN {{values}} AND n = 0 AND {ROOT_STRANDS}"
_HOLDS: Final = "SELECT value FROM {values} AS wanted WHERE "
_ROW: Final = "EXISTS (SELECT 1 FROM rows WHERE rows.run = wanted.value AND {})"
_HALF_SURROGATE: Final = re.compile("[\ud800-\udfff]")
SLACK: Final = 1000
"""Rows whose numbers are not much higher are looked at again: they may have been written at the same time."""


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs of a store are wanted: those of a filter, in which an agent ended for a `reason`, a `tool` was asked,
    and a `text` was recorded, in whichever case."""

    wanted: RunFilter
    reason: str | None = None
    tool: str | None = None
    text: str | None = None

    @property
    def looks_inside(self) -> bool:
        """Whether records have to be looked into."""
        return (self.reason, self.tool, self.text) != (None, None, None)

    @property
    def is_written(self) -> bool:
        """Whether records can have its texts: none has a half surrogate."""
        return not any(_HALF_SURROGATE.search(each) for each in (self.reason, self.tool, self.text) if each)

    def as_sql(self, dialect: Dialect) -> tuple[str, list[Any]]:
        """Return what the rows of a run have to be, as a term of a query, and its values; the tool is not in it."""
        terms, values = ["true"], list[Any]()
        if self.reason is not None:
            ended = beginning("run_finished") + b',"finish_reason":' + orjson.dumps(self.reason)
            terms.append(_ROW.format(f"substr(data, 1, {len(ended)}) = ?"))
            values.append(ended)
        if self.text is not None:
            patterns = [dialect.spell(each) for each in _patterns(self.text)]
            terms.append(_ROW.format(f"({' OR '.join([dialect.contains] * len(patterns))})"))
            values += patterns
        return " AND ".join(terms), values


class RunPage(NamedTuple):
    """The entries of a page, what is known of each, and the place from which the next one goes on, if there is more."""

    entries: list[RunEntry]
    digests: dict[str, RunDigest]
    next: tuple[str, str] | None


class _Begun(NamedTuple):
    """How a run began that only the journal holds."""

    entry: RunEntry
    turn: NewestTurn | None


class RunSearch:
    """The search in one store. Threads may share it; a long search blocks no other."""

    def __init__(self, store: DatabaseRunStore, *, seconds: float = SEARCH_S) -> None:
        self._store, self._seconds = store, seconds
        self._begun: dict[str, _Begun] = {}
        self._lock = Lock()
        self._mark: tuple[int, bytes] | None = None
        self._scan_at = 0.0

    def find(self, query: RunQuery) -> RunPage:
        """Return a page of as many runs as the filter's limit says, or of those that were found in time."""
        with self._store.database.open_reader() as database:
            found, place = self._find(query, database)
            found = [complete_entry(self._store, each) for each in found]
            return RunPage(found, digest_runs(database, [each.run for each in found]), place)

    def find_newest_turns(self, most: int) -> list[NewestTurn]:
        """Return the newest turn of each conversation, newest first; older versions recorded turns in the journal
        alone."""
        with self._store.database.open_reader() as database:
            turns = list_newest_turns(database, most)
            turns += [begun.turn for begun in self._all_begun(database) if begun.turn is not None]
        turns.sort(key=lambda turn: turn.started_at, reverse=True)
        return list({turn.conversation: turn for turn in reversed(turns)}.values())[::-1][:most]

    def _find(self, query: RunQuery, database: Database) -> tuple[list[RunEntry], tuple[str, str] | None]:
        wanted, until = query.wanted, time.monotonic() + self._seconds
        most = wanted.limit or 100
        lists = (self._listed(query, database), self._unlisted(wanted, database))
        candidates = merge(*lists, key=_place_of, reverse=True)
        found: list[RunEntry] = []
        while window := list(islice(candidates, WINDOW if query.looks_inside else most + 1)):
            found += self._keep(window, query, database)
            if len(found) > most:
                return found[:most], _place_of(found[most - 1])
            if time.monotonic() > until:
                return found, _place_of(window[-1])
        return found, None

    def _keep(self, window: list[RunEntry], query: RunQuery, database: Database) -> list[RunEntry]:
        """Return those of some runs whose records are as they are wanted."""
        if not query.looks_inside:
            return window
        if not query.is_written:
            return []
        runs = [each.run for each in window]
        if query.tool is not None:
            runs = list(dict.fromkeys(run for run, tool in read_calls(database, runs) if tool == query.tool))
        term, values = query.as_sql(database.dialect)
        kept = {run for (run,) in _read_of(database, _HOLDS + term, runs, *values)}
        return [each for each in window if each.run in kept]

    def _listed(self, query: RunQuery, database: Database) -> Iterator[RunEntry]:
        """Yield the runs that have an entry, some at a time."""
        wanted = replace(query.wanted, limit=(query.wanted.limit or 100) + 1)
        while entries := select_entries(database, wanted):
            yield from entries
            if len(entries) < (wanted.limit or 0):
                return
            wanted = replace(wanted, before=_place_of(entries[-1]))

    def _unlisted(self, wanted: RunFilter, database: Database) -> Iterator[RunEntry]:
        """Yield the runs that only the journal holds."""
        plain = replace(wanted, statuses=())
        own = (each.entry for each in self._all_begun(database) if plain.admits(each.entry))
        for entry in sorted(own, key=_place_of, reverse=True):
            if not wanted.statuses:
                yield entry
            elif (complete := complete_entry(self._store, entry)).status in wanted.statuses:
                yield complete

    def _all_begun(self, database: Database) -> list[_Begun]:
        """Return how all runs began that only the journal holds. That never changes, and is read once."""
        with self._lock:
            runs = self._unlisted_runs(database)
            known = {run: begun for run, begun in self._begun.items() if run in runs}
            for run, data in _read_of(database, _FIRST, sorted(runs - known.keys())):
                known[run] = _read_begun(run, read_record(data))
            self._begun = known
            return list(known.values())

    def _unlisted_runs(self, database: Database) -> set[str]:
        """Return the runs without an entry. Once all were looked at, those with newer rows are enough, for a while."""
        mark, last = self._mark, database.rows("rows", _LAST_ROW)
        self._mark = last[0] if last else None
        if mark is None or time.monotonic() > self._scan_at or not database.rows("rows", _SAME_ROW, *mark):
            self._scan_at = time.monotonic() + SCAN_S
            return {run for (run,) in database.rows("rows", _RUNS_OF_JOURNAL)}
        newer = {run for (run,) in database.rows("rows", _NEWER, mark[0] - SLACK)}
        return {run for (run,) in _read_of(database, _UNLISTED, [*self._begun.keys() | newer])}


def _read_of(database: Database, query: str, runs: Sequence[str], *values: Any) -> list[Any]:
    """Return what a query finds about some runs, which are its first value."""
    return database.rows("rows", query.format(values=database.dialect.values), database.dialect.pack(runs), *values)


def write_cursor(place: tuple[str, str]) -> str:
    """Return the place of a run in the list, as callers hold it."""
    return urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def read_cursor(text: str) -> tuple[str, str]:
    """Return the place that a cursor names. DefinitionError for any other text."""
    try:
        match orjson.loads(urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")):
            case [str(started), str(run)]:
                return started, run
            case _:
                pass
    except ValueError:
        pass
    raise DefinitionError("is no cursor: take `next` of the page before", where="query/before")


def _read_begun(run: str, first: Json) -> _Begun:
    entry = read_beginning(run, first)
    match first.get("agent"):
        case {"name": str(agent), "conversation": str(conversation)}:
            return _Begun(entry, NewestTurn(conversation, agent, entry.started_at))
        case _:
            return _Begun(entry, None)


def _place_of(entry: RunEntry) -> tuple[str, str]:
    return entry.started_at, entry.run


def _patterns(text: str) -> list[str]:
    """Return what a record holds in which a text was written, in either case: SQLite knows the cases of ASCII alone."""
    cases = dict.fromkeys((text, text.lower(), text.upper(), text.title()))
    written = [orjson.dumps(each).decode()[1:-1] for each in cases]
    escaped = [each.replace("!", "!!").replace("%", "!%").replace("_", "!_") for each in written]
    return [f"%{each}%" for each in escaped]
