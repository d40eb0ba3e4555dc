"""A SQLite store with very many runs, and how long a reader of it waits.

    python tests/bench/big_store.py [--runs 100,10000,1000000] [--rounds 20]

One run of one tool is driven; the others are copies of its records under their own ids, chained anew, each with its
entry in the list, its events and its entry in the ledger, as if each had been handed to a server. Then a server starts
on the store, in which a few runs were left in their midst: shown is when they have ended, and how long its answers take
that the web page asks for. All are p50 and p95 in milliseconds.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `support`, as a program that is no test

from agent_core.audit.verify import verify
from agent_core.journal.record import genesis, link, run_head
from engine_shim import Engine, SqliteRunStore
from engine_shim.store.entries import RunFilter
from engine_shim.store.index import RunIndex
from engine_shim.store.journal_runs import list_runs
from engine_shim.store.ledger import GENESIS, read_ledger
from engine_shim.store.run_list import outline
from engine_shim.store.search import RunQuery, RunSearch
from support.served_host import Served, served
from utools import default_registry

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
ID = "run-{:08d}"
A_BATCH, TURNS = 20_000, 10
"""Runs that are written at once; runs that are turns of one conversation."""
LEFT = ("open-0", "open-1", "open-2", "open-3", "open-4")
"""Runs that a server has left in their midst."""
FLOW = {"id": "desk", "nodes": [{"tool": "formatter", "config": {"template": "Hello, all of you."}}]}


async def drive_one(path: Path) -> None:
    engine = Engine(default_registry(), store=SqliteRunStore(path))
    assert (await engine.run(FLOW, run_id=ID.format(0))).status == "completed"
    engine.store.save_submission(ID.format(0), "caller")
    await engine.close()


def make_store(path: Path, runs: int) -> None:
    """Make a store of so many runs, one a second."""
    asyncio.run(drive_one(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000")
        copier = Copier(db)
        numbers = iter(range(1, runs))
        while batch := list(islice(numbers, A_BATCH)):
            db.execute("BEGIN")
            copier.copy(batch)
            db.execute("COMMIT")
        leave_runs(db)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def leave_runs(db: sqlite3.Connection) -> None:
    """Add the runs that were left: only their first record is there."""
    first = ID.format(0)
    (old,) = db.execute("SELECT data FROM rows WHERE run = ? AND strand = 'flow' AND n = 0", (first,)).fetchone()
    (base,) = db.execute("SELECT base FROM workflow_runs WHERE run = ?", (first,)).fetchone()
    for run in LEFT:
        data = old.replace(first.encode(), run.encode())
        row = (run, "flow", 0, link(genesis(run, "flow"), data), data)
        db.execute("INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)", row)
        entry = (run, FLOW["id"], "1", "running", FIRST.isoformat(), base)
        db.execute("INSERT INTO workflow_runs VALUES (?, ?, ?, ?, ?, ?)", entry)
        db.execute("INSERT INTO run_submissions VALUES (?, 'caller')", (run,))
        db.execute("INSERT INTO run_hosts VALUES (?, 1, '')", (run,))


class Copier:
    """Copies the first run of a store under other ids."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db, run = db, ID.format(0)
        self._old = run.encode()
        self._rows = db.execute("SELECT strand, n, data FROM rows WHERE run = ? ORDER BY seq", (run,)).fetchall()
        self._seq, self._ledger = db.execute("SELECT max(seq) FROM rows").fetchone()[0], self._last_of_ledger()
        (self._ended,) = db.execute("SELECT data FROM ledger WHERE run = ?", (run,)).fetchone()
        self._beside = {
            table: db.execute(f"SELECT * FROM {table} WHERE run = ?", (run,)).fetchall()
            for table in ("workflow_runs", "run_hosts", "run_submissions")
        }
        self._events = db.execute("SELECT run, status, records, at FROM run_events WHERE run = ?", (run,)).fetchall()

    def _last_of_ledger(self) -> tuple[int, bytes]:
        found: tuple[int, bytes] | None = self._db.execute("SELECT seq, hash FROM ledger ORDER BY seq DESC").fetchone()
        return found or (0, GENESIS)

    def copy(self, numbers: list[int]) -> None:
        rows: list[Any] = []
        ledger: list[Any] = []
        for number in numbers:
            run = ID.format(number)
            head, count = self._copy_rows(run, rows)
            ledger.append(self._copy_entry(run, head, count))
        self._db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._db.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", ledger)
        self._copy_beside(numbers)

    def _copy_rows(self, run: str, rows: list[Any]) -> tuple[str, int]:
        heads: dict[str, bytes] = {}
        counts: dict[str, int] = {}
        for strand, n, old in self._rows:
            data = old.replace(self._old, run.encode())
            if b'"closes":' in data:
                closes = [[path, heads[path].hex(), counts[path]] for path, _, _ in orjson.loads(data)["closes"]]
                data = orjson.dumps({**orjson.loads(data), "closes": closes})
            heads[strand] = link(heads.get(strand) or genesis(run, strand), data)
            counts[strand], self._seq = n + 1, self._seq + 1
            rows.append((self._seq, run, strand, n, heads[strand], data))
        own = [(path, head, counts[path]) for path, head in heads.items() if path not in ("seal", "control")]
        return run_head(own), sum(count for _, _, count in own)

    def _copy_entry(self, run: str, head: str, count: int) -> tuple[int, str, bytes, bytes]:
        data = orjson.dumps({**orjson.loads(self._ended), "run": run, "head": head, "count": count})
        seq, previous = self._ledger
        self._ledger = seq + 1, link(previous, data)
        return seq + 1, run, self._ledger[1], data

    def _copy_beside(self, numbers: list[int]) -> None:
        for table, found in self._beside.items():
            for _, *values in found:
                marks = ", ".join("?" for _ in (0, *values))
                at = {
                    name: index for index, (_, name, *_) in enumerate(self._db.execute(f"PRAGMA table_info({table})"))
                }
                self._db.executemany(
                    f"INSERT INTO {table} VALUES ({marks})", (_of_run(number, at, values) for number in numbers)
                )
        self._db.executemany(
            "INSERT INTO run_turns VALUES (?, ?, ?)",
            ((ID.format(number), "clerk", f"c-{number // TURNS}") for number in numbers),
        )
        for _, *event in self._events:
            self._db.executemany(
                "INSERT INTO run_events (run, status, records, at) VALUES (?, ?, ?, ?)",
                ((ID.format(number), *event) for number in numbers),
            )


