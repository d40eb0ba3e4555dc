"""The processes of cluster.py: a host whose model answers at once and whose tools cost nothing.

    python cluster_host.py drive STORE FLOW SECONDS IN_FLIGHT                    drives runs itself
    python cluster_host.py submit STORE FLOW SECONDS IN_FLIGHT ADDRESS QUEUE     hands runs to workers, and follows them
    python cluster_host.py work STORE ADDRESS QUEUE                              is such a worker, until it is ended

The first two print a line when they have come up, wait for a line of stdin, and print how many runs they brought to
their end; so long as SECONDS are not over, each run that ends is followed by another.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import orjson

from agent_core.models import ScriptedModel
from engine_shim import Engine
from engine_shim.host.config import TemporalConfig
from utools import tool

CALLS = 5
NODES = 10
STEPS = {"agent": 2 * CALLS + 1, "flow": NODES}
"""How many model and tool calls a run makes."""


@tool(effect="read", code="look")
def look(q: str) -> str:
    """Looks something up."""
    return f"{q}: three titles were found in the archive"


@tool(code="note")
def note(q: str) -> str:
    """Notes something."""
    return f"noted {q}"


def answer(messages: list[dict[str, Any]]) -> str:
    """Look and note by turns, then end."""
    asked = sum(message["role"] == "assistant" for message in messages)
    if asked == CALLS:
        return orjson.dumps({"type": "final", "answer": "done"}).decode()
    step = {"type": "action", "tool": ("look", "note")[asked % 2], "args": {"q": f"chapter {asked}"}}
    return orjson.dumps(step).decode()


AGENT = {
    "model": "scripted",
    "max_steps": 20,
    "allowed_tools": [{"tool": "look"}, {"tool": "note", "approval": "never"}],
    "prompt": "Look through the archive.",
}
FLOWS: dict[str, dict[str, Any]] = {
    "agent": {"id": "agent", "nodes": [{"tool": "agent_core", "config": AGENT}]},
    "flow": {
        "id": "flow",
        "nodes": [
            {"id": f"n{i}", "tool": ("look", "note")[i % 2], "config": {"q": f"{{{{nodes.n{i - 1}}}}}" if i else "x"}}
            for i in range(NODES)
        ],
    },
}


def engine(store: str, temporal: TemporalConfig | None = None) -> Engine:
    return Engine([look, note], store=store, model=ScriptedModel(answer), max_running=1000, temporal=temporal)


async def keep_in_flight(run_one: Callable[[], Awaitable[None]], seconds: float, in_flight: int) -> int:
    """How many runs came to their end; so long as the time is not over, each is followed by another."""
    end, done = monotonic() + seconds, 0

    async def keep_one_going() -> None:
        nonlocal done
        while monotonic() < end:
            await run_one()
            done += 1

    await asyncio.gather(*(keep_one_going() for _ in range(in_flight)))
    return done


async def measure(drive: Callable[[float], Awaitable[int]], seconds: float) -> None:
    """Print how many runs came to their end, from when a line is read."""
    await drive(0.5)  # connections are opened, and what all share is made
    print("ready", flush=True)
    sys.stdin.readline()
    print(await drive(seconds), flush=True)


async def drive(engine: Engine, flow: str, seconds: str, in_flight: str) -> None:
    async def run_one() -> None:
        result = await engine.run(FLOWS[flow])
        assert result.status == "completed", result

    await measure(lambda span: keep_in_flight(run_one, span, int(in_flight)), float(seconds))
    await engine.close()


async def work_on(store: str, config: TemporalConfig) -> None:
    from engine_shim.runs.temporal.worker import work

    await work({config.queue: engine(store)}, config, asyncio.Event())


def main(role: str, store: str, *words: str) -> None:
    if role == "drive":
        asyncio.run(drive(engine(store), *words))
        return
    *words_of_run, address, queue = words
    config = TemporalConfig(address=address, queue=queue)
    if role == "work":
        asyncio.run(work_on(store, config))
    else:
        asyncio.run(drive(engine(store, config), *words_of_run))


if __name__ == "__main__":
    main(*sys.argv[1:])
