"""Cancellation: what a cancelled caller still waits for, and the cancellation that continues afterwards as it came.

asyncio cancels a task once: it raises CancelledError where the task waits. A scope of anyio (Starlette cancels the
handler of a client that went away with one) cancels at every turn of the event loop, until the task has left the scope.
Whoever catches that and waits again is woken at once, again and again. So work that must end properly has a task of
its own, which is cancelled once, and the caller waits behind anyio's shield.
"""

import asyncio
import sys
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from agent_core.errors import NoEventLoop

T = TypeVar("T")
OnCancel = Callable[[CancelledError], None]


async def in_own_task(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` gives, in a task of its own.

    A caller who is cancelled, however often, cancels that task once and waits for its end. Then the caller's own
    CancelledError continues, or the error with which the work ended instead.
    """
    try:
        require_asyncio()
    except NoEventLoop:
        work.close()
        raise
    task = asyncio.create_task(work)
    try:
        cancellation = await _wait_out(task)
    except GeneratorExit:  # the caller's loop was closed over it, and the task's as well
        _close(task)
        raise
    if cancellation is None:
        return task.result()
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    try:
        raise cancellation
    finally:
        del cancellation  # it holds this frame


async def _wait_out(task: "asyncio.Task[Any]") -> CancelledError | None:
    """Wait until a task has ended, which is cancelled with the caller; the caller's last cancellation, if any."""
    try:
        await asyncio.wait({task})
    except CancelledError as first:
        cancellation = first
    else:
        return None
    return await _cancel_and_wait_out(task) or cancellation


async def _cancel_and_wait_out(task: "asyncio.Task[Any]") -> CancelledError | None:
    """Cancel a task once and wait until it has ended; the last cancellation of the caller meanwhile, if any."""
    cancellation = None
    task.cancel()
    with shielded():
        while not task.done():
            try:
                await asyncio.wait({task})
            except CancelledError as further:
                cancellation = further
    return cancellation


async def cancel_and_wait(task: "asyncio.Task[Any]") -> None:
    """Cancel a task, unless it has ended, and wait for its end. An error with which it ends then is raised, else a
    cancellation of the caller that came meanwhile."""
    if task.done():
        return
    cancellation = await _cancel_and_wait_out(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    if cancellation is not None:
        raise cancellation


def _close(task: "asyncio.Task[Any]") -> None:
    """Close what a task does, where its loop has ended; else cancel it."""
    if not task.get_loop().is_closed():
        task.cancel()
    elif (work := task.get_coro()) is not None:
        work.close()


async def retry_if_cancelled(attempt: Callable[[], Awaitable[T]], on_cancel: OnCancel) -> T:
    """Return what an attempt gives, which is made again where the caller is cancelled meanwhile."""
    try:
        return await attempt()
    except CancelledError as cancellation:
        on_cancel(cancellation)
    with shielded():
        while True:
            try:
                return await attempt()
            except CancelledError as cancellation:
                on_cancel(cancellation)


def shielded() -> AbstractContextManager[Any]:
    """Keep the cancellation of anyio's scopes away, as far as there can be any. Those of asyncio still come."""
    if "anyio" not in sys.modules:
        return nullcontext()
    from anyio import CancelScope

    return CancelScope(shield=True)


def require_asyncio() -> None:
    """Raise NoEventLoop outside an event loop of asyncio, such as in one of trio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        found = "trio's event loop" if is_in_trio() else "no event loop"
        raise NoEventLoop(
            f"agent_core runs on asyncio, and there is {found}: call a function that ends in `_sync` in a thread of its"
            " own, or await this one under asyncio.run"
        ) from None


def is_in_trio() -> bool:
    """Return whether the caller runs in an event loop of trio's."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())
