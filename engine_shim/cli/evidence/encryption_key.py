"""The command key, with --encryption: the operator's key of an encrypted store."""

from pathlib import Path

import typer

from agent_core.encryption.operator_key import VARIABLE, make_key_text, make_operator_file
from agent_core.evidence.ed25519 import check_installed
from engine_shim.cli import output
from engine_shim.cli.store import open_named_store
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.erase import renew_keys
from utools.databases.store_address import StoreAddress


def make(file: Path | None, *, as_json: bool) -> int:
    """Write a new key into a file, or to standard output. BadParameter where the file is there already."""
    check_installed("key")
    if file is None:
        text = make_key_text()
        return output.answer({"key": text}, text, as_json=as_json)
    try:
        kid = make_operator_file(file)
    except FileExistsError:
        hint = "without it, what a store has encrypted by it is gone; name another file"
        raise typer.BadParameter(f"{file} is there already; {hint}") from None
    except OSError as error:
        raise typer.BadParameter(f"{error.filename or file} cannot be written: {error.strerror}") from None
    return output.answer(
        {"file": str(file), "key": kid},
        f"{file}  {kid}",
        f"export {VARIABLE}={file.absolute()}",
        "with `encrypt: true` a new store is encrypted by it; who loses it loses the store",
        as_json=as_json,
    )


def rotate(store: StoreAddress | None, *, as_json: bool) -> int:
    """Replace the key of an encrypted store, and the operator's."""
    load_environment(find_host_config())
    opened = open_named_store(store)
    try:
        left = renew_keys(opened)
    finally:
        opened.close()
    name = opened.database.name
    lines = [f"{name} has new keys; older ones open nothing in it", *([f"left: {left}"] if left else [])]
    return output.answer({"store": name, "left": left}, *lines, as_json=as_json)
