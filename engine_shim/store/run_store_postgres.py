"""PostgresRunStore: a `RunStore` in a PostgreSQL database, which any number of machines may share."""

from collections.abc import Callable

from agent_core.journal.postgres import PostgresJournal
from agent_core.journal.storage_errors import PATIENCE_S
from engine_shim.store.database_postgres import PostgresDatabase
from engine_shim.store.ledger import LedgerKeeper
from engine_shim.store.run_store import KEY, DatabaseRunStore


class PostgresRunStore(DatabaseRunStore):
    """Runs in a database by its URL, or in one `schema` of it. Times of leases are those of the database."""

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        clock: Callable[[], float] | None = None,
        patience: float = PATIENCE_S,
        key: str = KEY,
    ) -> None:
        database = PostgresDatabase(url, schema=schema, patience=patience)

        def open_journal() -> PostgresJournal:
            return PostgresJournal(database.shared, keeper=LedgerKeeper(database), ciphers=self.contents)

        super().__init__(database, open_journal, clock=clock, key=key)
