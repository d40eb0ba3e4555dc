"""What a first answer, a step and a conversation take: agent_core beside pydantic-ai and openai-agents.

    pip install openai-agents 'pydantic-ai-slim[openai]'
    python tests/bench/peers.py [--rounds 5] [--in-flight 200] [--without openai-agents] [--transport httpx2]

Each framework has a process of its own, its own client of chat completions, and the same model on loopback, prompt,
tool and replies (function calls); openai-agents does not trace. They take turns in each round, so that what else the
machine does weighs on all alike. CPU time is that of the process, user and system. Beside a figure stands its multiple
of ours over the same transport, and the lowest and the highest of the rounds'. Nothing is shown unless every run ended
with the answer, and had called its tool once a step.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from platform import python_version
from statistics import median

from contenders import CONTENDERS

from bench import stub

PEERS = {"pydantic-ai": "pydantic-ai-slim", "openai-agents": "openai-agents"}
"""Each peer and the package that has it."""
INSTALL = "pip install openai-agents 'pydantic-ai-slim[openai]'"
IMPORTS = {
    "Python alone": "",
    "agent_core": "from agent_core import run_agent",
    "pydantic-ai": "from pydantic_ai import Agent",
    "openai-agents": "from agents import Agent, Runner",
}
LOADED = "import sys, time; read = open('/proc/self/statm').read; print(time.process_time(), len(sys.modules), read())"
FEW, MANY = 5, 30
"""The steps of a short and of a long run; their difference is what a step more costs."""
WARMING = 2
"""Rounds of steps before those that count."""
TRANSPORTS = ("httpx2", "aiohttp") if find_spec("aiohttp") else ("httpx2",)
MB, KB = 1 << 20, 1 << 10
Figures = dict[str, list[list[float]]]
"""The figures of each round, by contender."""


def check_installed(peers: Sequence[str]) -> None:
    """Exit where a peer is not installed, and say what to do."""
    for peer in peers:
        try:
            version(PEERS[peer])
        except PackageNotFoundError:
            sys.exit(f"peers.py: {PEERS[peer]} is not installed: {INSTALL}, or leave it out: --without {peer}")


def choose(peers: Sequence[str], transports: Sequence[str]) -> list[str]:
    """The contenders that take part: ours and these peers, over each of the transports."""
    ends = tuple(f", {transport}" for transport in transports)
    return [name for name in CONTENDERS if name.endswith(ends) and name.startswith(("agent_core", *peers))]


def run_python(*arguments: str) -> list[float]:
    """The numbers that a new process prints."""
    done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def contend(name: str, port: int, *arguments: object) -> list[str]:
    """The arguments of a contender's process."""
    return [str(Path(__file__).with_name("contenders.py")), name, str(port), *map(str, arguments)]


def take_turns(names: Sequence[str], rounds: int, measure: Callable[[str], list[float]], warming: int = 0) -> Figures:
    """What `measure` finds of each name, round by round; the first `warming` rounds are not counted."""
    figures: Figures = {name: [] for name in names}
    for each in range(warming + rounds):
        for name in names:
            found = measure(name)
            if each >= warming:
                figures[name].append(found)
    return figures


def measure_import(name: str) -> list[float]:
    """CPU milliseconds, modules and resident MB of a process that imports a framework."""
    cpu, modules, _, pages, *_ = run_python("-c", f"{IMPORTS[name]}\n{LOADED}")
    return [cpu * 1000, modules, pages * os.sysconf("SC_PAGE_SIZE") / MB]


def measure_first(name: str, port: int) -> list[float]:
    """The same of a process that imports it and has had one answer, after one call of a tool."""
    cpu, modules, resident = run_python(*contend(name, port, "first"))
    return [cpu * 1000, modules, resident / MB]


def measure_memory(name: str, port: int, count: int) -> list[float]:
    """KB of each conversation in flight, and the objects that all of them left."""
    held, objects = run_python(*contend(name, port, "hold", count, FEW + 1))
    return [held / count / KB, objects]


