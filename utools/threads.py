"""Threads beside an event loop: for sync tools, and for what waits for a network.

An abandoned call keeps its slot, but never the process alive.
"""

import contextvars
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from utools.limiter import Limiter, settle
from utools.words.text import Text, error_words

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
IDLE_S: Final = 10.0
"""How long a thread waits for a further call before it ends."""
Calls = SimpleQueue[Callable[[], None]]


class Threads(Protocol):
    """Threads beside an event loop."""

    async def run(self, function: Callable[[], T]) -> T:
        """Return what the function gives, called in one of them."""
        ...

    async def begin(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """Return what the function will give: it is called by now, or will be at once."""
        ...


class DaemonThreads:
    """At most `limit` calls at a time, each in a daemon thread; several event loops may share it."""

    def __init__(self, limit: int = 32) -> None:
        self._limiter = Limiter(limit)
        self._idle: list[Calls] = []
        self._process = os.getpid()
        self._lock = threading.Lock()

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """`function(*args)` in a thread, after waiting for a slot. When the caller is cancelled, the thread goes on."""
        return await (await self.begin(function, *args))

    async def begin(self, function: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        """Return what `function(*args)` will give, once there is a slot for it: no task, which the end of a loop would
        cancel."""
        from asyncio import get_running_loop

        slot = await self._limiter.acquire()
        answer: asyncio.Future[T] = get_running_loop().create_future()
        call = partial(contextvars.copy_context().run, function, *args)
        try:
            self._hand_over(partial(self._work, slot, answer, call))
        except RuntimeError:
            self._limiter.release(slot)
            raise
        return answer

    def _hand_over(self, call: Callable[["Calls"], None]) -> None:
        """Give a call to a thread that waits for one, else to a new one. RuntimeError where no thread can be had."""
        with self._lock:
            if self._process != os.getpid():  # a fork has none of the threads
                self._process, self._idle = os.getpid(), []
            calls = self._idle.pop() if self._idle else None
        if calls is None:
            calls = SimpleQueue()
            threading.Thread(target=self._serve, args=(calls,), daemon=True).start()
        calls.put(partial(call, calls))

    def _serve(self, calls: Calls) -> None:
        """Make one call after another, until none comes for a while."""
        while True:
            try:
                call = calls.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if calls in self._idle:
                        self._idle.remove(calls)
                        return
                continue  # it is just given one
            call()
            del call  # what it holds is not kept for as long as the thread waits

    def _work(self, slot: int, answer: "asyncio.Future[Any]", call: Callable[[], Any], calls: Calls) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = call()
        except StopIteration as raised:  # a future refuses it
            error = RuntimeError(f"StopIteration: {error_words(raised)}")
        except Exception as raised:  # for the caller to handle, in its own loop
            error = raised
        except BaseException as raised:
            error = RuntimeError(Text("the tool ended its thread with {kind}", kind=type(raised).__name__))
            error.__cause__ = raised
        finally:
            with self._lock:
                self._idle.append(calls)
            self._limiter.release(slot)
        settle(answer, result, error)
