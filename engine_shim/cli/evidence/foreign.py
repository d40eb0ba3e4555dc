"""The command export --in-toto, and --receipts: a run in the formats of others, signed by the key that signs runs."""

import json
from typing import Any

from agent_core.audit.foreign import make_receipts, make_statement, sign_statement
from agent_core.evidence.ed25519 import check_installed
from engine_shim.cli import output
from engine_shim.cli.evidence.excerpt import load_sound
from engine_shim.cli.evidence.ledger import require_signer
from engine_shim.cli.records.recorded import find_recorded
from utools.databases.store_address import StoreAddress

NOBODY = "urn:agent-core:caller"
"""Who a run was for that its caller drove."""


def export_statement(run: str, address: StoreAddress | None, target: str | None, *, as_json: bool) -> int:
    """Write an in-toto statement about a run, in a DSSE envelope."""
    check_installed("--in-toto")
    name, tape = load_sound(find_recorded(run, address))
    envelope = sign_statement(make_statement(name, tape), require_signer())
    return output.write_file(_encode(envelope), target or f"{name}.intoto.json", as_json=as_json, told={"run": name})


def export_receipts(run: str, address: StoreAddress | None, target: str | None, *, as_json: bool) -> int:
    """Write an agent receipt for each call of a run's tools."""
    check_installed("--receipts")
    recorded = find_recorded(run, address)
    name, tape = load_sound(recorded)
    by = None if recorded.store is None else recorded.store.submitter(name)
    receipts = make_receipts(name, tape, require_signer(), NOBODY if by is None else f"{NOBODY}:{by}")
    return output.write_file(_encode(receipts), target or f"{name}.receipts.json", as_json=as_json, told={"run": name})


def _encode(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
