"""An act that lives: it tells Temporal so, and is finished even if Temporal no longer waits for it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext, suppress
from time import monotonic
from typing import Any, TypeVar

from temporalio import activity

from engine_shim.runs.temporal.heart import Heart, Pulse
from engine_shim.runs.temporal.timeouts import HEARTBEAT, beat_interval

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
async def beating(heart: Heart | None) -> AsyncIterator[Pulse]:
    """Tell Temporal that the activity lives, until it ends; the heart does so while the event loop is busy."""
    info = activity.info()
    interval_s = beat_interval(info.heartbeat_timeout).total_seconds()
    pulse = Pulse(info.task_token, interval_s, monotonic())

    async def beat() -> None:
        while True:
            await asyncio.sleep(interval_s)
            activity.heartbeat()
            pulse.beat(monotonic())

    task = asyncio.create_task(beat())
    try:
        with nullcontext() if heart is None else heart.watching(pulse):
            yield pulse
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def was_given_up(pulse: Pulse) -> bool:
    """Return whether Temporal may have given the activity up: it was silent for as long as its timeout."""
    timeout = activity.info().heartbeat_timeout or HEARTBEAT
    return pulse.longest_silence_s(monotonic()) > timeout.total_seconds()
