"""Many agent runs at once in a process: errors, memory per run, descriptors, and what a hung tool does to others.

    python tests/bench/load.py [--runs 1000] [--steps 5] [--journals memory,sqlite,engine]

`memory` and `sqlite` are agents by themselves, `engine` is a workflow with an agent in it, in a SQLite store.

Each step takes the scripted model 10 to 50 ms and calls one tool. Memory is what the process grew by while all runs
were in flight, divided by the runs: Python's own count (tracemalloc), and the resident set in a process of its own.
"""

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from agent_core import MemoryJournal, SqliteJournal, run_agent
from agent_core.journal.store import Journal
from agent_core.models import ScriptedModel
from engine_shim import Engine, SqliteRunStore, load_workflow
from engine_shim.definition.load import Workflow
from utools import Tool, ToolContext, ToolRegistry

HANG_S = 20.0
"""How long the hung tools would take; their time limit is up long before."""
LIMIT_S = 2.0
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def registry() -> ToolRegistry:
    async def look(args: dict[str, Any], context: ToolContext) -> str:
        return f"{args['q']}: three titles were found in the archive"

    def stuck(args: dict[str, Any], context: ToolContext) -> str:
        time.sleep(HANG_S)
        return "late"

    async def lost(args: dict[str, Any], context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    tools = {"look": look, "stuck": stuck, "lost": lost}
    return ToolRegistry([Tool(code, f"Does {code}.", SCHEMA, tool, effect="read") for code, tool in tools.items()])


class Gate:
    """Counts the runs that ask for their last reply; the last reply is held back until all are there, and measured."""

    def __init__(self, runs: int) -> None:
        self.runs, self.waiting, self.open = runs, 0, asyncio.Event()
        self.all_there = asyncio.Event()

    async def wait(self) -> None:
        self.waiting += 1
        if self.waiting == self.runs:
            self.all_there.set()
        await self.open.wait()


def model(steps: int, tool: str = "look", gate: Gate | None = None) -> ScriptedModel:
    """Answers after 10 to 50 ms, a little later each time; only the first step calls `tool`."""

    async def answer(messages: list[dict[str, Any]]) -> str:
        step = sum(message["role"] == "assistant" for message in messages)
        await asyncio.sleep(0.01 + 0.01 * (step % 5))
        if step < steps - 1:
            args = {"q": f"chapter {step}"}
            return _said({"type": "action", "tool": "look" if step else tool, "args": args, "thought": "I look."})
        if gate is not None:
            await gate.wait()
        return _said({"type": "final", "answer": "done"})

    return ScriptedModel(answer)


def _said(step: dict[str, Any]) -> str:
    return orjson.dumps(step).decode()


def config(steps: int) -> dict[str, Any]:
    return {
        "model": "scripted",
        "max_steps": steps,
        "allowed_tools": ["look", {"tool": "stuck", "timeout": LIMIT_S}, {"tool": "lost", "timeout": LIMIT_S}],
        "prompt": "Look through the archive.",
        "timeout": 600,
        "single_call_timeout": 600,
        "max_repairs": 5,
    }


Start = Callable[[ScriptedModel], Coroutine[Any, Any, bool]]
"""Begins a run with this model; whether it came to its answer."""


@contextmanager
def starting(kind: str, steps: int, runs: int) -> Iterator[Start]:
    """How runs are begun: agents with a journal each, or one for all, or workflows."""
    tools = registry()

    async def alone(model: ScriptedModel, journal: Journal) -> bool:
        output = await run_agent(config(steps), registry=tools, model=model, journal=journal)
        return output.finish_reason == "final"

    engines: dict[ScriptedModel, Engine] = {}
    flow = workflow(steps)

    async def within(model: ScriptedModel, store: SqliteRunStore) -> bool:
        if model not in engines:
            engines[model] = Engine(tools, store=store, model=model, max_running=runs)
        return (await engines[model].run(flow)).status == "completed"

    if kind == "memory":
        yield lambda model: alone(model, MemoryJournal())
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        kept, store = SqliteJournal(path), SqliteRunStore(path)
        yield (lambda model: alone(model, kept)) if kind == "sqlite" else (lambda model: within(model, store))
        kept.close()
        store.close()


def workflow(steps: int) -> Workflow:
    return load_workflow({"id": "load", "nodes": [{"tool": "agent_core", "config": config(steps)}]})


async def many(runs: int, steps: int, start_one: Start, measure: bool) -> dict[str, Any]:
    """So many runs side by side; what was measured while all of them were in flight."""
    gate = Gate(runs)
    await start_one(model(steps))  # what all share is made
    gc.collect()
    fds, rss = _descriptors(), _resident()
    if measure:
        tracemalloc.start()
    start = time.perf_counter()
    answers = model(steps, gate=gate)
    tasks = [asyncio.create_task(start_one(answers)) for _ in range(runs)]
    await gate.all_there.wait()
    gc.collect()
    during = {"descriptors": _descriptors(), "resident": _resident()}
    traced = tracemalloc.get_traced_memory()[0] if measure else 0
    biggest = _biggest(runs) if measure else []
    tracemalloc.stop()
    gate.open.set()
    outputs = await asyncio.gather(*tasks, return_exceptions=True)
    seconds = time.perf_counter() - start
    return {
        "errors": sum(each is not True for each in outputs),
        "seconds": seconds,
        "kb_a_run": (traced if measure else during["resident"] - rss) / runs / 1024,
        "descriptors": (fds, during["descriptors"], _descriptors()),
        "biggest": biggest,
    }


def _biggest(runs: int) -> list[str]:
    """Where the memory was asked for, the most first."""
    lines = tracemalloc.take_snapshot().statistics("filename")[:12]
    return [f"{line.size / runs / 1024:8.1f} KB  {line.traceback[0].filename}" for line in lines]


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


async def beside(runs: int, steps: int, tool: str) -> float:
    """Seconds until all of the ordinary runs are done, while one more run calls `tool` in its first step."""
    tools = registry()
    await run_agent(config(steps), registry=tools, model=model(steps))
    odd = asyncio.create_task(run_agent(config(steps), registry=tools, model=model(steps, tool)))
    start = time.perf_counter()
    outputs = await asyncio.gather(*(run_agent(config(steps), registry=tools, model=model(steps)) for _ in range(runs)))
    seconds = time.perf_counter() - start
    assert all(output.finish_reason == "final" for output in outputs)
    late = await odd
    assert late.finish_reason == "final", late.error
    assert tool == "look" or "within" in late.trace[0]["error"], late.trace
    return seconds


def _apart(kind: str, options: argparse.Namespace) -> None:
    """One measurement in a process of its own, so that none sees what another has left behind."""
    sizes = ["--runs", str(options.runs), "--steps", str(options.steps)]
    subprocess.run([sys.executable, __file__, "--only", kind, *sizes], check=True)


def _measure(kind: str, runs: int, steps: int) -> None:
    name, _, how = kind.partition(":")
    if name == "hang":
        usual, stuck, lost = (asyncio.run(beside(runs, steps, tool)) for tool in ("look", "stuck", "lost"))
        print(f"others beside a hung sync tool: {stuck / usual:.2f} times as long, beside a hung async one:", end=" ")
        print(f"{lost / usual:.2f} ({usual:.2f} s without)")
        return
    with starting(name, steps, runs) as start_one:
        found = asyncio.run(many(runs, steps, start_one, measure=how == "traced"))
    print(f"{runs} runs of {steps} steps, journal {name}: {found['errors']} errors, {found['seconds']:.2f} s,", end=" ")
    print(f"{found['kb_a_run']:.1f} KB a run ({how}), file descriptors before/during/after", end=" ")
    print("/".join(map(str, found["descriptors"])))
    for line in found["biggest"]:
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--journals", default="memory,sqlite,engine")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        _measure(options.only, options.runs, options.steps)
        return
    for name in options.journals.split(","):
        _apart(f"{name}:resident", options)
        _apart(f"{name}:traced", options)
    _apart("hang", options)


if __name__ == "__main__":
    main()
