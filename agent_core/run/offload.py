"""offload(): a step on a journal, done beside the event loop where the journal waits for a network."""

from asyncio import CancelledError, ensure_future, wait
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from utools.threads import Threads

T = TypeVar("T")


class Place(Protocol):
    """A journal, or whatever else is in the same database."""

    @property
    def threads(self) -> Threads | None: ...


async def offload(place: Place, step: Callable[[], T]) -> T:
    """What a step on a journal gives: in one of its threads where it has them, else at once.

    When the caller is cancelled, a step that has begun goes on, and nobody hears of its end.
    """
    return step() if place.threads is None else await place.threads.run(step)


async def offload_through(place: Place, step: Callable[[], T]) -> tuple[T, bool]:
    """What `offload` gives, once the step has ended, and whether the caller was cancelled meanwhile."""
    return (step(), False) if place.threads is None else await see_through(place.threads.run(step))


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
