"""The events of a run as an async iterator, whose end is the end of the run."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from threading import get_ident
from typing import Any, TypeVar

from agent_core.run.cancellation import cancel_and_wait, require_asyncio
from agent_core.run.events import Event, StreamResult

R = TypeVar("R")


async def stream_events(
    run: Callable[[Callable[[Event], None]], Coroutine[Any, Any, R]],
) -> AsyncGenerator[Event | StreamResult[R], None]:
    """Yield what happens in a run, given the callback for its events, and last what it gives; raise what it raises.

    The run begins with the first step of the iteration. It never waits for the consumer: what that has not taken yet is
    kept. A consumer that stops (`aclose`, `break`, a cancellation) cancels the run.
    """
    require_asyncio()
    loop, home = asyncio.get_running_loop(), get_ident()
    heard, is_ready = deque[Event](), asyncio.Event()

    def hear(event: Event) -> None:
        heard.append(event)
        if get_ident() == home:
            is_ready.set()
        else:  # a tool's own thread, which may outlive the loop
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(is_ready.set)

    task = asyncio.create_task(run(hear))
    task.add_done_callback(lambda _: is_ready.set())
    try:
        while heard or not task.done():
            await is_ready.wait()
            is_ready.clear()
            while heard:
                yield heard.popleft()
        yield {"event": "result", "result": task.result()}
    finally:
        await cancel_and_wait(task)