def _of_run(number: int, at: dict[str, int], values: list[Any]) -> list[Any]:
    row = [ID.format(number), *values]
    if "started_at" in at:
        row[at["started_at"]] = (FIRST + timedelta(seconds=number)).isoformat()
    return row


def readings(path: Path, runs: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a reader asks, by name."""
    store = SqliteRunStore(path)
    search, index = RunSearch(store), RunIndex(store)
    middle, last = ID.format(runs // 2), ID.format(runs - 1)
    half = (FIRST + timedelta(seconds=runs // 2)).isoformat()

    def page(**wanted: Any) -> Callable[[], Any]:
        return lambda: search.find(RunQuery(RunFilter(limit=50, **wanted)))

    yield "list of the newest 50, by the command line", lambda: list_runs(store, RunFilter(limit=50))
    yield "its first page", page()
    yield "a page in the middle", page(before=(half, middle))
    yield "the page of a status that none has", page(statuses=("failed",))
    yield "the page of a workflow that none has", page(workflow="other")
    yield "the runs since an hour ago", page(since=FIRST + timedelta(seconds=max(0, runs - 3600)))
    yield "a text that is in the newest runs", lambda: search.find(RunQuery(RunFilter(limit=50), text="Hello"))
    yield "outline of a run", lambda: outline(store, middle)
    yield "a run, loaded and verified", lambda: index.load_intact(middle)
    yield "the same, as `verify` does", lambda: verify(store.journal, run_id=middle)
    yield "ids by their beginning", lambda: store.find(last[:-1], limit=20)
    yield "statuses counted", lambda: store.count_statuses("", ("pending", "running", "waiting", "paused"))
    yield "runs left behind, as a server asks", lambda: store.list_orphaned("")
    yield "runs whose time has come", lambda: store.list_due("", "2027-01-01T00:00:00+00:00")
    yield "the same list, once a server has noted", lambda: list_runs(store, RunFilter(limit=50))
    yield "the same of a status", lambda: list_runs(store, RunFilter(limit=50, statuses=("failed",)))
    yield "head of the ledger", lambda: read_ledger(store.database)
    yield "conversations", lambda: search.find_newest_turns(50)


def requests(host: Served, runs: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What the web page asks for, by name."""
    run, get = f"/runs/{ID.format(runs // 2)}", host.client.get
    page = get("/runs", params={"limit": 100}).json()

    def asked(path: str, **params: Any) -> Callable[[], Any]:
        return lambda: get(path, params=params).raise_for_status()

    yield "the page of runs", asked("/runs", limit=100)
    yield "its next page", asked("/runs", limit=100, before=page["next"])
    yield "the page of a status that none has", asked("/runs", limit=100, status="failed")
    yield "the page of a tool", asked("/runs", limit=100, tool="formatter")
    yield "the page of a text", asked("/runs", limit=100, text="Hello")
    yield "a run", asked(run)
    yield "its journal", asked(f"{run}/journal")
    yield "whether it is whole", asked(f"{run}/verify")
    yield "its events, to their end", asked(f"{run}/events")
    yield "the conversations", asked("/agent/conversations")
    yield "the metrics", asked("/metrics")


def wait_recovered(host: Served, start: float) -> float:
    """Return the milliseconds from the start of a server until it has ended the runs that were left."""
    while {status for status, _ in host.store.poll_status(LEFT).values()} != {"completed"}:
        assert perf_counter() - start < 60, host.store.poll_status(LEFT)
        time.sleep(0.005)
    return (perf_counter() - start) * 1000


def measure(asked: Iterator[tuple[str, Callable[[], Any]]], rounds: int) -> Iterator[tuple[str, float, float, float]]:
    """Yield (name, the first time, p50, p95) in milliseconds."""
    for name, read in asked:
        times = []
        for _ in range(rounds + 1):
            start = perf_counter()
            read()
            times.append((perf_counter() - start) * 1000)
        cuts = quantiles(times[1:], n=20)
        yield name, times[0], cuts[9], cuts[18]


def show(found: Iterator[tuple[str, float, float, float]]) -> None:
    for name, first, middle, worst in found:
        print(f"  {name:45}{first:10.1f} first{middle:10.1f} p50{worst:10.1f} p95", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=lambda text: [int(each) for each in text.split(",")], default=[100, 10_000])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    for runs in options.runs:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.db"
            start = perf_counter()
            make_store(path, runs)
            size, seconds = path.stat().st_size / 1e6, perf_counter() - start
            print(f"{runs} runs: {size:.0f} MB, made in {seconds:.0f} s", flush=True)
            show(measure(readings(path, runs), options.rounds))
            start = perf_counter()
            with served(Path(folder) / "host", store=path) as host:
                ended = wait_recovered(host, start)
                print(f"  {'a server, to the end of what was left':45}{ended:10.1f} once", flush=True)
                show(measure(requests(host, runs), options.rounds))


if __name__ == "__main__":
    main()
