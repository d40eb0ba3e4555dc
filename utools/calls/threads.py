"""DaemonThreads: runs sync tools under a fixed limit. An abandoned call keeps its slot, but never the process alive."""

import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from utools.calls.limiter import Limiter, settle
from utools.words.text import Text

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class DaemonThreads:
    """At most `limit` calls at a time, each in a daemon thread; several event loops may share it."""

    def __init__(self, limit: int = 32) -> None:
        self._limiter = Limiter(limit)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """`function(*args)` in a thread, after waiting for a slot. When the caller is cancelled, the thread goes on."""
        from asyncio import get_running_loop

        slot = await self._limiter.acquire()
        answer: asyncio.Future[T] = get_running_loop().create_future()
        call = contextvars.copy_context().run
        thread = threading.Thread(target=self._work, args=(slot, answer, call, function, *args), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._limiter.release(slot)
            raise
        return await answer

    def _work(self, slot: int, answer: "asyncio.Future[Any]", call: Callable[..., Any], *args: Any) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = call(*args)
        except StopIteration as raised:  # a future refuses it
            error = RuntimeError(f"StopIteration: {raised}")
        except Exception as raised:  # for the caller to handle, in its own loop
            error = raised
        except BaseException as raised:
            error = RuntimeError(Text("the tool ended its thread with {kind}", kind=type(raised).__name__))
            error.__cause__ = raised
        finally:
            self._limiter.release(slot)
        settle(answer, result, error)
