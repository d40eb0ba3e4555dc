"""SharedCalls: what all calls of one host share, across runs."""

from typing import TYPE_CHECKING

from utools.calls.cache import AnswerCache
from utools.calls.store import CallStore
from utools.calls.store_memory import MemoryCallStore

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase


class SharedCalls:
    """Cached answers and rate limits of this process, or of all processes that share the given store."""

    def __init__(self, store: CallStore | None = None) -> None:
        self.store = store or MemoryCallStore()
        self.answers = AnswerCache(self.store)


def open_calls(database: "PostgresDatabase | None") -> SharedCalls:
    """Return what is shared through a database, by all machines that use it; without one, by this process."""
    if database is None:
        return SharedCalls()
    from utools.calls.store_postgres import PostgresCallStore

    return SharedCalls(PostgresCallStore(database))
