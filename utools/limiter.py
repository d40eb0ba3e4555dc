"""Limiter: a bounded number of slots, for which callers in any threads and event loops wait in order."""

import itertools
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from utools.forks import renew_in_forks

if TYPE_CHECKING:
    import asyncio  # a caller has it already; importing it takes longer than importing all of utools


class Limiter:
    """At most `count` slots are taken at a time; who finds none waits. There is a line for each name, and the lines
    take turns; within one it is first come, first served.

    A waiter learns in its own loop that it has a slot. A slot comes back however its holder ends: by a cancellation
    in the same moment, and also when its loop was closed over it and Python collects the remains. That may happen
    anywhere, even while this thread is changing the limiter. So changes are queued, and making one never waits.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.begin_anew()
        renew_in_forks(self)

    def begin_anew(self) -> None:
        """Have all slots free: a fork has none of the threads that held one."""
        self._numbers = itertools.count()
        self._lines: dict[Hashable, dict[int, asyncio.Future[None]]] = {}
        self._line_of: dict[int, Hashable] = {}
        self._taken: set[int] = set()  # without futures, which would keep the remains of a closed loop alive
        self._changes: deque[Callable[[], object]] = deque()
        self._changing = threading.Lock()

    @asynccontextmanager
    async def slot(self, line: Hashable = None) -> AsyncIterator[None]:
        """`async with limiter.slot():` waits for a slot in a line, and holds it."""
        number = await self.acquire(line)  # a coroutine, because a closed loop leaves its async generators unfinished
        try:
            yield
        finally:
            self.release(number)

    def line(self, name: Hashable) -> "Line":
        """Return the line of a name."""
        return Line(self, name)

    def count_waiting(self, line: Hashable = None) -> int:
        """Return how many wait in a line."""
        return len(self._lines.get(line, ()))

    @property
    def is_full(self) -> bool:
        """Whether all slots are taken."""
        return len(self._taken) >= self.count

    async def acquire(self, line: Hashable = None) -> int:
        """Wait for a slot in a line; returns its number."""
        from asyncio import get_running_loop

        number = next(self._numbers)
        self._change(lambda: self._take(number))
        if number in self._taken:
            return number
        granted = get_running_loop().create_future()
        try:
            self._change(lambda: self._queue(line, number, granted))
            if number not in self._taken:
                await granted
        except BaseException:
            self.release(number)
            raise
        return number

    def release(self, number: int) -> None:
        """Give a slot back, or leave the queue; from any thread."""
        self._change(lambda: self._drop(number))

    def _change(self, change: Callable[[], object]) -> None:
        self._changes.append(change)
        while self._changes and self._changing.acquire(blocking=False):  # the holder looks again after its release
            try:
                while self._changes:
                    self._changes.popleft()()
                    self._grant()
            finally:
                self._changing.release()

    def _take(self, number: int) -> None:
        """Take a free slot for which nobody waits: no loop need be woken for it."""
        if not self._lines and not self.is_full:
            self._taken.add(number)

    def _queue(self, line: Hashable, number: int, granted: "asyncio.Future[None]") -> None:
        if number in self._taken:  # a change that another thread has made since
            settle(granted, None)
            return
        self._lines.setdefault(line, {})[number] = granted
        self._line_of[number] = line

    def _drop(self, number: int) -> None:
        if number in self._line_of:
            self._leave(number)
        self._taken.discard(number)

    def _leave(self, number: int) -> "asyncio.Future[None]":
        """Take a waiter out of its line; a line without waiters is gone."""
        line = self._line_of.pop(number)
        granted = self._lines[line].pop(number)
        if not self._lines[line]:
            del self._lines[line]
        return granted

    def _grant(self) -> None:
        while self._lines and len(self._taken) < self.count:
            line = next(iter(self._lines))
            number = next(iter(self._lines[line]))
            if settle(self._leave(number), None):
                self._taken.add(number)
            if line in self._lines:
                self._lines[line] = self._lines.pop(line)  # the others are before it now


@dataclass(frozen=True, slots=True)
class Line:
    """The slots of a limiter as those of one line have them."""

    limiter: Limiter
    name: Hashable

    @property
    def waiting(self) -> int:
        """How many wait in this line."""
        return self.limiter.count_waiting(self.name)

    def slot(self) -> "AbstractAsyncContextManager[None]":
        """Wait for a slot and hold it."""
        return self.limiter.slot(self.name)


def settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None = None) -> bool:
    """Set a future's result or error from any thread, in its own loop; False if that loop is closed."""

    def set_result() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    try:
        future.get_loop().call_soon_threadsafe(set_result)
    except RuntimeError:
        return False
    return True
