"""An event loop of its own, in a daemon thread: connections live there, whichever loop their callers come from."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

ENDING = 0.5
"""Seconds that what was under way has to end, when what it works with is closed."""


class LoopThread:
    """Starts at the first use; `closing` is awaited, within `seconds`, when it or the process ends."""

    def __init__(self, closing: Callable[[], Coroutine[Any, Any, None]], *, seconds: float) -> None:
        self._closing, self._seconds = closing, seconds
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin the work there. Cancelling the future cancels the work."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="utools-sources", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the work done there, and wait for it in the caller's loop."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """End what lives there, and the thread. It may be used again."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        atexit.unregister(self.close)
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), loop).result(self._seconds)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(self._seconds)
        if not thread.is_alive():
            loop.close()

    async def _end(self) -> None:
        """Close, and cancel what has not ended soon after: who waits for it would wait for ever."""
        await self._closing()
        if left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=ENDING)
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
