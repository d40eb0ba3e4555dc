"""An event loop in a daemon thread of its own: connections live there, whichever loop their callers come from."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from utools.forks import renew_in_forks

T = TypeVar("T")

GRACE = 0.5
"""Seconds that tasks have to end after what they work with has been closed."""


class LoopThread:
    """Starts at the first use. When it or the process ends, `on_close` is awaited, for `seconds` at most."""

    def __init__(self, on_close: Callable[[], Coroutine[Any, Any, None]] | None = None, *, seconds: float) -> None:
        self._on_close, self._seconds = on_close, seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self.begin_anew()
        renew_in_forks(self)

    def begin_anew(self) -> object:
        """Forget the loop of the parent, whose thread a fork has not."""
        loop, self._loop = self._loop, None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        return loop

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start the work there. Cancelling the future cancels the work."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="utools-sources", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work there, and wait for it in the caller's loop."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """End what runs there, and the thread. It may be used again."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        atexit.unregister(self.close)
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end_tasks(), loop).result(self._seconds)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(self._seconds)
        if not thread.is_alive():
            loop.close()

    async def _end_tasks(self) -> None:
        """Close, and cancel what does not end soon after, since its caller would wait without end."""
        if self._on_close is not None:
            await self._on_close()
        if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks, timeout=GRACE)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
