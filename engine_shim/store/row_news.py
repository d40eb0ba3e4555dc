"""What is new in a store, for those who follow many of its runs: by its newest rows, whatever the store's size."""

from collections.abc import Collection
from typing import Final

from agent_core.statuses import ListedStatus, read_status
from engine_shim.store.database import Database

NEWEST: Final = 4096
"""So many rows of a store are looked through for those that a follower has not seen."""
_LATEST: Final = f"SELECT run, seq FROM rows ORDER BY seq DESC LIMIT {NEWEST}"
_LOOK: Final = f"""SELECT workflow_runs.run, status, coalesce(last, 0) FROM workflow_runs
    LEFT JOIN (SELECT run, max(seq) AS last FROM ({_LATEST}) AS latest GROUP BY run) AS newest
    ON newest.run = workflow_runs.run"""
_NEWS: Final = f"""SELECT run, max(seq)
    FROM (SELECT run, seq FROM rows WHERE seq > ? ORDER BY seq DESC LIMIT {NEWEST}) AS news GROUP BY run"""


def poll_status(database: Database, runs: Collection[str]) -> dict[str, tuple[ListedStatus, int]]:
    """Return what `RunStore.poll_status` says."""
    dialect = database.dialect
    found = database.rows(
        "workflow_runs", f"{_LOOK} WHERE workflow_runs.run IN {dialect.values}", dialect.pack([*runs])
    )
    return {run: (read_status(status), last) for run, status, last in found}


def list_news(database: Database, after: int) -> dict[str, int]:
    """Return what `RunStore.list_news` says."""
    return dict(database.rows("rows", _NEWS, after))
