"""How fast recorded runs replay: steps (model replies) per second of CPU time, by the length of the run.

    python tests/bench/replay.py [--rounds 9] [--calls 4,30,100] [--profile]
    python tests/bench/replay.py --store 10000

Each run calls a tool in every step but the last; every tenth step, and the second one, is refused or unreadable and
then repaired. `file` reads a JSONL journal anew each time, `rows` has the rows in memory, `what-if` replays those under
a policy that changes no decision. The rows below say how many times as long `rows` and `what-if` take as parsing and
hashing the same records in this process, and how many calls one more step of `rows` costs, built-ins included: the
difference between 30 steps and 5, whatever `--calls` says. `--store` records so many runs of a workflow with ten steps
each, and times `agent-core replay --all` over them, without and with another policy, on all cores: seconds, steps per
second, seconds of CPU on all cores together, steps per second of CPU, and how many times the CPU that parsing and
hashing the same records takes.
"""

import argparse
import asyncio
import cProfile
import pstats
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter, process_time
from types import FrameType

import orjson

from agent_core import JsonlJournal, Replay, replay, run_agent
from agent_core.models import ScriptedModel
from engine_shim import Engine
from utools import ToolRegistry, tool

STEPS_A_ROUND = 3000
"""About so many steps are replayed for one figure, whatever the length of the run."""
TOPICS = ("the harbour", "the old mill", "the station", "the market hall")


async def _search(query: str, limit: int = 5, exact: bool = False) -> dict[str, object]:
    """Search the archive and give the titles found.

    Args:
        query: What to look for.
        limit: How many titles at most.
        exact: Whether only whole words count.
    """
    titles = [f"{query}, volume {volume}: notes and letters" for volume in range(limit)]
    return {"titles": titles, "exact": exact, "total": 40 + limit}


async def _note(text: str, tags: list[str]) -> str:
    """Keep a note.

    Args:
        text: The note.
        tags: Words to find it by.
    """
    return f"kept under {', '.join(tags)}: {text}"


def replies(calls: int) -> list[str]:
    """What the model says in a run of so many calls."""
    return [*(_reply(index) for index in range(calls - 1)), _said({"type": "final", "answer": "All of it is noted."})]


def _reply(index: int) -> str:
    topic, thought = TOPICS[index % len(TOPICS)], f"Step {index}: I look further before I answer."
    if index == 1 or index % 20 == 19:
        args: dict[str, object] = {"query": topic, "limit": "five"}
        return _said({"type": "action", "tool": "search", "args": args, "thought": thought})
    if index % 20 == 9:
        return f"I will now search for {topic}."
    if index % 3 == 2:
        args = {"text": f"Found {index} titles about {topic}.", "tags": ["archive", topic]}
        return _said({"type": "action", "tool": "note", "args": args, "thought": thought})
    args = {"query": f"{topic} {index}", "limit": 3 + index % 4}
    return _said({"type": "action", "tool": "search", "args": args, "thought": thought})


def _said(step: dict[str, object]) -> str:
    return orjson.dumps(step).decode()


def record(path: Path, calls: int) -> None:
    """A finished run of so many calls, in a JSONL file."""
    registry = ToolRegistry(
        [tool(effect="read", code="search")(_search), tool(effect="write", code="note", idempotent=True)(_note)]
    )
    config = {
        "model": "scripted",
        "max_steps": calls,
        "max_tool_calls": 0,
        "allowed_tools": ["search", "note"],
        "prompt": "Look through the archive and note what you find.",
        "system_prompt": "You are a careful archivist.",
    }
    journal = JsonlJournal(path)
    output = asyncio.run(
        run_agent(config, registry=registry, model=ScriptedModel(replies(calls)), journal=journal, run_id="bench")
    )
    assert (output.finish_reason, len(output.trace)) == ("final", calls), output.error


def from_file(path: Path) -> Callable[[], Replay]:
    return lambda: replay(path)


def from_rows(path: Path) -> Callable[[], Replay]:
    rows = [row for strand in JsonlJournal(path).load("bench").values() for row in strand]
    return lambda: replay(rows, run_id="bench")


def what_if(path: Path) -> Callable[[], Replay]:
    rows = [row for strand in JsonlJournal(path).load("bench").values() for row in strand]
    return lambda: replay(rows, run_id="bench", policy={"max_repairs": 2})


SOURCES = {"file": from_file, "rows": from_rows, "what-if": what_if}
FEW, MANY = 5, 30
"""The lengths of the runs whose calls are counted."""


