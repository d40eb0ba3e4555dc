"""Running a coroutine to its end for a caller that has no event loop, or that stands in one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
GRACE = 0.5
"""Seconds that what is left behind has to end in when the loop closes."""


def run_sync(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """What the coroutine of `work` returns, run in an event loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
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


def _run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """asyncio.run, but for a tool that was left behind and does not heed its cancellation: it is not waited for."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=GRACE))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
