"""Threads beside an event loop: for sync tools, and for what waits for a network.

All calls of a process take their threads from one set, and leave them to the next call. An abandoned call keeps its
slot, but never the process alive.
"""

import contextvars
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from utools.forks import renew_in_forks
from utools.limiter import Limiter, settle
from utools.words.text import Text, error_words

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
IDLE_S: Final = 10.0
"""How long a thread waits for a further call before it ends."""
TOOLS_AT_ONCE: Final = 256
"""How many sync tools of a process run at a time, those that are past their time and cannot be stopped among them."""
DEPTH: Final = contextvars.ContextVar("DEPTH", default=0)
"""In how many sync tools a call is made: a tool may run an agent, and wait for it."""
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
    """At most `limit` calls at a time, each in a daemon thread; several event loops may share it.

    With `of_tools` they are also among the `TOOLS_AT_ONCE` calls of the process; those that a tool in a thread makes
    are counted apart, since it waits for them.
    """

    def __init__(self, limit: int = 32, *, of_tools: bool = False) -> None:
        self._limiter, self._of_tools = Limiter(limit), of_tools

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """`function(*args)` in a thread, after waiting for a slot. When the caller is cancelled, the thread goes on."""
        return await (await self.begin(function, *args))

    async def begin(self, function: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        """Return what `function(*args)` will give, once there is a slot for it: no task, which the end of a loop would
        cancel."""
        from asyncio import get_running_loop

        threads, context, held = _threads_of_process(), contextvars.copy_context(), ExitStack()
        try:
            limiter = self._limiter
            held.callback(limiter.release, await limiter.acquire())
            if self._of_tools:
                limiter = threads.limiter_of_tools(context.get(DEPTH, 0))
                if limiter.is_full:
                    _warn_of_waiting()
                held.callback(limiter.release, await limiter.acquire())
                context.run(DEPTH.set, context.get(DEPTH, 0) + 1)
            answer: asyncio.Future[T] = get_running_loop().create_future()
            threads.hand_over(partial(context.run, function, *args), held.close, answer)
        except BaseException:
            held.close()
            raise
        return answer


class _ThreadsOfProcess:
    """The daemon threads of one process: a call has one to itself, and those that have none wait for the next."""

    def __init__(self) -> None:
        self.begin_anew()
        renew_in_forks(self)

    def begin_anew(self) -> None:
        """Know no thread: a fork has none of its parent's."""
        self._idle: list[Calls] = []
        self._lock = threading.Lock()
        self._limiters: dict[int, Limiter] = {}

    def limiter_of_tools(self, depth: int) -> Limiter:
        """Return the slots of the tools that are called in so many others."""
        return self._limiters.get(depth) or self._limiters.setdefault(depth, Limiter(TOOLS_AT_ONCE))

    def hand_over(self, call: Callable[[], Any], end: Callable[[], None], answer: "asyncio.Future[Any]") -> None:
        """Give a call to a thread that waits for one, else to a new one. RuntimeError where no thread can be had."""
        with self._lock:
            calls = self._idle.pop() if self._idle else None
        if calls is None:
            calls = SimpleQueue()
            threading.Thread(target=self._serve, args=(calls,), daemon=True).start()
        calls.put(partial(self._work, call, end, answer, calls))

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

    def _work(
        self, call: Callable[[], Any], end: Callable[[], None], answer: "asyncio.Future[Any]", calls: Calls
    ) -> None:
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
            end()
        settle(answer, result, error)


def _warn_of_waiting() -> None:
    import logging

    logging.getLogger("utools").warning(
        "a call of a sync tool waits: %d of them run in this process, or are past their time and cannot be stopped; "
        "give what they wait for a time limit, or make them async",
        TOOLS_AT_ONCE,
    )


@cache
def _threads_of_process() -> _ThreadsOfProcess:
    return _ThreadsOfProcess()
