"""read_erasures(): the runs that were erased or deleted, as the ledger has them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from agent_core.audit.report.listing import Listing, shorten
from agent_core.outputs import Json
from engine_shim.store.database import Reader
from engine_shim.store.entries import parse_time
from engine_shim.store.ledger import as_bytes

PAGE: Final = 1000
_ENTRIES: Final = f"SELECT seq, data FROM ledger WHERE seq > ? ORDER BY seq LIMIT {PAGE}"
ERASED: Final = "erased"


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
    """Return what was erased, and which runs were deleted, since a time: an entry of the kind or status `erased`, and
    the tombstones. The ledger does not say of which workflow a run was."""
    erased, deleted = Listing[Erasure](), Listing[Deletion]()
    for entry in _read_entries(database):
        run, at, kind, status = (_text(entry, name) for name in ("run", "at", "kind", "status"))
        if since is not None and ((then := parse_time(at)) is None or then < since):
            continue
        if ERASED in (kind, status):
            erased.add(Erasure(run, at, _text(entry, "by"), _text(entry, "why")))
        elif kind == "deleted":
            deleted.add(Deletion(run, at, status))
    return erased, deleted


def _read_entries(database: Reader) -> Iterator[Json]:
    """Yield the entries of the ledger, as far as they are JSON objects; `prove_store` says which are none."""
    last = 0
    while page := database.rows("ledger", _ENTRIES, last):
        last = page[-1][0]
        for _, data in page:
            try:
                entry: Any = orjson.loads(as_bytes(data))
            except orjson.JSONDecodeError:
                continue
            if isinstance(entry, dict):
                yield entry


def _text(entry: Json, name: str) -> str:
    value = entry.get(name)
    return "" if value is None else shorten(value)
