"""The command store copy: runs from one store into another."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import typer

from agent_core.run.secrets import signing_keys
from engine_shim.cli import output
from engine_shim.host.environment import load_environment
from engine_shim.host.find import find_host_config
from engine_shim.store.copy import copy_runs
from engine_shim.store.open import open_store
from utools.databases.store_address import StoreAddress, describe_address

_LEDGER: Final = {
    "carried": "the ledger goes on there, with each head that it had",
    "noted": "the ledger there notes the head of this one, and its deleted runs",
}


def copy_store(source: StoreAddress, target: StoreAddress, runs: Sequence[str], *, as_json: bool) -> int:
    """Copy runs, or all, and say what was done. BadParameter for a source that is not there, or is the target."""
    if isinstance(source, Path) and not source.exists():
        raise typer.BadParameter(f"there is no run store {source}")
    if source == target:
        raise typer.BadParameter(f"{describe_address(source)} cannot be copied into itself")
    load_environment(find_host_config())
    with closing(open_store(source)) as held, closing(open_store(target)) as other:
        copied = copy_runs(held, other, runs or None, keys=signing_keys())
    if as_json:
        output.document({"copied": copied.new, "known": copied.known, "driven": copied.driven, "ledger": copied.ledger})
        return output.OK
    known = f", {len(copied.known)} were there already" if copied.known else ""
    output.line(f"copied: {output.count(len(copied.new), 'run')} to {describe_address(target)}, verified{known}")
    if copied.ledger is not None:
        output.line(_LEDGER[copied.ledger])
    for run in copied.driven:
        output.line(f"left out: {run}, which somebody drives; copy it when it rests")
    return output.OK
