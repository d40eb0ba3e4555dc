"""Conversations at once in one process: when the first event and the end of a turn come, and the memory of each.

    python tests/bench/conversations.py [--at-once 100] [--calls 3] [--delay 0.2] [--rounds 3]

Each has turns of so many model calls over HTTP, to a model that takes `--delay` seconds for each, with a tool of Python
in between; journal and history are in SQLite files, as on a host. Shown are p50 and p95 over the conversations, of one
by itself and of all at once. Memory is what the process grew by while all waited for their last reply.
"""

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from resident import resident

from agent_core import SqliteJournal
from agent_core.agents import AgentCatalog, AgentExecutor, Conversations
from agent_core.models.openai.client import OpenAICompatible
from agent_core.run.events import Event
from bench import stub
from utools import ToolRegistry, default_registry, tool
from utools.context.store_sqlite import SqliteContextStore


@tool(effect="read", code="fox")
def fox(text: str, n: int) -> str:
    """Echo."""
    return f"{text}#{n}"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the question of a turn to its first event, to the first that a reply of the model brought, and to
    the end."""

    first: float
    replied: float
    end: float


@asynccontextmanager
async def talking(port: int, calls: int, held: int = 0) -> AsyncIterator[Conversations]:
    """Conversations with an agent; with `held`, none gets its last reply before so many wait for theirs."""
    registry = ToolRegistry([*default_registry().all(), fox])
    catalog = AgentCatalog(registry)
    policy = {"max_steps": calls, "max_tool_calls": 0, "timeout": 600, "single_call_timeout": 600}
    catalog.register(
        {"name": "desk", "model": "stub", "skill_policy": {"allow": ["fox", "calculator"]}, "runtime_policy": policy}
    )
    name = f"stub-{calls}-{held}" if held else f"stub-{calls}"
    model = OpenAICompatible(name, base_url=f"http://127.0.0.1:{port}/v1", api_key="x")
    with tempfile.TemporaryDirectory() as folder:
        journal, store = SqliteJournal(Path(folder) / "journal.db"), SqliteContextStore(Path(folder) / "context.db")
        executor = AgentExecutor(catalog, tools_at=lambda _: registry, model=model, journal=journal)
        yield Conversations(executor, store)
        journal.close()
    await model.close()


async def take_turn(desk: Conversations, conversation: str) -> Times:
    seen: list[tuple[str, float]] = []

    def note(event: Event) -> None:
        seen.append((event["event"], perf_counter()))

    start = perf_counter()
    reply = await desk.chat(f"What does the fox do in {conversation}?", conversation, None, None, on_event=note)
    end = perf_counter()
    assert reply.response == "done", reply
    replied = next(at for name, at in seen if name != "step_started")
    return Times(seen[0][1] - start, replied - start, end - start)


async def talk(port: int, calls: int, count: int, rounds: int) -> list[Times]:
    """The times of so many conversations at once, a turn in each round; the first round warms up."""
    async with talking(port, calls) as desk:
        found: list[Times] = []
        for each in range(rounds + 1):
            times = await asyncio.gather(*(take_turn(desk, f"{each}-{n}") for n in range(count)))
            found += times if each else ()
    return found


async def hold(port: int, calls: int, count: int) -> float:
    """KB that the process grew by, for each of so many conversations in flight."""
    async with talking(port, calls) as desk:
        await take_turn(desk, "warm-up")
    gc.collect()
    before = resident()
    async with talking(port, calls, held=count) as desk:
        turns = [asyncio.ensure_future(take_turn(desk, f"held-{n}")) for n in range(count)]
        await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
        grown = resident() - before
        await asyncio.gather(*turns)
    return grown / count / 1024


def line(name: str, times: Sequence[Times]) -> str:
    cells = (
        f"{what} {_percentile([getattr(each, key) for each in times], 50):.3f} / "
        f"{_percentile([getattr(each, key) for each in times], 95):.3f} s"
        for what, key in (("first event", "first"), ("first reply", "replied"), ("end", "end"))
    )
    return f"{name}: p50 / p95: {', '.join(cells)}"


def _percentile(seconds: Sequence[float], percent: int) -> float:
    return quantiles(seconds, n=100, method="inclusive")[percent - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        grown = asyncio.run(hold(options.memory, options.calls, options.at_once))
        sys.stdout.write(f"{options.at_once} conversations in flight: {grown:.0f} KB each\n")
        return
    os.environ |= {"STUB_TOOL": "fox", "STUB_DELAY": str(options.delay)}
    with stub() as port:
        for count in (1, options.at_once):
            times = asyncio.run(talk(port, options.calls, count, max(2, options.rounds)))
            sys.stdout.write(line(f"{count} at once", times) + "\n")
        sys.stdout.flush()
        own = [sys.executable, *sys.argv, "--memory", str(port)]  # by itself, as memory that was used once stays
        subprocess.run(own, check=True)


if __name__ == "__main__":
    main()
