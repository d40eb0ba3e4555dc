"""Transaction: what a writer may do in a database, whichever it is. Queries have `?` for each value."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol


class Cursor(Protocol):
    """What a query found or changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """All that is written in it is there at its end, or nothing. A connection of sqlite3 is one, too."""

    def execute(self, query: str, values: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> object: ...
