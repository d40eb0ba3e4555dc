"""What an operator plans with: how large a store gets, how long backups, proofs, restarts and takeovers take.

    python tests/bench/operate.py [--runs 1000] [--stores sqlite,postgres]

A run has 11 steps: an agent that calls two tools by turns. Commands are processes of their own, and are told with their
seconds of processor, since other times depend on what else the machine does. PostgreSQL does not wait for the disk.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import monotonic, perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from cluster_host import FLOWS, engine
from cpu_of import cpu_of_tree

from engine_shim.store.entries import RunEntry
from engine_shim.store.open import open_store
from support.cluster import Cluster, cluster
from support.postgres_server import Postgres, postgres_programs, real_postgres
from support.temporal_project import COMMAND
from utools.databases.store_address import is_url

AT_ONCE = 20
OPEN = 5000


def timed(work: Callable[[], Any]) -> float:
    """Seconds that something takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def costed(work: Callable[[], Any]) -> str:
    """How long something takes, and the seconds of processor of the processes that it starts."""
    before, seconds, after = getrusage(RUSAGE_CHILDREN), timed(work), getrusage(RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{seconds:.1f} s ({processor:.1f} s of processor)"


def agent_core(*words: str) -> str:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def fill(store: str, runs: int) -> None:
    """Drive so many runs in a store."""
    driving, left = engine(store), iter(range(runs))

    async def drive() -> None:
        for _ in left:
            assert (await driving.run(FLOWS["agent"])).status == "completed"

    await asyncio.gather(*(drive() for _ in range(AT_ONCE)))
    await driving.close()


def measure_store(store: str, runs: int, folder: Path) -> None:
    asyncio.run(fill(store, runs))
    print(f"  {size_of(store) / runs / 1024:.1f} KB a run of 11 steps", flush=True)
    head = agent_core("ledger", "--store", store).split()[1].strip(",")
    proof = costed(lambda: agent_core("verify", "--all", "--store", store, "--ledger", head))
    print(f"  verify --all --ledger: {proof} for {runs} runs", flush=True)
    copy = costed(lambda: agent_core("store", "copy", store, str(folder / "copy.db")))
    print(f"  store copy to a file: {copy} for {runs} runs", flush=True)


def measure_dump(server: Postgres, store: str, folder: Path) -> None:
    programs, dump = postgres_programs(), str(folder / "store.dump")
    target = server.make_database()
    saved = costed(lambda: subprocess.run([programs / "pg_dump", "-Fc", "-f", dump, store], check=True))
    back = costed(lambda: subprocess.run([programs / "pg_restore", "-d", target, dump], check=True))
    size = Path(dump).stat().st_size / 1e6
    print(f"  pg_dump: {saved}, {size:.1f} MB; pg_restore: {back}", flush=True)


def measure_restart(hosts: Cluster) -> None:
    """How long a server takes to serve, and to end; a call under way is let answer."""
    starts, costs, ends = [], [], []
    for _ in range(3):
        begun = perf_counter()
        host = hosts.serve()
        starts.append(perf_counter() - begun)
        costs.append(cpu_of_tree(host.process.pid))
        ends.append(timed(host.end))
    start = f"{median(starts):.1f} s ({median(costs):.1f} s of processor)"
    print(f"  start to first answer: {start}; SIGTERM to exit, idle: {median(ends):.1f} s", flush=True)
    host = hosts.serve()
    host.submit("look", wait=False, name="held", until="never")
    hosts.await_begun("look", "held")
    print(f"  SIGTERM to exit, a call under way that never ends: {timed(host.end):.1f} s", flush=True)


def measure_takeover(hosts: Cluster, machine: str | None) -> None:
    """How long a run of a killed server stands still."""
    other, found = hosts.serve(), []
    for number in range(3):
        host, name = hosts.serve(machine=machine), f"taken-{machine}-{number}"
        host.submit("look", wait=False, name=name, until=name)
        hosts.await_begun("look", name)
        os.kill(host.process.pid, signal.SIGKILL)
        host.process.wait()
        begun = monotonic()
        while [each for each, _ in hosts.begun("look")].count(name) < 2:
            assert monotonic() - begun < 60
        found.append(monotonic() - begun)
        hosts.allow(name)
    other.end()
    where = "another machine" if machine else "the same machine"
    print(f"  kill -9 on {where} until another server goes on: {max(found):.1f} s at most", flush=True)


def measure_scrape(hosts: Cluster) -> None:
    host = hosts.serve()
    with closing(open_store(hosts.store)) as store:
        for number in range(OPEN):
            store.save(RunEntry(f"open-{number}", "w", "1", "waiting", "2026-01-01T00:00:00Z", "."))
    times = [timed(lambda: host.client.get("/metrics")) for _ in range(20)]
    size = len(host.client.get("/metrics").content) / 1024
    print(f"  /metrics beside {OPEN} open runs: {median(times) * 1000:.0f} ms, {size:.0f} KB", flush=True)
    host.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--stores", type=lambda text: text.split(","), default=["sqlite", "postgres"])
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(real_postgres(max_connections=100)) if "postgres" in options.stores else None
        for kind in options.stores:
            print(kind, flush=True)
            (here := folder / kind).mkdir()
            store = server.make_database() if kind == "postgres" and server else str(here / "runs.db")
            measure_store(store, options.runs, here)
            if kind == "postgres" and server:
                measure_dump(server, store, here)
            second = server.make_database() if kind == "postgres" and server else str(here / "served.db")
            hosts = stack.enter_context(cluster(here / "host", second))
            measure_restart(hosts)
            measure_takeover(hosts, None)
            if kind == "postgres":
                measure_takeover(hosts, "another")
            measure_scrape(hosts)


def size_of(store: str) -> int:
    """Bytes of a store."""
    if not is_url(store):
        return sum(path.stat().st_size for path in Path(store).parent.glob("runs.db*"))
    import psycopg

    with psycopg.connect(store) as db:
        row = db.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])


if __name__ == "__main__":
    main()
