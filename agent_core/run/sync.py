"""Running a coroutine to its end for a caller without an event loop, or inside one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from agent_core.run.cancellation import is_in_trio

Result = TypeVar("Result")
GRACE = 0.5
"""Seconds that abandoned tasks have to end when the loop closes."""


def run_sync(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Return what the coroutine of `work` returns, run in an event loop of its own."""
    loop = asyncio.new_event_loop()
    return _run_beside(loop, work) if _is_in_loop() else _run_to_end(loop, work())


def _run_beside(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Return what the coroutine returns, run in a thread with the caller's context. What interrupts the caller, such as
    Ctrl-C in a notebook, cancels it."""
    box: list[Result] = []
    failed: list[BaseException] = []

    def target() -> None:
        try:
            box.append(_run_to_end(loop, work()))
        except BaseException as error:  # handed to the caller's thread, whatever it is
            failed.append(error)

    thread = threading.Thread(target=copy_context().run, args=(target,))
    thread.start()
    try:
        thread.join()
    except BaseException:
        with suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(_cancel_all, loop)
        thread.join()
        raise
    if failed:
        raise failed[0]
    return box[0]


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return is_in_trio()
    return True


def _run_to_end(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Result]) -> Result:
    """Like asyncio.run, but an abandoned task that ignores its cancellation is not waited for."""
    try:
        return loop.run_until_complete(work)
    finally:
        abandoned = asyncio.all_tasks(loop)
        _cancel_all(loop)
        if abandoned:
            loop.run_until_complete(asyncio.wait(abandoned, timeout=GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
