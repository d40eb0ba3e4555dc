"""Limiter: a bounded number of slots, for which callers in any threads and event loops wait in order."""

import itertools
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio  # a caller has it already; importing it takes longer than importing all of utools


class Limiter:
    """At most `count` slots are taken at a time; who finds none waits, first come, first served.

    A waiter learns in its own loop that it has a slot. A slot comes back however its holder ends: by a cancellation
    in the same moment, and also when its loop was closed over it and Python collects the remains. That may happen
    anywhere, even while this thread is changing the limiter. So changes are queued, and nobody waits to make one.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._taken: set[int] = set()  # without futures, which would keep the remains of a closed loop alive
        self._changes: deque[Callable[[], object]] = deque()
        self._changing = threading.Lock()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """`async with limiter.slot():` waits for a slot and holds it."""
        number = await self.acquire()  # a coroutine, because a closed loop leaves its async generators unfinished
        try:
            yield
        finally:
            self.release(number)

    async def acquire(self) -> int:
        """Wait for a slot; returns its number."""
        from asyncio import get_running_loop

        number, granted = next(self._numbers), get_running_loop().create_future()
        try:
            self._change(lambda: self._waiting.setdefault(number, granted))
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

    def _drop(self, number: int) -> None:
        self._waiting.pop(number, None)
        self._taken.discard(number)

    def _grant(self) -> None:
        while self._waiting and len(self._taken) < self.count:
            number = next(iter(self._waiting))
            if settle(self._waiting.pop(number), None):
                self._taken.add(number)


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
