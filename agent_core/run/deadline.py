"""run_within(): work that ends in its time, or is abandoned."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
GRACE_S: Final = 0.25
"""How long work that was cancelled is waited for, while it closes what it has opened."""


class TooLate(Exception):
    """The work did not end in its time."""


class _Interrupted(Exception):
    """The work was interrupted by Ctrl-C."""


class CancelledItself(Exception):
    """The work raised a cancellation that was not requested."""


async def run_within(work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """Return what `work` gives within `seconds`. Work that goes on for `GRACE_S` after its cancellation is abandoned.

    The work has a task of its own: cancellations, timeouts and groups within it reach nobody else, however late they
    come. A future that the task itself sets at its end is a cheaper wait than `asyncio.wait`. Raises TooLate;
    CancelledItself; asyncio.CancelledError where the caller is cancelled.
    """
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    task = _start(loop, _release_after(work, ended))
    timer = None if seconds is None else loop.call_later(seconds, _release, ended)
    try:
        if ended.done():  # already: others have their turn all the same, such as who wants the run stopped
            await asyncio.sleep(0)
        await ended
    except asyncio.CancelledError:
        await _cancel(task, work)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    if not task.done():
        await _cancel(task, work)
        raise TooLate
    if not task.cancelled() and isinstance(task.exception(), _Interrupted):
        await asyncio.sleep(GRACE_S)  # the loop raises it: who runs the loop cancels this, too, unless it goes on
        raise CancelledItself("it was interrupted")
    if task.cancelled():
        raise CancelledItself("it cancelled itself")
    return task.result()


def _start(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Return a task, which has begun already where Python can do that: work that waits for nothing has ended then."""
    if sys.version_info >= (3, 12) and loop.get_task_factory() is None:
        return asyncio.Task(work, loop=loop, eager_start=True)
    return loop.create_task(work)


async def _release_after(work: Coroutine[Any, Any, T], ended: "asyncio.Future[None]") -> T:
    try:
        return await work
    except KeyboardInterrupt as interruption:  # in a task that has begun already it would end the caller's as well
        asyncio.get_running_loop().call_soon(_leave_loop, interruption)
        raise _Interrupted from None
    finally:
        _release(ended)


def _leave_loop(interruption: KeyboardInterrupt) -> None:
    raise interruption


def _release(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)


async def _cancel(task: "asyncio.Task[Any]", work: Coroutine[Any, Any, Any]) -> None:
    """Cancel work, and wait until it has closed what it opened. What it returns or raises says nothing any more."""

    def forget(done: "asyncio.Future[Any]") -> None:
        if not done.cancelled():
            done.exception()
        work.close()  # which has not begun, if the cancellation came at once; this waiting may be cancelled, too

    task.add_done_callback(forget)
    task.cancel()
    await asyncio.wait((task,), timeout=GRACE_S)
