"""The times for which waiting runs wait, so that a server can find those that have come."""

from typing import Final

from engine_shim.store.database import Database

TABLE: Final = "run_timers"
_SAVE = f"INSERT INTO {TABLE} VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET due = excluded.due"


def read_due(database: Database, run: str) -> str | None:
    """Return when the earliest wait of a run ends, in ISO 8601, UTC; None without one."""
    found = database.rows(TABLE, f"SELECT due FROM {TABLE} WHERE run = ?", run)
    return found[0][0] if found else None


def save_due(database: Database, run: str, due: str | None) -> None:
    """Note when the earliest wait of a run ends."""
    if read_due(database, run) != due:
        with database.writing(f"due {run}") as db:
            db.execute(_SAVE, (run, due))
