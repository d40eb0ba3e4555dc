"""store_of(): the run store that a program names: itself, by its file or by the URL of its database."""

import os

from agent_core.errors import DefinitionError
from engine_shim.runs.store import RunStore, SqliteRunStore, StrPath, default_store


def store_of(store: RunStore | StrPath | None) -> RunStore:
    """The store itself, that of a file or of a PostgreSQL URL, or the usual one. DefinitionError for what is none of
    them."""
    if store is None:
        return SqliteRunStore(default_store())
    if isinstance(store, str) and store.startswith(("postgresql://", "postgres://")):
        return _open_postgres(store)
    if isinstance(store, str | os.PathLike):
        return SqliteRunStore(store)
    if not hasattr(store, "leases"):
        raise DefinitionError("must be a RunStore, or the path of its file", where="store", value=store)
    return store


def _open_postgres(url: str) -> RunStore:
    """The store in a PostgreSQL database. DefinitionError where what that needs is not installed."""
    try:
        from engine_shim.runs.store_postgres import PostgresRunStore
    except ImportError:
        message = "a store in PostgreSQL needs the extra postgres: pip install 'agent-core[postgres]'"
        raise DefinitionError(message, where="store") from None
    return PostgresRunStore(url)
