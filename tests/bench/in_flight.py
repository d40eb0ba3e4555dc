"""Many runs at once in one process, over HTTP: errors, runs per second, and the memory that each takes."""

import asyncio
import gc
import resource
import sys
from time import perf_counter

from ours import ours
from resident import resident

from agent_core import MemoryJournal
from agent_core.models.endpoint.connections import Transport


def in_flight(port: int, runs: int, calls: int, transport: Transport) -> str:
    """Once with all of them held in flight, for the memory; once as fast as they go. In a process of its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_at_once(port, 1, calls, transport))  # what all share is made
    gc.collect()
    before = resident()
    errors, _ = asyncio.run(_at_once(port, runs, calls, transport, together=runs))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    failed, seconds = asyncio.run(_at_once(port, runs, calls, transport))
    told = f"{runs} runs of {calls} calls in flight, {transport}: {errors + failed} errors, {runs / seconds:.0f} runs/s"
    return f"{told}, {seconds / runs / calls * 1000:.3f} ms a step, {grown / runs / 1024:.1f} KB a run"


async def _at_once(port: int, runs: int, calls: int, transport: Transport, together: int = 0) -> tuple[int, float]:
    async with ours(port, transport, together=together) as run:
        start = perf_counter()
        outputs = await asyncio.gather(*(run(calls, MemoryJournal()) for _ in range(runs)), return_exceptions=True)
        seconds = perf_counter() - start
    wrong = [output for output in outputs if output != "done"]
    for each in wrong[:3]:
        sys.stderr.write(f"{each!r}\n")
    return len(wrong), seconds
