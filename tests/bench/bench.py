"""What a step costs: our whole node beside the openai SDK and a bare socket, against a model that answers at once.

    python tests/bench/bench.py [--rounds 9] [--calls 4,30,100]
    python tests/bench/bench.py --in-flight 1000 [--calls 10]

The loops take turns in each round, so that what else the machine does hits all alike; medians are shown. On a busy
machine trust the CPU columns and the ratios.
"""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from in_flight import in_flight
from loops import (
    Run,
    floor,
    ours_in_memory,
    ours_in_sqlite,
    ours_untraced,
    sdk_as_usual,
    sdk_own_bytes,
    sdk_own_bytes_by_aiohttp,
)

from agent_core.models.endpoint.connections import Transport

FLOOR, BY_AIOHTTP, OWN_BYTES, AS_USUAL = (
    "raw asyncio (the floor)",
    "openai SDK, own bytes, aiohttp",
    "openai SDK, own bytes",
    "openai SDK as everybody writes it",
)
TRANSPORTS: tuple[Transport, ...] = ("aiohttp", "httpx2")
MEMORY, SQLITE, UNTRACED = "ours in memory, {}", "ours in SQLite, {}", "ours without origins, {}"
LOOPS = {FLOOR: floor, BY_AIOHTTP: sdk_own_bytes_by_aiohttp, OWN_BYTES: sdk_own_bytes, AS_USUAL: sdk_as_usual}
for transport in TRANSPORTS:
    LOOPS[MEMORY.format(transport)] = partial(ours_in_memory, transport=transport)
    LOOPS[SQLITE.format(transport)] = partial(ours_in_sqlite, transport=transport)
    LOOPS[UNTRACED.format(transport)] = partial(ours_untraced, transport=transport)
Cost = tuple[float, float]
"""CPU and wall milliseconds of one step."""
Costs = dict[tuple[str, int], Cost]


@contextmanager
def stub() -> Iterator[int]:
    """The port of a model that runs in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("stub.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate()


async def measured(port: int, rounds: int, calls: Sequence[int]) -> Costs:
    """The median cost of a step by loop and length of the run."""
    costs: dict[tuple[str, int], list[Cost]] = {(name, count): [] for name in LOOPS for count in calls}
    async with AsyncExitStack() as stack:
        runs = {name: await stack.enter_async_context(loop(port)) for name, loop in LOOPS.items()}
        for each in range(rounds + 1):
            for name, count in costs:
                cost = await _cost(runs[name], count)
                if each:  # the first round warms up
                    costs[name, count].append(cost)
    return {key: (median(cpu for cpu, _ in many), median(wall for _, wall in many)) for key, many in costs.items()}


async def _cost(run: Run, calls: int) -> Cost:
    cpu, wall = process_time(), perf_counter()
    assert await run(calls) == "done"
    return (process_time() - cpu) * 1000 / calls, (perf_counter() - wall) * 1000 / calls


def table(costs: Costs, calls: Sequence[int]) -> str:
    """Milliseconds per step, CPU / wall, and how ours compares."""
    rows = [_row("ms per step, CPU / wall", [f"{count} calls" for count in calls])]
    rows += [_row(name, ["{:.3f} / {:.3f}".format(*costs[name, count]) for count in calls]) for name in LOOPS]
    for transport in TRANSPORTS:
        memory, sqlite = MEMORY.format(transport), SQLITE.format(transport)
        rows += [_ratios(costs, calls, memory, other) for other in (OWN_BYTES, AS_USUAL, UNTRACED.format(transport))]
        more = [[costs[sqlite, count][each] - costs[memory, count][each] for each in (0, 1)] for count in calls]
        rows.append(_row(f"SQLite - memory, {transport}", ["{:+.3f} / {:+.3f}".format(*each) for each in more]))
    return "\n".join(rows)


def _ratios(costs: Costs, calls: Sequence[int], name: str, other: str) -> str:
    pairs = [(costs[name, count], costs[other, count]) for count in calls]
    return _row(f"{name} : {other}", [f"{mine[0] / its[0]:.2f} / {mine[1] / its[1]:.2f}" for mine, its in pairs])


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<60}" + "".join(f"{cell:>18}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=lambda text: [int(count) for count in text.split(",")], default=[4, 30, 100])
    parser.add_argument("--in-flight", type=int, help="so many runs at once instead, of the first of --calls")
    parser.add_argument("--transport", choices=TRANSPORTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_flight and not options.transport:
        for transport in TRANSPORTS:  # each in a process of its own, as memory that was used once stays
            subprocess.run([sys.executable, *sys.argv, "--transport", transport], check=True)
        return
    if options.in_flight:
        with stub() as port:
            sys.stdout.write(in_flight(port, options.in_flight, options.calls[0], options.transport) + "\n")
        return
    with stub() as port:
        costs = asyncio.run(measured(port, options.rounds, options.calls))
    sys.stdout.write(table(costs, options.calls) + "\n")


if __name__ == "__main__":
    main()
