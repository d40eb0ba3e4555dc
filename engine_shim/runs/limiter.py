"""A bounded number of places, for which event loops in any threads wait in order."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Lock


class RunLimiter:
    """`async with places.taken():` holds one of `count` places; who finds none waits, first come, first served.

    A turn is done in its own loop when it has its place, and gives it back however it ends: by a cancellation in
    the same moment too, and, when its loop was closed over it, as Python collects what is left of it. That may
    happen anywhere, even within a change that this thread is making, so changes queue up and nobody waits to make one.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._placed: set[int] = set()  # without their futures, which would keep alive what is left of a closed loop
        self._changes: deque[Callable[[], object]] = deque()
        self._changing = Lock()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        number = await self._take()  # a coroutine, as a closed loop leaves its async generators unfinished
        try:
            yield
        finally:
            self._leave(number)

    async def _take(self) -> int:
        number, turn = next(self._numbers), asyncio.get_running_loop().create_future()
        try:
            self._change(lambda: self._waiting.setdefault(number, turn))
            await turn
        except BaseException:
            self._leave(number)
            raise
        return number

    def _leave(self, number: int) -> None:
        self._change(lambda: self._drop(number))

    def _change(self, change: Callable[[], object]) -> None:
        self._changes.append(change)
        while self._changes and self._changing.acquire(blocking=False):  # whoever holds it looks again afterwards
            try:
                while self._changes:
                    self._changes.popleft()()
                    self._fill()
            finally:
                self._changing.release()

    def _drop(self, number: int) -> None:
        self._waiting.pop(number, None)
        self._placed.discard(number)

    def _fill(self) -> None:
        while self._waiting and len(self._placed) < self.count:
            number = next(iter(self._waiting))
            if _told(self._waiting.pop(number)):
                self._placed.add(number)


def _told(turn: asyncio.Future[None]) -> bool:
    """Whether the turn's loop will hear that it has its place; it will not when it is closed."""
    try:
        turn.get_loop().call_soon_threadsafe(_settle, turn)
    except RuntimeError:
        return False
    return True


def _settle(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
