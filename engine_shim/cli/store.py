"""open_named_store(): the run store of a command: that of its option, of the environment or of the host's file."""

import os
from pathlib import Path

from agent_core.journal.storage_errors import PATIENCE_S
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.open import VARIABLE, check_encryption, default_address, open_store
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress, read_address


def open_named_store(
    named: StoreAddress | None, config: Path | None = None, *, patience: float = PATIENCE_S
) -> DatabaseRunStore:
    """Return the store that is named, or else found, as `find_address` has it."""
    return open_store(find_address(named, config), patience=patience)


def open_store_for_runs(named: StoreAddress | None, *, temporal: bool = False) -> DatabaseRunStore:
    """Return the store that is named, or else found, to write runs into that no Engine of this host writes: encrypted,
    if the host's are. DefinitionError where they cannot be."""
    store, wanted = open_named_store(named), _read_configured(None, "encrypt") is True
    check_encryption(store, wanted=wanted, where="encrypt", temporal=temporal)
    return store


def find_address(named: StoreAddress | None, config: Path | None = None) -> StoreAddress:
    """Return where the runs of this host are: as `named` by --store or AGENT_CORE_STORE, as `store` of the host
    configuration says, or in the user's data directory."""
    file = find_host_config(config)
    if named is not None or os.environ.get(VARIABLE):
        load_environment(file)  # it may have the key of the store
        return default_address() if named is None else named
    value = _read_configured(config, "store")
    if file is None or not isinstance(value, str) or not value:
        return default_address()
    from utools.databases.sqlite_file import refuse_foreign

    address = read_address(value, file.parent, where=f"{file}: store")
    refuse_foreign(address, where=f"{file}: store")
    return default_address(address)


def _read_configured(config: Path | None, key: str) -> object:
    """A key of the host configuration, of which nothing else is looked at here. DefinitionError for a file that cannot
    be read."""
    file = find_host_config(config)
    if file is None:
        return None
    from utools.document import read_document

    load_environment(file)  # it may have PGPASSWORD
    data = read_document(file, "the host configuration").data
    return data.get(key) if isinstance(data, dict) else None
