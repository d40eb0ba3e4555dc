"""find_recorded(): the recorded run that a person names: in a journal file, in an exported page, or in the store."""

from pathlib import Path
from typing import NamedTuple

import typer

from agent_core.journal.record import Tape
from agent_core.journal.source import load_run
from agent_core.journal.store import Journal
from engine_shim.cli.records.exported_page import EXCERPT, PAGE, find_other, unpack_page
from engine_shim.cli.records.run_names import find_run
from engine_shim.cli.store import open_named_store
from engine_shim.errors import RunNotFound
from engine_shim.store.ledger import describe_gone
from engine_shim.store.run_store import DatabaseRunStore
from utools.databases.store_address import StoreAddress

JOURNALS = (".jsonl", ".db", ".sqlite")
"""How the names of journal files end, as a rule."""


class Recorded(NamedTuple):
    """Where a recorded run is. A journal file holds one run, and has neither `run_id` nor `store`."""

    source: Path | Journal
    run_id: str | None = None
    store: DatabaseRunStore | None = None

    def load(self) -> tuple[str, Tape]:
        """Its id and its rows, not yet checked against their chains."""
        return load_run(self.source, self.run_id)


def find_recorded(run: str, address: StoreAddress | None) -> Recorded:
    """Return the run. BadParameter for a journal file that is not there; what `find_run` raises for the store."""
    if (other := find_other(Path(run))) is not None:
        raise typer.BadParameter(f"{run} is {other}")
    if Path(run).is_file():
        return Recorded(unpack_page(Path(run)) if Path(run).suffix == ".html" else Path(run))
    if Path(run).suffix in JOURNALS or Path(run).name != run:
        raise typer.BadParameter(f"there is no journal file {run}")
    if Path(run).suffix in (EXCERPT, PAGE):
        raise typer.BadParameter(f"there is no file {run}")
    store = open_named_store(address)
    found = find_run(run, store)
    if not store.journal.load(found):
        raise RunNotFound(found, describe_gone(store.database, found))
    return Recorded(store.journal, found, store)
