"""Running a coroutine to its end for a caller without an event loop, or inside one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agent_core.run.cancellation import is_in_trio

Result = TypeVar("Result")
GRACE = 0.5
"""Seconds that abandoned tasks have to end when the loop closes."""


def run_sync(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Return what the coroutine of `work` returns, run in an event loop of its own."""
    if not _is_in_loop():
        return _run_to_end(work())
    box: list[Result] = []
    failed: list[BaseException] = []

    def target() -> None:
        try:
            box.append(_run_to_end(work()))
        except BaseException as error:  # handed to the caller's thread, whatever it is
            failed.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return box[0]


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return is_in_trio()
    return True


def _run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Like asyncio.run, but an abandoned task that ignores its cancellation is not waited for."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        abandoned = asyncio.all_tasks(loop)
        for task in abandoned:
            task.cancel()
        if abandoned:
            loop.run_until_complete(asyncio.wait(abandoned, timeout=GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
