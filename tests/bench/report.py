"""What the auditor's report costs: CPU and selects for each run, and the most memory that Python had.

    python tests/bench/report.py [RUNS ...]

The runs are copies of one run of an agent with two steps, chained anew (1,000 and 10,000 of them). In the second row of
each the older half was under another policy, so that the newest one is tried on as many of them as a report tries.
"""

import sqlite3
import sys
import tempfile
import time
import tracemalloc
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `support`, as a program that is no test
sys.path.insert(0, str(Path(__file__).parent))

from big_store import A_BATCH, ID, Copier

from agent_core.models import ScriptedModel
from engine_shim import Engine, load_workflow
from engine_shim.report.build import build_report
from engine_shim.report.report import Report
from engine_shim.store.entries import ALL
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action, final
from utools import Tool, ToolRegistry

RUNS = (1_000, 10_000)
AGENT = {"model": "m", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Where is order 17?"}
FLOW = {"id": "desk", "nodes": [{"tool": "agent_core", "config": AGENT}]}
NOW, THEN = b'"max_steps":5', b'"max_steps":6'


class PolicyCopier(Copier):
    """Copies a run so that those below a number were under another policy."""

    changed = 0

    def _copy_rows(self, run: str, rows: list[Any]) -> tuple[str, int]:
        kept = self._rows
        if run < ID.format(self.changed):
            self._rows = [(strand, n, data.replace(NOW, THEN)) for strand, n, data in kept]
        try:
            return super()._copy_rows(run, rows)
        finally:
            self._rows = kept


def make_store(path: Path, runs: int, changed: int) -> None:
    """Make a store of so many runs, of which the first `changed` were under another policy."""
    look = Tool("look", "Looks.", {"type": "object"}, lambda args, context: "In Bonn.", effect="read")
    store = SqliteRunStore(path)
    store.save_submission(ID.format(0), "caller")
    model = ScriptedModel([action("look", q="17"), final("In Bonn.")])
    Engine(ToolRegistry([look]), store=store, model=model).run_sync(load_workflow(FLOW), run_id=ID.format(0))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        copier = PolicyCopier(db)
        copier.changed = changed
        numbers = iter(range(1, runs))
        while batch := list(islice(numbers, A_BATCH)):
            db.execute("BEGIN")
            copier.copy(batch)
            db.execute("COMMIT")


def count_selects(path: Path) -> tuple[Report, int]:
    """Return a report, and how many selects it took."""
    found: list[str] = []
    connect = sqlite3.connect

    def open_watched(*args: Any, **options: Any) -> sqlite3.Connection:
        db = connect(*args, **options)
        db.set_trace_callback(lambda text: found.append("") if text.startswith("SELECT") else None)
        return db

    sqlite3.connect = open_watched  # type: ignore[assignment]
    try:
        with closing(SqliteRunStore(path)) as store:
            return build_report(store, ALL), len(found)
    finally:
        sqlite3.connect = connect


def measure(path: Path) -> tuple[float, float]:
    """Return the CPU seconds of a report, and the most megabytes that Python had for another one."""
    with closing(SqliteRunStore(path)) as store:
        began = time.process_time()
        build_report(store, ALL)
        seconds = time.process_time() - began
        tracemalloc.start()
        build_report(store, ALL)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return seconds, peak / 1e6


def main() -> None:
    sizes = [int(each) for each in sys.argv[1:]] or RUNS
    print(f"{'runs':>7} {'changed':>8} {'tried':>6} {'ms a run':>9} {'selects':>8} {'a run':>6} {'peak MB':>8}")
    for runs in sizes:
        for changed in (0, runs // 2):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "runs.db"
                make_store(path, runs, changed)
                report, selects = count_selects(path)
                seconds, peak = measure(path)
            assert report.runs == runs
            assert report.faults.rows == []
            tried = sum(each.runs for each in report.effects.rows)
            numbers = f"{1000 * seconds / runs:9.2f} {selects:8,} {selects / runs:6.2f} {peak:8.1f}"
            print(f"{runs:7,} {changed:8,} {tried:6,} {numbers}")


if __name__ == "__main__":
    main()
