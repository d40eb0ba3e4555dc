"""The rows of some runs that a list looks into: found by the database, or read by the keys of an encrypted store."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from agent_core.journal.kinds import beginning
from agent_core.journal.path import CONTROL, SEAL
from agent_core.journal.record import Row, read_stored
from engine_shim.store.content_keys import ContentKeys
from engine_shim.store.database import Database
from engine_shim.store.run_list import ROOT_STRANDS

FINISHED: Final = beginning("run_finished")
BEGUN: Final = beginning("run_started", loop="agent")
CALLS: Final = (beginning("asked", ask="tool"), beginning("waiting"))
SAID: Final = beginning("answered", reply="said")
"""How the records begin that are read."""
LONGEST_CALL: Final = 1000
"""Bytes of a call in which its tool is found."""
_IN: Final = "run IN {values}"
_ENDS: Final = f"""SELECT run, strand, n, data FROM rows WHERE {_IN} AND n = 0 AND {ROOT_STRANDS}
    UNION ALL SELECT run, strand, n, data FROM rows WHERE {_IN} AND substr(data, 1, {len(FINISHED)}) = ?"""
_CALLS: Final = f"""SELECT run, substr(data, 1, {LONGEST_CALL}) FROM rows
    WHERE {_IN} AND (substr(data, 1, {len(CALLS[0])}) = ? OR substr(data, 1, {len(CALLS[1])}) = ?) ORDER BY seq"""
_AGENTS: Final = f"SELECT run, strand FROM rows WHERE {_IN} AND n = 0 AND substr(data, 1, {len(BEGUN)}) = ?"
_SAID: Final = f"SELECT run, strand, data FROM rows WHERE {_IN} AND substr(data, 1, {len(SAID)}) = ?"
_ALL: Final = f"SELECT run, strand, n, hash, data FROM rows WHERE {_IN} ORDER BY seq"


class DigestRows(Protocol):
    """The rows of some runs, as tuples."""

    def ends(self) -> list[Any]:
        """Return (run, strand, n, record) of the first record of each run, and of each `run_finished`."""
        ...

    def calls(self) -> list[Any]:
        """Return (run, beginning of the record) of each call, and of what waits."""
        ...

    def agents(self) -> list[Any]:
        """Return (run, strand) of each agent that began."""
        ...

    def said(self, runs: Sequence[str]) -> list[Any]:
        """Return (run, strand, record) of each reply of a model in some of the runs."""
        ...


def find_digest_rows(database: Database, contents: ContentKeys, runs: Sequence[str]) -> DigestRows:
    """Return the rows of some runs that a list looks into."""
    return OpenedRows(database, contents, runs) if contents.is_encrypted else PlainRows(database, runs)


class PlainRows:
    """Rows that the database finds by how they begin."""

    def __init__(self, database: Database, runs: Sequence[str]) -> None:
        self._database, self._chosen = database, database.dialect.pack(list(runs))

    def ends(self) -> list[Any]:
        return self._select(_ENDS, self._chosen, self._chosen, FINISHED)

    def calls(self) -> list[Any]:
        return self._select(_CALLS, self._chosen, *CALLS)

    def agents(self) -> list[Any]:
        return self._select(_AGENTS, self._chosen, BEGUN)

    def said(self, runs: Sequence[str]) -> list[Any]:
        return self._select(_SAID, self._database.dialect.pack(list(runs)), SAID)

    def _select(self, query: str, *values: Any) -> list[Any]:
        return self._database.rows("rows", query.format(values=self._database.dialect.values), *values)


class OpenedRows:
    """Rows of an encrypted store, all of which are read."""

    def __init__(self, database: Database, contents: ContentKeys, runs: Sequence[str]) -> None:
        query = _ALL.format(values=database.dialect.values)
        found = database.rows("rows", query, database.dialect.pack(list(runs)))
        self.rows = list(contents.open_many(database, [(run, read_stored(*row)) for run, *row in found]))

    def ends(self) -> list[Any]:
        return [(run, row.path, row.n, row.data) for run, row in self.rows if _is_first(row) or _begins(row, FINISHED)]

    def calls(self) -> list[Any]:
        return [(run, row.data[:LONGEST_CALL]) for run, row in self.rows if _begins(row, *CALLS)]

    def agents(self) -> list[Any]:
        return [(run, row.path) for run, row in self.rows if row.n == 0 and _begins(row, BEGUN)]

    def said(self, runs: Sequence[str]) -> list[Any]:
        return [(run, row.path, row.data) for run, row in self.rows if run in runs and _begins(row, SAID)]

    def holding(self, patterns: Sequence[bytes]) -> Iterator[str]:
        """Yield the runs of the records that hold one of the texts, in whichever case."""
        for run, row in self.rows:
            text = row.data.decode("utf-8", "replace").lower()
            if any(pattern.decode().lower() in text for pattern in patterns):
                yield run

    def beginning(self, start: bytes) -> set[str]:
        """Return the runs of the records that begin so."""
        return {run for run, row in self.rows if _begins(row, start)}


def _is_first(row: Row) -> bool:
    return row.n == 0 and "/" not in row.path and row.path not in (SEAL, CONTROL)


def _begins(row: Row, *starts: bytes) -> bool:
    return row.data.startswith(starts)
