"""The URLs that callers named for their runs, and the deliveries to them, which are added with each event of a run."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from engine_shim.store.clock import StoreClock
from engine_shim.store.database import Database
from utools.databases.transaction import Transaction

if TYPE_CHECKING:
    from engine_shim.store.content_keys import ContentKeys

TABLE: Final = "run_callbacks"
HOOK: Final = "callbacks"
"""The name of all callbacks among the webhooks of the deliveries."""
_ADD: Final = f"""INSERT INTO webhook_deliveries
    SELECT '{HOOK}', seq, run_events.run, 0, ? FROM run_events JOIN {TABLE} ON {TABLE}.run = run_events.run
    WHERE run_events.run = ? AND status = ? AND records = ?"""
_ADD_EVENT: Final = "INSERT INTO run_events (run, status, records, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_SAVE: Final = f"INSERT INTO {TABLE} (run, url, decides) VALUES (?, ?, ?)"
_AGAIN: Final = f"""INSERT INTO webhook_deliveries
    SELECT '{HOOK}', seq, run_events.run, 0, ?
    FROM run_events JOIN workflow_runs
        ON workflow_runs.run = run_events.run AND workflow_runs.status = run_events.status
    WHERE run_events.run = ? ORDER BY seq DESC LIMIT 1
    ON CONFLICT (hook, event) DO UPDATE SET attempts = 0, due = excluded.due"""


class RunCallback(NamedTuple):
    """Where a run's caller wants to be told of it; whether the caller `decides`, and so gets links to decide by."""

    url: str
    decides: bool


def read_callback(contents: "ContentKeys", run: str) -> RunCallback | None:
    """Return the callback of a run; None without one."""
    found = contents.database.rows(TABLE, f"SELECT url, decides FROM {TABLE} WHERE run = ?", run)
    if not found:
        return None
    url = contents.decrypt_text(run, TABLE, found[0][0])
    return None if url is None else RunCallback(url, bool(found[0][1]))


def save_callback(contents: "ContentKeys", run: str, callback: RunCallback) -> None:
    """Note the callback of a run that is about to begin; the first one stays."""
    url = contents.encrypt_text(run, TABLE, callback.url)
    with contents.database.writing(f"callback {run}") as db:
        db.execute(f"{_SAVE} ON CONFLICT (run) DO NOTHING", (run, url, int(callback.decides)))


def replace_callback(contents: "ContentKeys", run: str, callback: RunCallback, now: float) -> None:
    """Note another callback of a run: it is told at once of how the run is, if the run waits or has ended."""
    if read_callback(contents, run) == callback:
        return
    url = contents.encrypt_text(run, TABLE, callback.url)
    with contents.database.writing(f"callback {run}") as db:
        replace = f"{_SAVE} ON CONFLICT (run) DO UPDATE SET url = excluded.url, decides = excluded.decides"
        db.execute(replace, (run, url, int(callback.decides)))
        db.execute(_AGAIN, (now, run))


def add_event(database: Database, db: Transaction, run: str, status: str, records: int, clock: StoreClock) -> None:
    """Note what webhooks tell of, and its delivery to the callback of its run, if it has one. Numbers are given in the
    order in which others see the events."""
    database.lock(db, "events")
    event = (run, status, records, datetime.now(UTC).isoformat())
    if db.execute(_ADD_EVENT, event).rowcount > 0:
        db.execute(_ADD, (clock.read(), run, status, records))
