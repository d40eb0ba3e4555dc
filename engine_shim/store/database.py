"""Database: the tables of a run store, in a SQLite file or in PostgreSQL, by one SQL.

Queries have `?` for each value. What the two spell in different ways is in the `Dialect` of each.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from utools.databases.transaction import Transaction
from utools.threads import Threads

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase

LAST = "\U0010ffff"
"""Sorts after every character of an id."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """`values` is a table with the texts of a `pack`ed list, in its column `value`; `contains` says that the bytes of
    `data` match the LIKE pattern of a text that `spell` gave, whatever the case of ASCII letters."""

    values: str
    pack: Callable[[Sequence[str]], Any]
    contains: str
    spell: Callable[[str], str]


class Reader(Protocol):
    """Reads the tables of a run store."""

    def rows(self, table: str, query: str, *values: Any) -> list[Any]:
        """Return what `query` finds in `table`; nothing where the file or the table does not exist."""
        ...


class Database(Reader, Protocol):
    """Any number of threads and processes may share it.

    Raises JournalError when it cannot be used; the message says why, and what to do.
    """

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        ...

    @property
    def threads(self) -> Threads | None:
        """What an event loop has this called in, where it waits for a network; None where it calls it itself."""
        ...

    @property
    def shared(self) -> "PostgresDatabase | None":
        """The database, where it has the tables of conversations and calls as well; None for a file."""
        ...

    @property
    def dialect(self) -> Dialect: ...

    def writing(self, subject: str | None = None) -> AbstractContextManager[Transaction]:
        """Return a transaction; with a subject one that no other writer of it shares, on whichever machine."""
        ...

    def lock(self, db: Transaction, subject: str) -> None:
        """Wait until no other transaction has this subject; keep it until the transaction ends."""
        ...

    def read_clock(self, db: Transaction | None = None) -> float:
        """Return the time that all who share it go by, in seconds since 1970."""
        ...

    def open_reader(self) -> "AbstractContextManager[Database]":
        """Return what to read from at length, so that nothing else in this process waits for it."""
        ...

    def open_snapshot(self) -> AbstractContextManager[Reader]:
        """Return what reads all as it is at one moment, whatever others write meanwhile."""
        ...

    def prepare(self) -> None:
        """Make the tables, or migrate them, as the first write would."""
        ...

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
        ...
