"""An act that lives: it tells Temporal so, and is finished even if Temporal no longer waits for it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from temporalio import activity

from engine_shim.runs.temporal.settings import BEAT_S

T = TypeVar("T")


async def finish_despite_cancel(work: Coroutine[Any, Any, T], *, is_aborted_with_run: bool = False) -> T:
    """Return the result of work, even if Temporal no longer waits for it: the journal does."""
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            is_aborted = is_aborted_with_run and details is not None and details.cancel_requested
            if task.done() or is_aborted or activity.is_worker_shutdown():
                task.cancel()
                return await task


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Tell Temporal that the activity lives, until it ends."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            activity.heartbeat()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