@contextmanager
def waiting(names: Sequence[str], port: int) -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    """A process for each contender, which waits to be told how many steps to take."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, *contend(name, port, "steps")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in names
        }


def measure_steps(process: "subprocess.Popen[str]", runs: int) -> list[float]:
    """CPU milliseconds of a step of a short run, and of a step more in a long one."""
    assert process.stdin is not None
    assert process.stdout is not None
    costs = []
    for steps in (FEW, MANY):
        process.stdin.write(f"{steps} {runs}\n")
        process.stdin.flush()
        told = process.stdout.readline()
        if not told:
            sys.exit(f"peers.py: {process.args} ended early; what it says is above")
        costs.append(float(told) * 1000 / runs)
    few, many = costs
    return [few / FEW, (many - few) / (MANY - FEW)]


def table(title: str, columns: Sequence[str], figures: Figures, best: Callable[[list[float]], float]) -> str:
    """A row for each contender: its figures, and beside them multiples of ours over the same transport."""
    rows = [_row(title, columns)]
    rows += [_row(name, [_cell(name, figures, each, best) for each in range(len(columns))]) for name in figures]
    return "\n".join(rows)


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<36}" + "".join(f"{cell:>28}" for cell in cells)


def _cell(name: str, figures: Figures, column: int, best: Callable[[list[float]], float]) -> str:
    """A figure, its multiple of ours, and the lowest and the highest multiple of the rounds."""
    _, comma, transport = name.rpartition(", ")
    base = f"agent_core{comma}{transport if comma else ''}"
    mine, its = ([each[column] for each in figures[one]] for one in (base, name))
    figure = f"{best(its):.{0 if best(mine) >= 20 or best(mine) < 0 else 2}f}"
    if name == base or min(mine) <= 0:
        return f"{figure} {'':20}"
    ratios = [each / one for each, one in zip(its, mine, strict=True)]
    return f"{figure} {best(its) / best(mine):>6.2f} ({min(ratios):.2f}-{max(ratios):.2f})".ljust(len(figure) + 21)


def measure(port: int, peers: Sequence[str], options: argparse.Namespace) -> Iterator[str]:
    """Each table, once all that it needs was measured."""
    names, loaded = choose(peers, options.transport or TRANSPORTS), ["CPU ms", "modules", "MB"]
    filling = min(1, options.rounds - 1)  # a round that fills the caches of files
    imports = [name for name in IMPORTS if name not in PEERS or name in peers]
    yield table("import", loaded, take_turns(imports, options.rounds, measure_import, filling), min)
    first = take_turns(names, options.rounds, lambda name: measure_first(name, port), filling)
    yield table("import to first answer", loaded, first, min)
    with waiting(names, port) as processes:
        costs = take_turns(names, options.rounds, lambda name: measure_steps(processes[name], options.runs), WARMING)
    columns = [f"of a run of {FEW}, CPU ms", f"one more, to {MANY}, CPU ms"]
    yield table("a step", columns, costs, median)
    count = options.in_flight
    memory = take_turns(names, min(options.rounds, 3), lambda name: measure_memory(name, port, count))
    yield table(f"{count} conversations in flight", ["KB each", "objects left by all"], memory, median)


def versions(peers: Sequence[str]) -> str:
    packages: Mapping[str, str] = {name: version(name) for name in ("openai", *(PEERS[peer] for peer in peers))}
    told = ", ".join(f"{name} {number}" for name, number in packages.items())
    return f"Python {python_version()}, {told}; {os.cpu_count()} processors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="runs of each length in a round")
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--without", action="append", default=[], choices=PEERS, help="leave a peer out")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="only this one")
    options = parser.parse_args()
    peers = [peer for peer in PEERS if peer not in options.without]
    check_installed(peers)
    with stub() as port:
        tables = list(measure(port, peers, options))
    print("\n\n".join([versions(peers), *tables]))


if __name__ == "__main__":
    main()
