"""run_within(): work that ends in its time, or is abandoned.

The work is advanced by the caller's own task: a task of its own, and a wait for that, would cost as much as the rest of
a short act. Only work that goes on although it was cancelled is given one.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, copy_context
from types import coroutine
from typing import Any, Final, TypeVar
from weakref import WeakSet

T = TypeVar("T")
GRACE_S: Final = 0.25
"""How long work that was cancelled is waited for, while it closes what it has opened."""


_ABORTED: Final = WeakSet["asyncio.Task[Any]"]()


class TooLate(Exception):
    """The work did not end in its time."""


class CancelledItself(Exception):
    """The work raised a cancellation that was not requested."""


@coroutine
def run_within(work: Coroutine[Any, Any, T], seconds: float | None) -> Generator[Any, Any, T]:
    """Return what `work` gives within `seconds`, in a copy of the caller's context.

    Work that has not ended `GRACE_S` after its time or after `abort` is abandoned: it goes on by itself, and nobody
    waits for it. Another cancellation of the task may be one of the work's own, by a timeout or a group within it.
    Raises TooLate; CancelledItself; asyncio.CancelledError where the caller is cancelled.
    """
    task, context = _current_task(), copy_context()
    alarm, requested = _Alarm(task), task.cancelling()
    timer = None if seconds is None else task.get_loop().call_later(seconds, alarm.ring)
    has_waited = False
    try:
        awaited = context.run(work.send, None)
        while True:
            try:
                has_waited = True
                yield awaited
            except BaseException as error:  # a cancellation of the caller, or what came of that which is awaited
                if alarm.count or task in _ABORTED:
                    yield from _wind_up(work, context, error)
                    raise
                awaited = context.run(work.throw, error)
            else:
                awaited = context.run(work.send, None)
    except StopIteration as end:
        result: T = end.value
    except asyncio.CancelledError:
        was_late = alarm.reset()
        if task.cancelling() > requested:
            raise
        raise (TooLate if was_late else CancelledItself) from None
    finally:
        if timer is not None:
            timer.cancel()
    if not has_waited:
        yield  # what else the event loop has to do is not kept waiting by acts that end at once
    return result


def abort(task: "asyncio.Task[Any]") -> None:
    """Cancel a task, and abandon what it runs within a time if that goes on."""
    _ABORTED.add(task)
    task.cancel()


class _Alarm:
    """Cancels a task, and knows how often."""

    __slots__ = ("count", "task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self.task, self.count = task, 0

    def ring(self) -> None:
        self.count += 1
        self.task.cancel()

    def reset(self) -> bool:
        """Take the cancellations back. Return whether there were any."""
        count, self.count = self.count, 0
        for _ in range(count):
            self.task.uncancel()
        return count > 0


def _wind_up(work: Coroutine[Any, Any, Any], context: Context, error: BaseException) -> Generator[Any]:
    """Cancel work, and wait until it has ended; abandon it when the caller is cancelled again, or after `GRACE_S`.

    What it returns or raises says nothing any more.
    """
    task = _current_task()
    requested, alarm = task.cancelling(), _Alarm(task)
    timer = task.get_loop().call_later(GRACE_S, alarm.ring)
    thrown: BaseException | None = error
    try:
        while True:
            awaited = context.run(work.send, None) if thrown is None else context.run(work.throw, thrown)
            if task.cancelling() > requested:
                rest = task.get_loop().create_task(_go_on(work, awaited), context=context)
                rest.add_done_callback(_retrieve_exception)
                return
            thrown = None
            try:
                yield awaited
            except BaseException as again:
                thrown = again
    except (Exception, asyncio.CancelledError):
        return
    finally:
        timer.cancel()
        alarm.reset()


async def _go_on(work: Coroutine[Any, Any, Any], awaited: Any) -> None:
    """Advance abandoned work to its end, from what it awaits."""
    await _resume(work, awaited)


@coroutine
def _resume(work: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any]:
    while True:
        try:
            yield awaited
        except BaseException as error:
            thrown: BaseException | None = error
        else:
            thrown = None
        try:
            awaited = work.send(None) if thrown is None else work.throw(thrown)
        except StopIteration:
            return


def _retrieve_exception(done: "asyncio.Future[Any]") -> None:
    if not done.cancelled():
        done.exception()


def _current_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task
