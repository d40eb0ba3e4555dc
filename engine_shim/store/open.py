"""open_store(): the run store at an address: a SQLite file, or a PostgreSQL database by its URL."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.journal.storage_errors import PATIENCE_S
from engine_shim.errors import DefinitionError
from engine_shim.store.run_store import KEY, DatabaseRunStore, RunStore, SqliteRunStore, StrPath
from utools.databases.sqlite_file import data_file
from utools.databases.store_address import StoreAddress, is_url, of_tenant, read_address, schema_of

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase
    from utools.secrets.text_cipher import TextCipher

VARIABLE: Final = "AGENT_CORE_STORE"


def store_of(store: RunStore | StrPath | None, configured: StoreAddress | None = None) -> RunStore:
    """Return the store itself, that of an address, or the usual one. DefinitionError for what is none of them."""
    if store is None:
        return open_store(default_address(configured))
    if isinstance(store, str | os.PathLike):
        return open_store(read_address(os.fspath(store)))
    if not hasattr(store, "leases"):
        raise DefinitionError("must be a RunStore, the path of its file, or a URL", where="store", value=store)
    return store


def shared_database(store: RunStore) -> "PostgresDatabase | None":
    """Return the database of a store, if conversations, rate limits and kept answers can be in it as well."""
    return store.database.shared if isinstance(store, DatabaseRunStore) else None


def check_encryption(store: RunStore, *, wanted: bool, where: str, temporal: bool) -> None:
    """Let the runs of a host be encrypted, if that is wanted. DefinitionError where that cannot be: in a store with
    plain runs, without the operator's key, or where the history of Temporal would hold the records as well."""
    if not isinstance(store, DatabaseRunStore):
        return
    try:
        if wanted:
            store.contents.want()
        if temporal and store.contents.has_key and store.contents.is_encrypted:  # without a key nothing is written
            message = "the history of Temporal would hold the records in the clear: leave `engine` (or --engine) out"
            raise DefinitionError(message, where="encrypt")
    except DefinitionError as error:
        raise DefinitionError(error.message, where=where if error.where == "encrypt" else error.where) from None


def cipher_of(store: RunStore) -> "TextCipher | None":
    """Return what encrypts conversations and kept answers of a store that is encrypted, if its key is here."""
    if not isinstance(store, DatabaseRunStore) or not store.contents.has_key:
        return None
    return store.contents if store.contents.is_encrypted else None


def default_address(configured: StoreAddress | None = None) -> StoreAddress:
    """Return where runs are unless a store is named: AGENT_CORE_STORE, else as it is configured, else in the user's
    data directory."""
    if chosen := os.environ.get(VARIABLE):
        return read_address(chosen, where=VARIABLE)
    return data_file("runs.db", VARIABLE) if configured is None else configured


def open_store(address: StoreAddress, *, tenant: str | None = None, patience: float = PATIENCE_S) -> DatabaseRunStore:
    """Return the store at an address. Each tenant has one of its own: a file beside the host's, or a schema of the
    database.

    DefinitionError where PostgreSQL needs what is not installed.
    """
    key = key_variable(tenant)
    if is_url(address):
        return _open_postgres(str(address), schema_of(tenant), patience, key)
    path = Path(address)
    return SqliteRunStore(path if tenant is None else of_tenant(path, tenant), patience=patience, key=key)


def key_variable(tenant: str | None) -> str:
    """Return the variable that names the operator's key of a tenant's store, or of the host's own."""
    return KEY if tenant is None else f"{KEY}_{''.join(each if each.isalnum() else '_' for each in tenant.upper())}"


def _open_postgres(url: str, schema: str | None, patience: float, key: str) -> DatabaseRunStore:
    try:
        from engine_shim.store.run_store_postgres import PostgresRunStore
    except ImportError:
        message = "a store in PostgreSQL needs the extra postgres: pip install 'agent-core[postgres]'"
        raise DefinitionError(message, where="store") from None
    return PostgresRunStore(url, schema=schema, patience=patience, key=key)
