"""read_erasures(): the runs that were erased or deleted, as the ledger has them."""

from dataclasses import dataclass
from datetime import datetime

from agent_core.audit.report.listing import Listing, shorten
from engine_shim.store.database import Reader
from engine_shim.store.entries import parse_time
from engine_shim.store.ledger import ERASED, Entry, walk_entries


@dataclass(frozen=True, slots=True)
class Erasure:
    """A run of which something was erased, with what its entry says about it."""

    run: str
    at: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """A run that was deleted, and the status that it had."""

    run: str
    at: str
    status: str


def read_erasures(database: Reader, since: datetime | None) -> tuple[Listing[Erasure], Listing[Deletion]]:
    """Return what was erased, and which runs were deleted, since a time, as the entries of the ledger have it: they do
    not say of which workflow a run was."""
    erased, deleted = Listing[Erasure](), Listing[Deletion]()
    for entry in walk_entries(database):
        run, at, status = (_text(entry, name) for name in ("run", "at", "status"))
        if since is not None and ((then := parse_time(at)) is None or then < since):
            continue
        if entry["kind"] == ERASED:
            erased.add(Erasure(run, at, _text(entry, "by"), _text(entry, "why")))
        elif entry["kind"] == "deleted":
            deleted.add(Deletion(run, at, status))
    return erased, deleted


def _text(entry: Entry, name: str) -> str:
    value = entry.get(name)
    return "" if value is None else shorten(value)
