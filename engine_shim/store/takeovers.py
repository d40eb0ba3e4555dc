"""How often in a row servers have taken a run up, each after one that ended in its midst, without a new record."""

from typing import Final

from engine_shim.store.database import Database

MOST: Final = 3
"""So often a run is taken up; then a person has to say that it continues."""
TABLE: Final = "run_takeovers"
_ROWS: Final = "SELECT count(*) FROM rows WHERE run = ? AND strand NOT IN ('control', 'seal')"
_KNOWN: Final = f"SELECT records, taken FROM {TABLE} WHERE run = ?"
_SAVE: Final = f"""INSERT INTO {TABLE} (run, records, taken) VALUES (?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET records = excluded.records, taken = excluded.taken"""


def describe_takeovers(taken: int) -> str:
    """Return why a run that was taken up so often is paused."""
    return (
        f"it was resumed {taken} times in a row, and each time the server ended before it had a new record: one of "
        "its steps may end the server; `resume` continues it"
    )


def read_takeovers(database: Database, run: str) -> int:
    """Return how often the run was taken up since its last record."""
    known, rows = database.rows(TABLE, _KNOWN, run), database.rows("rows", _ROWS, run)
    return int(known[0][1]) if known and rows and known[0][0] == rows[0][0] else 0


def add_takeover(database: Database, run: str) -> None:
    """Note that the run is about to be taken up."""
    with database.writing(f"takeover {run}") as db:
        records = int(db.execute(_ROWS, (run,)).fetchall()[0][0])
        known = db.execute(_KNOWN, (run,)).fetchall()
        taken = int(known[0][1]) + 1 if known and known[0][0] == records else 1
        db.execute(_SAVE, (run, records, taken))


def forget_takeovers(database: Database, run: str) -> None:
    """Note that the run may be taken up anew."""
    if database.rows(TABLE, _KNOWN, run):
        with database.writing(f"takeover {run}") as db:
            db.execute(f"DELETE FROM {TABLE} WHERE run = ?", (run,))
