"""What runs cost on each engine and store, side by side: runs and steps a second, CPU of our processes and of servers.

    python tests/bench/cluster.py [--seconds 4] [--workers 1,2,4] [--engines process,temporal,hand]
                                  [--stores sqlite,postgres] [--flows agent,flow] [--latency MS]

A step is a call of a model that answers at once, or of a tool that costs nothing. `agent` is a workflow with one agent
(11 steps), `flow` is a chain of ten tools. Each worker has 16 runs in flight. On the engine `process` workers drive
runs themselves; on `temporal` one more process hands the runs in and follows them, and counts as ours; `hand` is the
same runs as workflows written for Temporal by hand, without a store. An event is one of Temporal's history. PostgreSQL
and
Temporal's development server are real ones on this machine, and share its cores; PostgreSQL does not wait for the disk,
unless `--fsync`, and is so many milliseconds away in each direction as `--latency` says. Trust ratios within one table;
on a busy machine, the CPU columns.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from statistics import mean
from time import perf_counter

from temporalio.client import Client

sys.path.insert(0, str(Path(__file__).parents[1]))

from cluster_host import STEPS
from cpu_of import cpu_of_tree

from support.bad_link import BadLink, bad_link
from support.postgres_server import Postgres, real_postgres
from support.temporal.fleet import Server

IN_FLIGHT = 16
PROGRAM = str(Path(__file__).with_name("cluster_host.py"))
BY_HAND = str(Path(__file__).with_name("cluster_by_hand.py"))
NUMBERS = count()


@dataclass(frozen=True)
class Place:
    """Where runs are driven and stored: a Temporal server where there is one, and a PostgreSQL server."""

    folder: Path
    is_by_hand: bool
    temporal: Server | None
    postgres: Postgres | None
    link: BadLink | None = None

    def new_store(self) -> str:
        """The address of an empty store."""
        name = f"bench_{next(NUMBERS)}"
        if self.postgres is None:
            return str(self.folder / f"{name}.db")
        url = self.postgres.new_database(name)
        return url if self.link is None else url.replace(f":{self.postgres.port}/", f":{self.link.port}/")


@dataclass(frozen=True)
class Cost:
    """What so many runs took: seconds of wall and CPU, transactions of PostgreSQL, and events of a run's history."""

    runs: int
    wall: float
    ours: float
    postgres: float
    temporal: float
    transactions: int
    events: float


def transactions(store: str) -> int:
    """How many a database has seen; none for a file."""
    if not store.startswith("postgres"):
        return 0
    import psycopg

    with psycopg.connect(store, autocommit=True) as db:
        found = db.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert found is not None
    return int(found[0])


@contextmanager
def program(*words: str) -> Iterator["subprocess.Popen[str]"]:
    pipe, argv = subprocess.PIPE, [sys.executable, *words]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "a process of the bench has died"
    return line.strip()


def measure(place: Place, flow: str, workers: int, seconds: float) -> Cost:
    """What runs cost with so many workers."""
    store, queue = place.new_store(), f"bench-{next(NUMBERS)}"
    words = [store, flow, str(seconds)]
    with ExitStack() as stack:
        if place.temporal is None:
            drivers = [stack.enter_context(program(PROGRAM, "drive", *words, str(IN_FLIGHT))) for _ in range(workers)]
            ours = drivers
        else:
            where = [place.temporal.address, queue]
            file, stored = (BY_HAND, []) if place.is_by_hand else (PROGRAM, [store])
            ours = [stack.enter_context(program(file, "work", *stored, *where)) for _ in range(workers)]
            more = [flow, str(seconds), str(IN_FLIGHT * workers), *where]
            drivers = [stack.enter_context(program(file, "submit", *stored, *more))]
            ours += drivers
        for each in drivers:
            read(each)
        before, began = _state(place, ours, store), perf_counter()
        for each in drivers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        runs = sum(int(read(each)) for each in drivers)
        wall, after = perf_counter() - began, _state(place, ours, store)
    cpu = [late - early for early, late in zip(before, after, strict=True)]
    events = asyncio.run(events_of_run(place.temporal.address, queue)) if place.temporal else 0.0
    return Cost(runs, wall, cpu[0], cpu[1], cpu[2], round(cpu[3]), events)


async def events_of_run(address: str, queue: str) -> float:
    """How many events the histories of the runs on a queue have, on average."""
    client = await Client.connect(address)
    query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Completed'"
    return mean([each.history_length async for each in client.list_workflows(query)])


def _state(place: Place, ours: "list[subprocess.Popen[str]]", store: str) -> tuple[float, float, float, int]:
    postgres = cpu_of_tree(place.postgres.process.pid) if place.postgres else 0.0
    temporal = cpu_of_tree(place.temporal.pid) if place.temporal else 0.0
    return sum(cpu_of_tree(each.pid) for each in ours), postgres, temporal, transactions(store)


def row(engine: str, store: str, flow: str, workers: int, cost: Cost) -> str:
    steps = cost.runs * STEPS[flow]
    cpu = [f"{seconds * 1000 / steps:10.2f}" for seconds in (cost.ours, cost.postgres, cost.temporal)]
    counts = f"{cost.transactions / steps:10.2f}{cost.events / STEPS[flow]:10.2f}"
    rates = f"{cost.runs / cost.wall:9.1f}{steps / cost.wall:9.0f}"
    return f"{engine:<10}{store:<10}{flow:<8}{workers:>3}{rates}{''.join(cpu)}{counts}"


def words_of(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--workers", type=words_of, default=["1", "2", "4"])
    parser.add_argument("--engines", type=words_of, default=["process", "temporal"])
    parser.add_argument("--stores", type=words_of, default=["sqlite", "postgres"])
    parser.add_argument("--flows", type=words_of, default=["agent", "flow"])
    parser.add_argument("--fsync", action="store_true", help="PostgreSQL waits for the disk at each commit")
    parser.add_argument("--latency", type=float, default=0.0, help="how far PostgreSQL is away, in milliseconds")
    options = parser.parse_args()
    print(f"{'':31}{'a second':>18}{'CPU ms a step':>30}{'a step':>20}")
    rates = f"{'runs':>9}{'steps':>9}{'ours':>10}{'postgres':>10}{'temporal':>10}{'commits':>10}{'events':>10}"
    print(f"{'engine':<10}{'store':<10}{'flow':<8}{'n':>3}{rates}", flush=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fsync = {"fsync": "on"} if options.fsync else {}
        server = "postgres" in options.stores and stack.enter_context(real_postgres(max_connections=100, **fsync))
        link = stack.enter_context(bad_link(server.port)) if server and options.latency else None
        if link is not None:
            link.latency = options.latency / 1000
        temporal = None
        if {"temporal", "hand"} & {*options.engines}:
            temporal = Server(folder / "temporal")
            stack.callback(temporal.kill)
        for engine, flow, store, workers in product(options.engines, options.flows, options.stores, options.workers):
            postgres = server if store == "postgres" else None
            place = Place(folder, engine == "hand", None if engine == "process" else temporal, postgres, link)
            cost = measure(place, flow, int(workers), options.seconds)
            print(row(engine, store, flow, int(workers), cost), flush=True)


if __name__ == "__main__":
    main()
