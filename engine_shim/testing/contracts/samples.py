"""What run stores are tried with: a time that is set by hand, entries, rows, and drivers that have ended."""

import os
import subprocess
import sys
from typing import Final

from agent_core.journal.record import chain_row, genesis
from agent_core.statuses import ListedStatus
from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import RunStore

NOON: Final = 43_200.0
OTHER: Final = "elsewhere:1:aa"
"""A driver on another machine."""


class ManualClock:
    """A time in seconds that is set by hand: a store calls it for the time, a rule sets `now`."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def entry(run: str, started_at: str = "2025-01-01", status: ListedStatus = "running") -> RunEntry:
    """Return the entry of a run."""
    return RunEntry(run, "flow", "1", status, started_at, "/base")


def ended_driver() -> str:
    """Return the name of a driver whose process was here and has ended."""
    code = "from engine_shim.store.driver_identity import new_driver; print(new_driver())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip()


def journaled(store: RunStore, run: str) -> None:
    """Give a run its first row."""
    store.journal.append(run, [chain_row("flow", 0, genesis(run, "flow"), {"kind": "run_started"})])
