"""Statements on a connection to PostgreSQL: a query by itself, and a transaction in few round trips.

Queries have `?` for each value, as those of SQLite have.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, LiteralString

import psycopg

from utools.databases.postgres_connection import Connection
from utools.lazy_pattern import lazy_compile

BEGIN: Final = "BEGIN"
BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_NO_TEXT: Final = lazy_compile("[\0\ud800-\udfff]")
Select = Callable[..., list[Any]]
"""Gives what a query finds, called with it and its values."""


class PostgresTransaction:
    """A `Transaction` that is under way, in a pipeline: what needs no answer goes with the next statement that does.

    `found` is what the query gave that was asked as it began.
    """

    def __init__(self, db: Connection, pipeline: psycopg.Pipeline) -> None:
        self._db, self._pipeline = db, pipeline
        self.found: list[Any] = []

    def execute(self, query: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        cursor = self.send(query, values)
        self.sync()
        return cursor

    def send(self, query: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        """Send a statement. Its answer is there after the next `sync`, and so are its errors."""
        return self._db.execute(_translate(query), values, binary=True)

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Its errors come with the next statement, or with the end of the transaction."""
        with self._db.cursor() as cursor:
            cursor.executemany(_translate(query), rows)

    def select(self, query: str, *values: Any) -> list[Any]:
        return select(self._db, query, values)

    def sync(self) -> None:
        """Wait until all that was sent is answered; raise where one of it failed."""
        self._pipeline.sync()


@contextmanager
def transaction(db: Connection, begin: LiteralString = BEGIN) -> Iterator[PostgresTransaction]:
    """A transaction, committed at the end; the owner of the connection rolls back after an error."""
    with db.pipeline() as pipeline:
        db.execute(begin, prepare=False)
        yield PostgresTransaction(db, pipeline)
        db.execute("COMMIT", prepare=False)


def select(db: Connection, query: str, values: Sequence[Any]) -> list[Any]:
    """Return what a query finds; nothing for a text that no text of PostgreSQL is, with a NUL or a half surrogate."""
    if any(isinstance(each, str) and _NO_TEXT.search(each) for each in values):
        return []
    given = [_texts_of(each) if isinstance(each, list) else each for each in values]
    return db.execute(_translate(query), given, binary=True).fetchall()


def _texts_of(values: list[Any]) -> list[Any]:
    """Return a list without the texts that no text of PostgreSQL is."""
    return [each for each in values if not (isinstance(each, str) and _NO_TEXT.search(each))]


@lru_cache(maxsize=512)
def _translate(query: str) -> LiteralString:
    """Return a query as psycopg takes it, with %s for each value."""
    return query.replace("%", "%%").replace("?", "%s")  # pyright: ignore[reportReturnType]
