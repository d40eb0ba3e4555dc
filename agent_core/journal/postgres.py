"""The journal in PostgreSQL: many runs, many writers on many machines, one short transaction an append."""

from collections.abc import Sequence
from typing import Final

from agent_core.journal.postgres_database import Connection, Durability, PostgresDatabase, PostgresLayout
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from agent_core.journal.storage_errors import PATIENCE_S

_TABLES: Final = """CREATE TABLE journal_rows (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run TEXT COLLATE "C" NOT NULL,
    strand TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    data BYTEA NOT NULL,
    UNIQUE (run, strand, n))"""
LAYOUT: Final = PostgresLayout("journal", (_TABLES,))
_ENDS: Final = """SELECT DISTINCT ON (strand) strand, n + 1, hash FROM journal_rows
    WHERE run = %s AND strand = ANY(%s) ORDER BY strand, n DESC"""


class PostgresJournal:
    """A `Journal` of any number of runs in a database: its URL, or the database itself, which stays its owner's.

    Appends to one run wait for each other, up to `patience` seconds, on whichever machine they are.
    """

    def __init__(
        self, source: str | PostgresDatabase, *, durability: Durability = "power", patience: float = PATIENCE_S
    ) -> None:
        self._is_own = isinstance(source, str)
        self._database = (
            PostgresDatabase(source, (LAYOUT,), durability=durability, patience=patience)
            if isinstance(source, str)
            else source
        )

    def load(self, run: str) -> Tape:
        query = "SELECT strand, n, hash, data FROM journal_rows WHERE run = %s ORDER BY strand, n"
        return by_path(Row(*row) for row in self._database.select(query, run))

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if not rows:
            return False
        with self._database.writing(run) as db:
            ends = _read_ends(db, run, {row.path for row in rows})

            def last(path: str) -> End | None:
                return ends[path] if path in ends else _read_ends(db, run, {path})[path]

            new = rows_to_append(run, rows, last, lambda row: _holds(db, run, row))
            with db.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO journal_rows (run, strand, n, hash, data) VALUES (%s, %s, %s, %s, %s)",
                    [(run, row.path, row.n, row.hash, row.data) for row in new],
                )
        return is_last_new(rows, new)

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """The rows of a run that were appended after a position, in the order of appending, each with its position."""
        query = "SELECT seq, strand, n, hash, data FROM journal_rows WHERE run = %s AND seq > %s ORDER BY seq"
        return [(seq, Row(*row)) for seq, *row in self._database.select(query, run, after)]

    def runs(self) -> list[str]:
        query = "SELECT run FROM journal_rows GROUP BY run ORDER BY min(seq)"
        return [run for (run,) in self._database.select(query)]

    def delete(self, run: str) -> bool:
        with self._database.writing(run) as db:
            return db.execute("DELETE FROM journal_rows WHERE run = %s", (run,)).rowcount > 0

    def close(self) -> None:
        if self._is_own:
            self._database.close()


def _read_ends(db: Connection, run: str, paths: set[str]) -> dict[str, End | None]:
    """The end of each strand; None for one without rows."""
    found = db.execute(_ENDS, (run, sorted(paths)), binary=True).fetchall()
    return {**dict.fromkeys(paths), **{path: (count, head) for path, count, head in found}}


def _holds(db: Connection, run: str, row: Row) -> bool:
    query = "SELECT hash, data FROM journal_rows WHERE run = %s AND strand = %s AND n = %s"
    return bool(db.execute(query, (run, row.path, row.n), binary=True).fetchone() == (row.hash, row.data))
