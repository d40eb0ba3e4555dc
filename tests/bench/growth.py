"""How the cost of a thing grows with the number of what it is made of, in CPU of one process.

    python tests/bench/growth.py [--only steps,tools,history,foreach,tenants,followers] [--rounds 3]

Each line is one size: milliseconds of CPU in all, microseconds for each one more since the size before, and how many
times as much that is as at the size before: about 1 is linear. How readers of a store fare as its runs grow is
`big_store.py`'s.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import Any

from agent_core import JsonlJournal, MemoryJournal, SqliteJournal, replay, run_agent
from agent_core.models import ScriptedModel
from engine_shim import Engine, SqliteRunStore
from engine_shim.host.config import read_host_config
from engine_shim.service.feed_merge import Position
from engine_shim.service.feeds import Feeds
from engine_shim.service.service import Service
from engine_shim.store.open import open_store
from utools import Tool, ToolRegistry, tool

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FINAL = json.dumps({"type": "final", "answer": "done"})
Measure = Callable[[int, Path], Awaitable[float]]


@tool(effect="read", code="echo")
async def echo(text: str) -> str:
    """Give a text back."""
    return text


def config(**more: Any) -> dict[str, Any]:
    base = {"model": "scripted", "max_steps": 2000, "max_tool_calls": 0, "allowed_tools": ["echo"], "prompt": "Go on."}
    return {**base, "timeout": 0, **more}


async def timed(work: Awaitable[Any]) -> float:
    start = process_time()
    await work
    return process_time() - start


async def steps(size: int, folder: Path, journal: Any = None) -> float:
    """An agent's run of so many steps, in memory; each calls a tool with a text of its own."""
    said = [json.dumps({"type": "action", "tool": "echo", "args": {"text": f"line {n}"}}) for n in range(size - 1)]
    model = ScriptedModel([*said, FINAL])
    own = MemoryJournal() if journal is None else journal
    run = run_agent(config(), registry=ToolRegistry([echo]), model=model, journal=own, run_id="grows")
    return await timed(run)


async def replayed_steps(size: int, folder: Path) -> float:
    """The replay of such a run, from a file."""
    path = folder / f"{size}.jsonl"
    if not path.exists():
        await steps(size, folder, JsonlJournal(path))
    start = process_time()
    assert replay(path).identical
    return process_time() - start


async def tools(size: int, folder: Path) -> float:
    """A run of one question that may call so many tools."""

    async def give(args: dict[str, Any], context: Any) -> str:
        return str(args["text"])

    many = [Tool(f"tool_{n}", f"Gives text {n} back.", TEXT, give, effect="read") for n in range(size)]
    registry, names = ToolRegistry(many), [each.code for each in many]
    ask = config(allowed_tools=names)
    return await timed(run_agent(ask, registry=registry, model=ScriptedModel([FINAL]), journal=MemoryJournal()))


async def history(size: int, folder: Path) -> float:
    """A run of one question about a conversation of so many messages."""
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Message {n} of the talk."} for n in range(size)]
    ask = config(messages_json=said, max_history_messages=0)
    return await timed(
        run_agent(ask, registry=ToolRegistry([echo]), model=ScriptedModel([FINAL]), journal=MemoryJournal())
    )


async def foreach(size: int, folder: Path) -> float:
    """A workflow with a list of so many items, each a call of a tool."""
    node = {"id": "each", "tool": "echo", "foreach": "{{external.items}}", "config": {"text": "{{item}}"}}
    flow = {"id": "list", "nodes": [node]}
    with tempfile.TemporaryDirectory() as place:
        engine = Engine([echo], store=SqliteRunStore(Path(place) / "runs.db"))
        result = []

        async def run() -> None:
            result.append(await engine.run(flow, external={"items": [f"item {n}" for n in range(size)]}))

        seconds = await timed(run())
        await engine.close()
    assert result[0].status == "completed", result[0]
    return seconds


async def tenants(size: int, folder: Path) -> float:
    """A server that begins with so many tenants, and ends."""
    with tempfile.TemporaryDirectory() as place:
        host = Path(place)
        (host / "agent-core.yaml").write_text(json.dumps({"tenants": {f"tenant-{n}": {} for n in range(size)}}))

        async def serve() -> None:
            service = Service.of_host(read_host_config(host / "agent-core.yaml"), host / "runs.db", is_open=True)
            async with service.running():
                await asyncio.sleep(0)

        return await timed(serve())


async def followers(size: int, folder: Path) -> float:
    """The events of a run of thirty steps for so many who follow it from its beginning, once it has ended."""
    path = folder / "followed.db"
    if not path.exists():
        with closing(SqliteJournal(path)) as journal:
            await steps(30, folder, journal)
    with closing(open_store(path)) as store:
        feeds = Feeds(store)

        async def follow() -> int:
            return sum([len(frames) async for frames in feeds.frames("grows", Position(0, 0))])

        async def all_follow() -> None:
            heard = await asyncio.gather(*(follow() for _ in range(size)))
            assert len(set(heard)) == 1

        return await timed(all_follow())


PARTS: dict[str, tuple[Measure, tuple[int, ...]]] = {
    "steps": (steps, (10, 100, 1000)),
    "replayed_steps": (replayed_steps, (10, 100, 1000)),
    "tools": (tools, (1, 10, 100, 500)),
    "history": (history, (10, 100, 1000, 10_000)),
    "foreach": (foreach, (10, 100, 1000)),  # which is as many as one takes
    "tenants": (tenants, (1, 10, 100, 1000)),
    "followers": (followers, (1, 10, 100, 1000)),
}


async def show(name: str, rounds: int) -> None:
    """Print how one part grows."""
    measure, sizes = PARTS[name]
    print(f"{name}: {' '.join(str(measure.__doc__).split())}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        await measure(sizes[0], folder)
        before, cost, each = 0, 0.0, 0.0
        for size in sizes:
            now = min([await measure(size, folder) for _ in range(rounds)])
            more = (now - cost) / (size - before) * 1e6
            ratio = f"{more / each:8.2f} x" if each > 0 else ""
            print(f"  {size:6} {now * 1000:10.1f} ms {more:10.1f} us for one more {ratio}", flush=True)
            before, cost, each = size, now, more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[*PARTS])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.only:
        asyncio.run(show(name, options.rounds))


if __name__ == "__main__":
    main()
