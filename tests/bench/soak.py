"""Runs kept in flight for minutes at a real host: nothing lost or done twice, and how memory and descriptors go.

    python tests/bench/soak.py [--seconds 300] [--in-flight 50] [--engine process|temporal] [--workers 1]
                               [--store postgres|sqlite]

Each run asks a model twice, looks four names up and ships them: ten calls, each of which takes a tenth of a second. A
client that is refused, since the host has as many runs as it takes, comes again after as long as it is told. Then all
runs are verified, and what the model and the tools have counted is compared with what was submitted.

With `--in-flight 2000` the table shows back-pressure: what one host does with more than it takes.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic

import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.cluster import STEPS, Cluster, Host, cluster, counting_model
from support.postgres_server import real_postgres
from support.temporal.fleet import Server

RESTS = ("completed", "failed", "cancelled", "waiting")
PATIENCE_S = 600.0


@dataclass
class Tally:
    """What became of the runs that were handed in."""

    names: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    refused: int = 0


@dataclass
class Sample:
    """A process at one moment: resident megabytes, descriptors, threads."""

    at: float
    memory: float
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int, at: float) -> "Sample":
        proc = Path(f"/proc/{pid}")
        pages = int((proc / "statm").read_text().split()[1])
        threads, descriptors = len(os.listdir(proc / "task")), len(os.listdir(proc / "fd"))
        return cls(at, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, descriptors, threads)


async def keep_one_going(client: httpx2.AsyncClient, number: int, end: float, tally: Tally) -> None:
    """Hand in one run after another, each when the one before it rests."""
    count = 0
    while monotonic() < end:
        name, began = f"n{number}-{count}", monotonic()
        answer = await submit(client, name, tally)
        tally.names.append(name)
        view = answer.json()
        while view["status"] not in RESTS:
            await asyncio.sleep(0.25)
            view = (await client.get(f"/runs/{view['run_id']}")).json()
        tally.statuses[view["status"]] += 1
        tally.seconds.append(monotonic() - began)
        count += 1


async def submit(client: httpx2.AsyncClient, name: str, tally: Tally) -> httpx2.Response:
    """The answer to a run that was taken."""
    external = {"name": name, "steps": STEPS}
    while True:
        answer = await client.post(
            "/workflows/errand/runs", json={"external": external}, headers={"Idempotency-Key": name}
        )
        if answer.status_code not in (429, 503):
            assert answer.status_code in (200, 202), answer.text
            return answer
        tally.refused += 1
        await asyncio.sleep(float(answer.headers["retry-after"]))


async def load(url: str, in_flight: int, seconds: float) -> Tally:
    """Keep so many runs in flight for so long, and wait for the last of them."""
    tally, end = Tally(), monotonic() + seconds
    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with (
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits) as client,
        asyncio.TaskGroup() as all_,
    ):
        for number in range(in_flight):
            all_.create_task(keep_one_going(client, number, end, tally))
    return tally


async def watch(pids: dict[str, int], every: float, samples: dict[str, list[Sample]]) -> None:
    """Look at the processes now and then, until the task is cancelled."""
    began = monotonic()
    while True:
        await asyncio.sleep(every)
        for name, pid in pids.items():
            samples[name].append(Sample.of(pid, monotonic() - began))


async def measure(
    host: Host, pids: dict[str, int], in_flight: int, seconds: float
) -> tuple[Tally, dict[str, list[Sample]]]:
    samples: dict[str, list[Sample]] = {name: [] for name in pids}
    watching = asyncio.create_task(watch(pids, seconds / 40, samples))
    tally = await load(host.url, in_flight, seconds)
    watching.cancel()
    return tally, samples


def faults(hosts: Cluster, tally: Tally) -> list[str]:
    """What is wrong: runs that did not come to their end, calls that are missing or were made twice."""
    found = [f"{count} runs are {status}" for status, count in tally.statuses.items() if status != "completed"]
    wanted = {f"{name}-{step}" for name in tally.names for step in STEPS}
    asked = {f"{name} {word}" for name in tally.names for word in ("ask", "end")}
    for what, calls, names in [
        ("look", [name for name, _ in hosts.begun("look")], wanted),
        ("ship", [name for name, _ in hosts.begun("ship")], wanted),
        ("the model", hosts.model.asked, asked),
    ]:
        made = Counter(calls)
        found += [f"{what}: {name} {count} times" for name, count in made.items() if count > 1]
        found += [f"{what}: {name} is missing" for name in names - made.keys()]
    return found


def growth(samples: list[Sample]) -> tuple[float, int]:
    """By how many percent memory grew from the second quarter to the last, and by how many the descriptors."""
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    memory = [median(each.memory for each in part) for part in (early, late)]
    descriptors = [round(median(each.descriptors for each in part)) for part in (early, late)]
    return (memory[1] / memory[0] - 1) * 100, descriptors[1] - descriptors[0]


def report(tally: Tally, samples: dict[str, list[Sample]], seconds: float, wrong: list[str]) -> None:
    times = sorted(tally.seconds)
    rate = len(times) / (seconds + times[-1])
    tail = f"median {median(times):.2f} s, slowest {times[-1]:.2f} s, {tally.refused} refusals"
    print(f"{len(times)} runs, {rate:.1f} a second, {tail}")
    for name, taken in samples.items():
        for each in taken[:: max(1, len(taken) // 10)]:
            told = f"{each.memory:8.1f} MB {each.descriptors:5} descriptors {each.threads:4} threads"
            print(f"{name:<10}{each.at:8.1f} s {told}")
        memory, descriptors = growth(taken)
        print(f"{name:<10}from the second quarter to the last: {memory:+.1f} % memory, {descriptors:+} descriptors")
    for fault in wrong[:20]:
        print(fault)
    print(f"{len(wrong)} faults")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--in-flight", type=int, default=50)
    parser.add_argument("--engine", choices=["process", "temporal"], default="process")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = str(folder / "runs.db")
        if options.store == "postgres":
            store = stack.enter_context(real_postgres(max_connections=100)).make_database()
        keys = {}
        if options.engine == "temporal":
            server = Server(folder / "temporal")
            stack.callback(server.kill)
            keys = {"engine": "temporal", "temporal": {"address": server.address}}
        model = stack.enter_context(counting_model())
        hosts = stack.enter_context(cluster(folder / "host", store, model=model, **keys))
        host = hosts.serve()
        pids = {"host": host.process.pid}
        for number in range(options.workers if keys else 0):
            pids[f"worker {number + 1}"] = hosts.start_worker().pid
        tally, samples = asyncio.run(measure(host, pids, options.in_flight, options.seconds))
        wrong = faults(hosts, tally)
        print(hosts.run_command("verify", "--all", "--store", store).splitlines()[0])
        report(tally, samples, options.seconds, wrong)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
