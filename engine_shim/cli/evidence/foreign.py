"""The command export --in-toto, and --receipts: a run in the formats of others, signed by the key that signs runs."""

import json
from pathlib import Path
from typing import Any

import typer

from agent_core.audit.foreign import make_receipts, make_statement, sign_statement
from agent_core.evidence.ed25519 import check_installed
from engine_shim.cli import output, terminal
from engine_shim.cli.evidence.excerpt import load_sound
from engine_shim.cli.evidence.ledger import find_signer
from engine_shim.cli.records.recorded import find_recorded
from utools.databases.store_address import StoreAddress

NOBODY = "urn:agent-core:caller"
"""Who a run was for that its caller drove."""


def export_statement(run: str, address: StoreAddress | None, target: str | None, *, as_json: bool) -> int:
    """Write an in-toto statement about a run, in a DSSE envelope."""
    check_installed("--in-toto")
    name, tape = load_sound(find_recorded(run, address))
    envelope = sign_statement(make_statement(name, tape), find_signer())
    return _write(name, envelope, target or f"{name}.intoto.json", as_json=as_json)


def export_receipts(run: str, address: StoreAddress | None, target: str | None, *, as_json: bool) -> int:
    """Write an agent receipt for each call of a run's tools."""
    check_installed("--receipts")
    recorded = find_recorded(run, address)
    name, tape = load_sound(recorded)
    by = None if recorded.store is None else recorded.store.submitter(name)
    receipts = make_receipts(name, tape, find_signer(), NOBODY if by is None else f"{NOBODY}:{by}")
    return _write(name, receipts, target or f"{name}.receipts.json", as_json=as_json)


def _write(run: str, document: Any, path: str, *, as_json: bool) -> int:
    """Write a document, and say where it is. BadParameter for a place that cannot be written."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if path == "-":
        terminal.out().write(text)
        return output.OK
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}") from None
    if as_json:
        output.document({"run": run, "path": path})
    else:
        output.line(path)
    return output.OK
