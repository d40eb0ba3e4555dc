"""open_context_store(): the conversations of a host: in Redis, in a PostgreSQL database, or in a SQLite file."""

import os
from typing import TYPE_CHECKING, Final

from utools.context.store import ContextStore
from utools.context.store_sqlite import PATH_VARIABLE, SqliteContextStore, default_path
from utools.databases.sqlite_file import refuse_foreign
from utools.databases.store_address import StoreAddress, is_url, of_tenant, read_address, schema_of
from utools.errors import DefinitionError

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase

PATIENCE_S: Final = 5.0
"""How long a database is waited for that others keep busy."""


def open_context_store(database: "PostgresDatabase | None" = None, *, tenant: str | None = None) -> ContextStore:
    """Return the store that AGENT_CORE_CONTEXT_DB names, a file or a URL; else `database`, else a file of the user's.

    A tenant has a file beside the host's, or a schema of the same database; `database` is the tenant's own.
    DefinitionError where PostgreSQL needs what is not installed.
    """
    address = configured_address()
    if address is None and database is not None:
        from utools.context.store_postgres import PostgresContextStore

        return PostgresContextStore(database)
    if address is not None and is_url(address):
        return _open_postgres(str(address), schema_of(tenant))
    return SqliteContextStore(None if tenant is None else of_tenant(default_path(), tenant))


def configured_address() -> StoreAddress | None:
    """Return where conversations are by AGENT_CORE_CONTEXT_DB; None where it says nothing. DefinitionError for another
    program's file."""
    if not (chosen := os.environ.get(PATH_VARIABLE)):
        return None
    address = read_address(chosen, where=PATH_VARIABLE)
    refuse_foreign(address, where=PATH_VARIABLE)
    return address


def _open_postgres(url: str, schema: str | None) -> ContextStore:
    try:
        from utools.context.store_postgres import LAYOUT, PostgresContextStore
        from utools.databases.postgres_database import PostgresDatabase
    except ImportError:
        message = "conversations in PostgreSQL need the extra postgres: pip install 'agent-core[postgres]'"
        raise DefinitionError(message, where=PATH_VARIABLE) from None
    return PostgresContextStore(PostgresDatabase(url, (LAYOUT,), patience=PATIENCE_S, schema=schema))
