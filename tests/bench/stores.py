"""What a step costs by where it is kept: agents in memory, SQLite and PostgreSQL, beside DBOS in the same PostgreSQL.

    python tests/bench/stores.py [--runs 100] [--steps 10] [--rounds 3] [--dbos PYTHON]

So many runs are under way at once; each step asks a scripted model and calls one async tool, both of which answer at
once. `power` syncs each append to the disk; PostgreSQL does not wait for it. `PYTHON` is an interpreter that has `dbos`
and psycopg: there a workflow has two steps, a model and a tool, for each of ours. Each kind has a process of its own.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

KINDS = ("memory", "sqlite", "sqlite-power", "postgres")


async def ours(kind: str, place: str, runs: int, steps: int, rounds: int) -> list[tuple[float, float]]:
    from agent_core import MemoryJournal, SqliteJournal, run_agent
    from agent_core.models import ScriptedModel
    from utools import ToolRegistry, tool

    @tool(effect="read", code="look")
    async def look(text: str) -> str:
        """Look a text up."""
        return f"{text}: found"

    journal: Any
    if kind == "postgres":
        from agent_core.journal.postgres import PostgresJournal

        journal = PostgresJournal(place)
    elif kind == "memory":
        journal = MemoryJournal()
    else:
        journal = SqliteJournal(Path(place), durability="power" if kind.endswith("power") else "process")
    said = [json.dumps({"type": "action", "tool": "look", "args": {"text": f"page {n}"}}) for n in range(steps - 1)]
    said.append(json.dumps({"type": "final", "answer": "done"}))
    config = {
        "model": "scripted",
        "max_steps": steps,
        "max_tool_calls": 0,
        "allowed_tools": ["look"],
        "prompt": "Look.",
    }
    registry = ToolRegistry([look])

    async def run(_: int) -> None:
        output = await run_agent(config, registry=registry, model=ScriptedModel(said), journal=journal)
        assert output.finish_reason == "final", output.error

    found = await measure(run, runs, rounds)
    journal.close()
    return found


async def dbos(place: str, runs: int, steps: int, rounds: int) -> list[tuple[float, float]]:
    import logging

    from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]

    logging.disable(logging.WARNING)

    DBOS(config={"name": "bench", "system_database_url": place, "run_admin_server": False})

    @DBOS.step()  # type: ignore[untyped-decorator]
    async def ask(n: int) -> str:
        return json.dumps({"type": "action", "tool": "look", "args": {"text": f"page {n}"}})

    @DBOS.step()  # type: ignore[untyped-decorator]
    async def look(text: str) -> str:
        return f"{text}: found"

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    async def agent(prompt: str) -> str:
        for n in range(steps):
            said = json.loads(await ask(n))
            if n < steps - 1:
                await look(said["args"]["text"])
        return "done"

    DBOS.launch()
    numbers = iter(range(10**9))

    async def run(_: int) -> None:
        with SetWorkflowID(f"run-{next(numbers)}"):
            assert await agent("Look.") == "done"

    found = await measure(run, runs, rounds)
    DBOS.destroy()
    return found


async def measure(run: Callable[[int], Awaitable[None]], runs: int, rounds: int) -> list[tuple[float, float]]:
    """Seconds of wall and of CPU of each round; the first one warms up."""
    found = []
    for _ in range(rounds + 1):
        wall, cpu = perf_counter(), process_time()
        await asyncio.gather(*map(run, range(runs)))
        found.append((perf_counter() - wall, process_time() - cpu))
    return found[1:]


def show(kind: str, python: str, place: str, options: argparse.Namespace) -> None:
    """Measure one kind in a process of its own, and print it."""
    sizes = [str(each) for each in (options.runs, options.steps, options.rounds)]
    done = subprocess.run(
        [python, __file__, "--child", kind, place, *sizes], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    steps = options.runs * options.steps
    wall, cpu = min(each[0] for each in found), min(each[1] for each in found)
    print(f"{kind:14} {steps / wall:8.0f} steps/s {cpu / steps * 1e6:8.0f} us of CPU a step", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        kind, place, *sizes = sys.argv[2:]
        runs, steps, rounds = map(int, sizes)
        work = dbos(place, runs, steps, rounds) if kind == "dbos" else ours(kind, place, runs, steps, rounds)
        print(json.dumps(asyncio.run(work)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dbos", metavar="PYTHON", help="an interpreter that has dbos")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from support.postgres_server import real_postgres

    with tempfile.TemporaryDirectory() as folder, real_postgres(max_connections=100) as server:
        for kind in KINDS:
            place = server.make_database() if kind == "postgres" else str(Path(folder) / f"{kind}.db")
            show(kind, sys.executable, place, options)
        if options.dbos:
            show("dbos", options.dbos, server.make_database(), options)


if __name__ == "__main__":
    main()
