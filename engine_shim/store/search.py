"""RunSearch: pages of the runs of a store, newest first, also by what was recorded of them."""

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from engine_shim.errors import DefinitionError
from engine_shim.store.conversations import NewestTurn, list_newest_turns
from engine_shim.store.database import Database, Dialect
from engine_shim.store.digest import RunDigest, digest_runs, read_calls
from engine_shim.store.digest_rows import FINISHED, OpenedRows, find_digest_rows
from engine_shim.store.entries import RunEntry, RunFilter, place_of, select_entries
from engine_shim.store.journal_runs import JournalRuns, read_of
from engine_shim.store.run_list import complete_entry
from engine_shim.store.run_store import DatabaseRunStore
from utools.lazy_pattern import lazy_compile

SEARCH_S: Final = 3.0
"""How long one page is searched for; it then has what was found, and the next one begins there."""
WINDOW: Final = 100
"""Runs whose records are looked into at once."""
_HOLDS: Final = "SELECT value FROM {values} AS wanted WHERE "
_ROW: Final = "EXISTS (SELECT 1 FROM rows WHERE rows.run = wanted.value AND {})"
_HALF_SURROGATE: Final = lazy_compile("[\ud800-\udfff]")


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
            ended = _write_end(self.reason)
            terms.append(_ROW.format(f"substr(data, 1, {len(ended)}) = ?"))
            values.append(ended)
        if self.text is not None:
            patterns = [dialect.spell(each) for each in _patterns(self.text)]
            terms.append(_ROW.format(f"({' OR '.join([dialect.contains] * len(patterns))})"))
            values += patterns
        return " AND ".join(terms), values

    def keep_of(self, rows: OpenedRows, runs: Sequence[str]) -> set[str]:
        """Return those of the runs whose opened rows are as they are wanted; the tool is not looked at."""
        kept = set(runs)
        if self.reason is not None:
            kept &= rows.beginning(_write_end(self.reason))
        if self.text is not None:
            kept &= set(rows.holding([orjson.dumps(self.text)[1:-1]]))
        return kept


class RunPage(NamedTuple):
    """The entries of a page, what is known of each, and the place from which the next one goes on, if there is more."""

    entries: list[RunEntry]
    digests: dict[str, RunDigest]
    next: tuple[str, str] | None


class RunSearch:
    """The search in one store. Threads may share it; a long search blocks no other."""

    def __init__(self, store: DatabaseRunStore, *, seconds: float = SEARCH_S) -> None:
        self._store, self._seconds = store, seconds
        self._journal_runs = JournalRuns(store, notes=True)

    def find(self, query: RunQuery) -> RunPage:
        """Return a page of as many runs as the filter's limit says, or of those found in time. Unreadable where
        records have to be looked into, and are encrypted by a key that is not here."""
        if query.looks_inside:
            self._store.contents.check_open()
        with self._store.database.open_reader() as database:
            found, place = self._find(query, database)
            found = [complete_entry(self._store, each) for each in found]
            runs = [each.run for each in found]
            return RunPage(found, digest_runs(runs, find_digest_rows(database, self._store.contents, runs)), place)

    def find_newest_turns(self, most: int) -> list[NewestTurn]:
        """Return the newest turn of each conversation, newest first; older versions recorded turns in the journal
        alone."""
        with self._store.database.open_reader() as database:
            turns = list_newest_turns(database, most)
            turns += [begun.turn for begun in self._journal_runs.find(database) if begun.turn is not None]
        turns.sort(key=lambda turn: turn.started_at, reverse=True)
        return list({turn.conversation: turn for turn in reversed(turns)}.values())[::-1][:most]

    def _find(self, query: RunQuery, database: Database) -> tuple[list[RunEntry], tuple[str, str] | None]:
        wanted, until = query.wanted, time.monotonic() + self._seconds
        most = wanted.limit or 100
        lists = (self._listed(query, database), self._unlisted(wanted, database))
        candidates = merge(*lists, key=place_of, reverse=True)
        found: list[RunEntry] = []
        while window := list(islice(candidates, WINDOW if query.looks_inside else most + 1)):
            found += self._keep(window, query, database)
            if len(found) > most:
                return found[:most], place_of(found[most - 1])
            if time.monotonic() > until:
                return found, place_of(window[-1])
        return found, None

    def _keep(self, window: list[RunEntry], query: RunQuery, database: Database) -> list[RunEntry]:
        """Return those of some runs whose records are as they are wanted."""
        if not query.looks_inside:
            return window
        if not query.is_written:
            return []
        runs = [each.run for each in window]
        rows = find_digest_rows(database, self._store.contents, runs)
        if query.tool is not None:
            runs = list(dict.fromkeys(run for run, tool in read_calls(rows) if tool == query.tool))
        if isinstance(rows, OpenedRows):
            kept = query.keep_of(rows, runs)
            return [each for each in window if each.run in kept]
        term, values = query.as_sql(database.dialect)
        kept = {run for (run,) in read_of(database, _HOLDS + term, runs, *values)}
        return [each for each in window if each.run in kept]

    def _listed(self, query: RunQuery, database: Database) -> Iterator[RunEntry]:
        """Yield the runs that have an entry, some at a time."""
        wanted = replace(query.wanted, limit=(query.wanted.limit or 100) + 1)
        while entries := select_entries(database, wanted):
            yield from entries
            if len(entries) < (wanted.limit or 0):
                return
            wanted = replace(wanted, before=place_of(entries[-1]))

    def _unlisted(self, wanted: RunFilter, database: Database) -> Iterator[RunEntry]:
        """Yield the runs that only the journal holds."""
        plain = replace(wanted, statuses=())
        own = (each.entry for each in self._journal_runs.find(database) if plain.admits(each.entry))
        for entry in sorted(own, key=place_of, reverse=True):
            if not wanted.statuses:
                yield entry
            elif (complete := complete_entry(self._store, entry)).status in wanted.statuses:
                yield complete


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


def _write_end(reason: str) -> bytes:
    """Return how the last record of an agent begins that ended for a reason."""
    return FINISHED + b',"finish_reason":' + orjson.dumps(reason)


def _patterns(text: str) -> list[str]:
    """Return what a record holds in which a text was written, in either case: SQLite knows the cases of ASCII alone."""
    cases = dict.fromkeys((text, text.lower(), text.upper(), text.title()))
    written = [orjson.dumps(each).decode()[1:-1] for each in cases]
    escaped = [each.replace("!", "!!").replace("%", "!%").replace("_", "!_") for each in written]
    return [f"%{each}%" for each in escaped]