def calls_of(once: Callable[[], Replay]) -> int:
    """How many functions are called, built-ins included, once everything is warm."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    for _ in range(2):
        once()
    sys.setprofile(see)
    try:
        once()
    finally:
        sys.setprofile(None)
    return count


def count_calls(folder: Path) -> float:
    """The calls of one more replayed step."""
    for calls in (FEW, MANY):
        record(_path(folder, calls), calls)
    few, many = (calls_of(from_rows(_path(folder, calls))) for calls in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def floor(path: Path, calls: int, rounds: int) -> float:
    """The median number of steps per second of CPU time whose records are parsed and hashed, and nothing else."""
    rows = [row.data for strand in JsonlJournal(path).load("bench").values() for row in strand]
    times = max(1, STEPS_A_ROUND // calls)
    found = []
    for _ in range(rounds):
        start = process_time()
        for _ in range(times):
            for data in rows:
                orjson.loads(data)
                sha256(data).digest()
        found.append(times * calls / (process_time() - start))
    return median(found)


def speed(once: Callable[[], Replay], calls: int, rounds: int) -> float:
    """The median number of steps per second of CPU time."""
    times = max(1, STEPS_A_ROUND // calls)
    found = []
    for each in range(rounds + 1):
        start = process_time()
        for _ in range(times):
            done = once()
            assert done.identical, done
            assert done.steps == calls, done.steps
        if each:  # the first round warms up
            found.append(times * calls / (process_time() - start))
    return median(found)


def table(folder: Path, rounds: int, lengths: Sequence[int]) -> str:
    head = f"{'steps per second of CPU':<26}" + "".join(f"{f'{calls} steps':>12}" for calls in lengths)
    found = {
        name: [speed(source(_path(folder, calls)), calls, rounds) for calls in lengths]
        for name, source in SOURCES.items()
    }
    rows = [f"{name:<26}" + "".join(f"{each:>12,.0f}" for each in speeds) for name, speeds in found.items()]
    floors = [floor(_path(folder, calls), calls, rounds) for calls in lengths]
    for name in ("rows", "what-if"):
        ratios = "".join(f"{bare / full:>12.1f}" for bare, full in zip(floors, found[name], strict=True))
        rows.append(f"{f'{name} : parse and hash':<26}{ratios}")
    with tempfile.TemporaryDirectory() as counted:
        rows.append(f"{'calls of one more step':<26}{count_calls(Path(counted)):>12.0f}")
    return "\n".join([head, *rows])


WORKFLOW = {
    "id": "bench",
    "nodes": [
        {
            "id": "ask",
            "tool": "agent_core",
            "config": {"model": "scripted", "max_steps": 10, "allowed_tools": ["calculator"], "prompt": "Add them up."},
        }
    ],
}


async def fill_store(store: Path, runs: int) -> None:
    """So many finished runs of ten steps."""
    asked = [{"operation": "sum", "numbers": [each, 3]} for each in range(9)]
    sums = [_said({"type": "action", "tool": "calculator", "args": args}) for args in asked]
    engine = Engine(store=store, model=ScriptedModel([*sums, _said({"type": "final", "answer": "12"})]))
    for start in range(0, runs, 50):
        done = await asyncio.gather(*(engine.run(WORKFLOW) for _ in range(start, min(start + 50, runs))))
        assert {each.status for each in done} == {"completed"}
    await engine.close()


def time_store(store: Path, steps: int) -> list[str]:
    """How long `replay --all` takes, and what it says of the runs, which have so many steps in all."""
    command = [str(Path(sys.executable).with_name("agent-core")), "replay", "--all", "--store", str(store)]
    bare = store_floor(store)
    told = [f"{'':<10}{'seconds':>10}{'steps/s':>10}{'CPU':>10}{'steps/CPU s':>13}{'x parse and hash':>18}"]
    for name, words in (("replay", []), ("what-if", ["--set", 'deny_tools=["calculator"]'])):
        start, before = perf_counter(), _seconds_of_children()
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        seconds, used = perf_counter() - start, _seconds_of_children() - before
        figures = f"{seconds:>10.1f}{steps / seconds:>10,.0f}{used:>10.1f}{steps / used:>13,.0f}{used / bare:>18.1f}"
        told.append(f"{name:<10}{figures}  {done.stdout.splitlines()[-1]}")
    return told


def _seconds_of_children() -> float:
    """Seconds of CPU that ended processes have used, with those that they waited for."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def store_floor(store: Path) -> float:
    """Seconds of CPU in which the records of a store are parsed and hashed, and nothing else."""
    used = 0.0
    with closing(sqlite3.connect(store)) as db:
        rows = db.execute("SELECT data FROM rows")
        while some := rows.fetchmany(10_000):
            start = process_time()
            for (data,) in some:
                orjson.loads(data)
                sha256(data).digest()
            used += process_time() - start
    return used


def profiled(folder: Path, calls: int) -> None:
    once = from_rows(_path(folder, calls))
    profile = cProfile.Profile()
    profile.runcall(lambda: [once() for _ in range(STEPS_A_ROUND // calls)])
    pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(45)


def _path(folder: Path, calls: int) -> Path:
    return folder / f"{calls}.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=lambda text: [int(count) for count in text.split(",")], default=[4, 30, 100])
    parser.add_argument("--profile", action="store_true", help="show where the time of the first length goes")
    parser.add_argument("--store", type=int, metavar="RUNS", help="time the replay of a store of so many runs instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.store:
            asyncio.run(fill_store(folder / "runs.db", options.store))
            sys.stdout.write("\n".join(time_store(folder / "runs.db", 10 * options.store)) + "\n")
            return
        for calls in options.calls:
            record(_path(folder, calls), calls)
        if options.profile:
            profiled(folder, options.calls[0])
        else:
            sys.stdout.write(table(folder, options.rounds, options.calls) + "\n")


if __name__ == "__main__":
    main()
