"""One framework in a process of its own, for `peers.py`: what its first run, its steps and its conversations take.

    python tests/bench/contenders.py NAME PORT first
    python tests/bench/contenders.py NAME PORT steps          (reads lines "STEPS RUNS")
    python tests/bench/contenders.py NAME PORT hold COUNT STEPS

Each is imported where it is used, so that a process has loaded one of them. All have the same prompt, the same async
tool, native function calls and one client for all runs; nothing is traced or logged.
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any, Literal

from resident import resident
from task import CALLS, PROMPT, echo_tool

Transport = Literal["aiohttp", "httpx2"]
Run = Callable[[int], Awaitable[Any]]
"""One run of so many model calls, to its answer."""
Contender = Callable[..., AbstractAsyncContextManager[Run]]
"""Given a port, and `together` where the last replies are to be held back until so many wait for theirs."""
WARMING = 10
"""Conversations at once before memory is measured."""
GLANCE_S = 0.01


@asynccontextmanager
async def agent_core(
    port: int, transport: Transport, *, together: int = 0, protocol: str = "tools", journal: str = "memory"
) -> AsyncIterator[Run]:
    from ours import ours

    from agent_core import MemoryJournal, SqliteJournal

    async with AsyncExitStack() as stack:
        run = await stack.enter_async_context(ours(port, transport, together=together, protocol=protocol))
        if journal == "memory":
            yield lambda calls: run(calls, MemoryJournal())
            return
        import tempfile
        from pathlib import Path

        rows = SqliteJournal(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.db")
        stack.callback(rows.close)
        yield lambda calls: run(calls, rows)


@asynccontextmanager
async def pydantic_ai(port: int, transport: Transport, *, together: int = 0) -> AsyncIterator[Run]:
    from pydantic_ai import Agent, Tool, UsageLimits
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(_aiohttp()) if transport == "aiohttp" else None
        provider = OpenAIProvider(base_url=f"http://127.0.0.1:{port}/v1", api_key="x", http_client=http)
        await stack.enter_async_context(provider)
        unlimited, agents = UsageLimits(request_limit=None), dict[int, Any]()

        async def run(calls: int) -> Any:
            if calls not in agents:
                model = OpenAIChatModel(_model(calls, together), provider=provider)
                agents[calls] = Agent(model, tools=[Tool(echo_tool, name="echo")])
            return (await agents[calls].run(PROMPT, usage_limits=unlimited)).output

        yield run


@asynccontextmanager
async def openai_agents(port: int, transport: Transport, *, together: int = 0) -> AsyncIterator[Run]:
    sdk = import_module("agents")  # not in our environments, where type checkers would look for it
    from openai import AsyncOpenAI

    sdk.set_tracing_disabled(True)
    url = f"http://127.0.0.1:{port}/v1"
    async with AsyncOpenAI(
        base_url=url, api_key="x", http_client=_aiohttp() if transport == "aiohttp" else None
    ) as client:
        agents = dict[int, Any]()

        async def run(calls: int) -> Any:
            if calls not in agents:
                model = sdk.OpenAIChatCompletionsModel(model=_model(calls, together), openai_client=client)
                tool = sdk.function_tool(echo_tool, name_override="echo")
                agents[calls] = sdk.Agent(name="bench", model=model, tools=[tool])
            return (await sdk.Runner.run(agents[calls], PROMPT, max_turns=calls)).final_output

        yield run


def _model(calls: int, together: int) -> str:
    return f"stub-{calls}-{together}" if together else f"stub-{calls}"


def _aiohttp() -> Any:
    """The other transport of the openai SDK."""
    from openai import DefaultAioHttpClient

    return DefaultAioHttpClient()


CONTENDERS: dict[str, Contender] = {
    f"{name}, {transport}": partial(contender, transport=transport)
    for transport in ("httpx2", "aiohttp")
    for name, contender in {
        "agent_core": agent_core,
        "agent_core in SQLite": partial(agent_core, journal="sqlite"),
        "agent_core, JSON replies": partial(agent_core, protocol="json"),
        "pydantic-ai": pydantic_ai,
        "openai-agents": openai_agents,
    }.items()
}


async def play(run: Run, calls: int) -> None:
    """One run to its answer, which must be the right one."""
    answer = await run(calls)
    assert answer == "done", f"the answer was {answer!r} instead of 'done'"


async def play_all(run: Run, calls: int, count: int, *, at_once: bool) -> None:
    """So many runs, each of which must have called the tool before each reply but the last."""
    before = CALLS["echo"]
    if at_once:
        await asyncio.gather(*(play(run, calls) for _ in range(count)))
    else:
        for _ in range(count):
            await play(run, calls)
    called, due = CALLS["echo"] - before, (calls - 1) * count
    assert called == due, f"the tool was called {called} times instead of {due}"


async def first(contender: Contender) -> None:
    """One run with one call of a tool in a new process: its CPU seconds, modules and resident bytes."""
    async with contender() as run:
        await play_all(run, 2, 1, at_once=False)
        print(time.process_time(), len(sys.modules), resident())


async def steps(contender: Contender) -> None:
    """The CPU seconds of as many runs, of as many steps each, as each line of standard input says."""
    async with contender() as run:
        for line in sys.stdin:
            count, runs = map(int, line.split())
            before = time.process_time()
            await play_all(run, count + 1, runs, at_once=False)
            print(time.process_time() - before, flush=True)


async def hold(contender: Contender, count: int, calls: int) -> None:
    """By how many bytes the process grew while so many conversations waited for their last replies; how many objects
    more there are when they have ended and their client is closed."""
    async with contender() as run:
        await play_all(run, calls, WARMING, at_once=True)
    gc.collect()
    before, objects = resident(), len(gc.get_objects())
    highest = before
    async with contender(together=count) as run:
        playing = asyncio.create_task(play_all(run, calls, count, at_once=True))
        while not playing.done():
            await asyncio.wait([playing], timeout=GLANCE_S)
            highest = max(highest, resident())
        await playing
    del run, playing
    gc.collect()
    print(highest - before, len(gc.get_objects()) - objects)


async def main() -> None:
    name, port, what, *numbers = sys.argv[1:]
    contender = partial(CONTENDERS[name], int(port))
    await {"first": first, "steps": steps, "hold": hold}[what](contender, *map(int, numbers))


if __name__ == "__main__":
    asyncio.run(main())
