"""Running a coroutine to its end for a caller without an event loop, or inside one."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from agent_core.errors import NoEventLoop
from agent_core.run.cancellation import is_in_trio

Result = TypeVar("Result")
GRACE = 0.5
"""Seconds that abandoned tasks have to end when the loop closes."""


def run_sync(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Return what the coroutine of `work` returns, run in an event loop of its own.

    What interrupts the caller, such as Ctrl-C, cancels it, in a notebook too, where it runs in a thread. Raises
    NoEventLoop in a green thread beside another run.
    """
    is_in_loop = _is_in_loop()
    if is_in_loop:
        _refuse_green_threads()
    loop = asyncio.new_event_loop()
    main = loop.create_task(work())
    if not is_in_loop:
        return _run_to_end(loop, main)
    ended: Future[Result] = Future()

    def run_beside() -> None:
        try:
            ended.set_result(_run_to_end(loop, main))
        except BaseException as error:  # handed to the caller's thread, whatever it is
            ended.set_exception(error)

    thread = threading.Thread(target=run_beside)
    try:
        thread.start()
        wait([ended])  # a thread whose join was interrupted counts as ended before Python 3.13
    except BaseException:
        with suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(main.cancel)
        if thread.ident is not None:  # else it ends at once, if it begins at all
            wait([ended])
        raise
    return ended.result()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return is_in_trio()
    return True


def _refuse_green_threads() -> None:
    """Raise NoEventLoop where threads are green: all of them share the event loop that runs in this thread."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent is not None and gevent.is_module_patched("threading"):
        by = "gevent"
    elif eventlet is not None and eventlet.is_monkey_patched("thread"):
        by = "eventlet"
    else:
        return
    raise NoEventLoop(
        f"another run has the event loop of this thread, which the green threads of {by} share; run agents in a"
        f" process without {by}, such as a worker that has threads or processes"
    )


def _run_to_end(loop: asyncio.AbstractEventLoop, main: "asyncio.Task[Result]") -> Result:
    """Like asyncio.run, but an abandoned task that ignores its cancellation is not waited for."""
    try:
        return loop.run_until_complete(main)
    finally:
        if not main.done():  # it was interrupted, and cancels itself what it has begun
            _end_tasks(loop, {main})
        _end_tasks(loop, asyncio.all_tasks(loop))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _end_tasks(loop: asyncio.AbstractEventLoop, tasks: "set[asyncio.Task[Any]]") -> None:
    """Cancel tasks and wait for their ends. An interruption leaves the loop once more for each task that it passes
    through on its way."""
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    ending = loop.create_task(asyncio.wait(tasks, timeout=GRACE))
    while not ending.done():
        with suppress(KeyboardInterrupt):
            loop.run_until_complete(ending)
    for task in ending.result()[0]:
        if not task.cancelled():
            task.exception()
