"""Daemon threads for sync tools, under a fixed limit; an abandoned one holds its slot, never the process."""

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio  # where it runs it is there already; importing it takes longer than all of utools

T = TypeVar("T")


class DaemonThreads:
    """At most `limit` calls at a time, each in a daemon thread; may be shared by several event loops."""

    def __init__(self, limit: int = 32) -> None:
        self._lock = threading.Lock()
        self._free = limit
        self._waiting: deque[asyncio.Future[Any]] = deque()

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """`function(*args)` in a thread. Waits for a slot first; when cancelled, the thread goes on alone."""
        from asyncio import get_running_loop

        await self._slot()
        answer: asyncio.Future[T] = get_running_loop().create_future()
        context = contextvars.copy_context()
        work = threading.Thread(target=self._work, args=(context, function, args, answer), daemon=True)
        try:
            work.start()
        except RuntimeError:
            self._release()
            raise
        return await answer

    async def _slot(self) -> None:
        from asyncio import CancelledError, get_running_loop

        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            turn: asyncio.Future[Any] = get_running_loop().create_future()
            self._waiting.append(turn)
        try:
            await turn
        except CancelledError:
            self._give_up(turn)
            raise

    def _give_up(self, turn: "asyncio.Future[Any]") -> None:
        """Leave the queue; a slot that was granted in the same moment goes to the next."""
        with self._lock:
            queued = turn in self._waiting
            if queued:
                self._waiting.remove(turn)
        if not queued:
            self._release()

    def _release(self) -> None:
        with self._lock:
            while self._waiting:
                if _tell(self._waiting.popleft(), None, None):
                    return
            self._free += 1

    def _work(
        self,
        context: contextvars.Context,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        answer: "asyncio.Future[Any]",
    ) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, *args)
        except Exception as raised:  # the caller's to judge, in its own loop
            # a future refuses StopIteration
            error = RuntimeError(f"StopIteration: {raised}") if isinstance(raised, StopIteration) else raised
        except BaseException as raised:
            error = RuntimeError(f"the tool ended its thread with {type(raised).__name__}")
        finally:
            self._release()
        _tell(answer, result, error)


def _tell(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> bool:
    """Settle `future` from another thread; false if its loop is gone."""

    def settle() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    try:
        future.get_loop().call_soon_threadsafe(settle)
    except RuntimeError:
        return False
    return True
