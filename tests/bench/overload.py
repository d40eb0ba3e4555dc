"""Whether runs get through an overload: steps a second of a workflow as ours and as written by hand for Temporal.

    python tests/bench/overload.py [--runs 39] [--workers 2] [--busy 4] [--seconds 60] [--before 20]
                                   [--keys '{"task_timeout": 10}'] … [--against CHECKOUT]

All rows are measured at the same time, on one core, each with a server and workers of its own, so that whatever else
the machine does weighs on all of them alike: trust their ratios. The runs are begun and driven for `--before` seconds.
Then as many processes as `--busy` says compute on the core, all workers are killed, and new ones have to continue every
run from its history. A row says how many steps were made in each quarter of the time, how many a second, when the first
was made, how many tasks of workflows and how many acts timed out, and the CPU of the workers. The figures of time-outs
are those that histories have: what the server tries again by itself is not among them. Each `--keys` is one more row of
ours, with these keys of `temporal:` in agent-core.yaml; `--against` is one more of another checkout.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Barrier

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

sys.path.insert(0, str(Path(__file__).parents[1]))

from cpu_of import cpu_of_tree
from overload_host import QUEUE, run_id

from engine_shim.runs.temporal.settings import workflow_id
from support.temporal.fleet import Server

PROGRAM = str(Path(__file__).with_name("overload_host.py"))
BUSY = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"
TIMEOUTS = {
    "tasks": EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
    "acts": EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
}


@dataclass(frozen=True)
class Variant:
    """One row: a workflow by hand or ours, with keys of the configuration, by the code of a checkout."""

    name: str
    kind: str
    keys: str = "{}"
    checkout: Path = Path(__file__).parents[2]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.checkout)}


@dataclass(frozen=True)
class Passage:
    """What runs did under load: steps in each quarter of the time, and when the first was made."""

    quarters: list[int]
    seconds: float
    first: float | None
    timed_out: Counter[str]
    cpu: float

    def row(self, name: str) -> str:
        first = "-" if self.first is None else f"{self.first:.1f}"
        quarters = "".join(f"{each:7}" for each in self.quarters)
        ends = f"{self.timed_out['tasks']:8}{self.timed_out['acts']:6}{self.cpu:8.1f}"
        return f"{name:<10}{quarters}{sum(self.quarters) / self.seconds:10.2f}{first:>8}{ends}"


@contextmanager
def program(*words: str, environment: dict[str, str] | None = None) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def steps_of(folder: Path) -> int:
    file = folder / "steps"
    return file.stat().st_size if file.exists() else 0


def measure(variant: Variant, folder: Path, barrier: Barrier, options: argparse.Namespace) -> Passage:
    """Begin runs, and count what is made under load by workers that come anew."""
    server = Server(folder / "temporal")
    words = [str(folder), server.address, variant.keys]

    def start(role: str, *more: str) -> "subprocess.Popen[str]":
        words_of_role = (PROGRAM, variant.kind, role, *words, *more)
        return stack.enter_context(program(*words_of_role, environment=variant.environment()))

    with ExitStack() as stack:
        stack.callback(server.kill)
        early = [start("work") for _ in range(options.workers)]
        submitter = start("submit", str(options.runs))
        assert submitter.stdout is not None
        assert submitter.stdout.readline(), "the process that submits has died"
        barrier.wait()
        time.sleep(options.before)
        for each in early:
            each.kill()
            each.wait()
        workers = [start("work") for _ in range(options.workers)]
        quarters, first = count(folder, options.seconds)
        cpu = sum(cpu_of_tree(each.pid) for each in workers)
        for each in workers:
            each.kill()
        timed_out = asyncio.run(timeouts(variant.kind, server.address, options.runs))
    return Passage(quarters, options.seconds, first, timed_out, cpu)


def count(folder: Path, seconds: float) -> tuple[list[int], float | None]:
    """Count the steps of each quarter; and the seconds until the first."""
    began, before, first = time.monotonic(), steps_of(folder), None
    marks = [before]
    for quarter in range(1, 5):
        while (spent := time.monotonic() - began) < seconds * quarter / 4:
            if first is None and steps_of(folder) > before:
                first = spent
            time.sleep(0.1)
        marks.append(steps_of(folder))
    return [late - early for early, late in pairwise(marks)], first


async def timeouts(kind: str, address: str, runs: int) -> Counter[str]:
    """How many tasks and acts timed out, by the histories of the runs."""
    client, found = await Client.connect(address), Counter[str]()
    for number in range(runs):
        name = run_id(number) if kind == "hand" else workflow_id(QUEUE, run_id(number))
        history = await client.get_workflow_handle(name).fetch_history()
        for what, type_ in TIMEOUTS.items():
            found[what] += sum(event.event_type == type_ for event in history.events)
    return found


def variants(options: argparse.Namespace) -> list[Variant]:
    ours = [Variant(f"ours {number}", "ours", keys) for number, keys in enumerate(options.keys, 1)]
    against = [Variant("against", "ours", checkout=options.against.absolute())] if options.against else []
    return [Variant("by hand", "hand"), Variant("ours", "ours"), *ours, *against]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=39)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--before", type=float, default=20.0)
    parser.add_argument("--keys", action="append", default=[])
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = variants(options)
    head = f"{'steps in each quarter':>28}{'a second':>10}{'first':>8}{'tasks':>8}{'acts':>6}{'CPU s':>8}"
    print(f"{'':10}{head}", flush=True)
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in rows]
        barrier = Barrier(len(rows) + 1)
        pool = stack.enter_context(ThreadPoolExecutor(len(rows)))
        measured = [pool.submit(measure, *each, barrier, options) for each in zip(rows, folders, strict=True)]
        barrier.wait()
        time.sleep(options.before)
        for _ in range(options.busy):
            stack.enter_context(program("-c", BUSY, str(options.seconds)))
        for variant, passage in zip(rows, measured, strict=True):
            print(passage.result().row(variant.name), flush=True)


if __name__ == "__main__":
    main()
