"""The command export --records: some records of a run, with what proves them to a stranger."""

import json
from collections.abc import Sequence

import typer

from agent_core.audit.verify import verify
from agent_core.errors import DefinitionError, JournalError
from agent_core.evidence.ed25519 import check_installed
from agent_core.journal.chain import check_chains
from agent_core.journal.record import Tape
from engine_shim.cli import output
from engine_shim.cli.evidence.ledger import require_signer
from engine_shim.cli.records.recorded import Recorded, find_recorded
from engine_shim.store.excerpts import WANTED, write_excerpt
from utools.databases.store_address import StoreAddress


def export_excerpt(
    run: str, wanted: Sequence[str], address: StoreAddress | None, target: str | None, *, as_html: bool, as_json: bool
) -> int:
    """Write an excerpt of a run, and say where it is. BadParameter for records that it does not have."""
    check_installed("--records")
    recorded = find_recorded(run, address)
    name, tape = load_sound(recorded)
    signer = None if recorded.store is None else require_signer()
    try:
        text = write_excerpt(name, tape, wanted, recorded.store, signer)
    except DefinitionError as error:
        if error.where == WANTED:
            raise typer.BadParameter(f"--records {error.value}: {error.message}") from None
        raise
    told = {"run": name, "records": len(json.loads(text)["records"])}
    if as_html:
        from engine_shim.web.run_page import write_excerpt_page  # which JSON does without

        text = write_excerpt_page(name, text)
    usual = f"{name}.excerpt.html" if as_html else f"{name}.json"  # the page of the whole run is `name.html`
    return output.write_file(text, target or usual, as_json=as_json, told=told)


def load_sound(recorded: Recorded) -> tuple[str, Tape]:
    """Return a run's id and rows, of which each is as it was written, and can be read. JournalError for a run that is
    damaged; what `check_chains` raises for one that was erased, or that only a newer version can read."""
    name, tape = recorded.load()
    found = verify(recorded.source, run_id=recorded.run_id)
    if found.first_bad:
        raise JournalError(f"the run {name!r} is damaged, and nothing is said of it to others: {found.why}")
    return name, check_chains(name, tape)
