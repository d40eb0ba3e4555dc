"""offload(): a step on a journal, done beside the event loop where the journal waits for a network."""

from asyncio import CancelledError, ensure_future, wait
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from agent_core.journal.store import Journal
from utools.calls.threads import DaemonThreads

T = TypeVar("T")
THREADS: Final = DaemonThreads(8)
"""Those of all journals. More of them would wait for each other more than for a network."""


async def offload(journal: Journal, step: Callable[[], T]) -> T:
    """What a step on a journal gives: in a thread where the journal `is_remote`, else at once.

    A step that has begun is seen through: the cancellation of its caller goes on when it has ended.
    """
    if not journal.is_remote:
        return step()
    result, is_cancelled = await see_through(THREADS.run(step))
    if is_cancelled:
        raise CancelledError
    return result


async def see_through(work: Coroutine[Any, Any, T], on_cancel: Callable[[], None] = lambda: None) -> tuple[T, bool]:
    """What comes of some work, and whether its caller was cancelled meanwhile: `on_cancel` hears of it at once."""
    doing, is_cancelled = ensure_future(work), False
    while not doing.done():
        try:
            await wait({doing})
        except CancelledError:
            is_cancelled = True
            on_cancel()
    return doing.result(), is_cancelled
