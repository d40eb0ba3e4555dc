"""offload(): a step on a journal, done beside the event loop where the journal waits for a network."""

from asyncio import CancelledError, wait
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from utools.threads import Threads

T = TypeVar("T")


class HasThreads(Protocol):
    """A journal, or whatever else is in the same database."""

    @property
    def threads(self) -> Threads | None: ...


async def offload(place: HasThreads, step: Callable[[], T]) -> T:
    """What a step on a journal gives: in one of its threads where it has them, else at once.

    When the caller is cancelled, a step that has begun goes on, and nobody hears of its end.
    """
    return step() if place.threads is None else await place.threads.run(step)


async def offload_through(place: HasThreads, step: Callable[[], T]) -> tuple[T, bool]:
    """What `offload` gives, once the step has ended, and whether the caller was cancelled meanwhile.

    CancelledError where it was cancelled and the step failed.
    """
    if place.threads is None:
        return step(), False
    cancellations: list[bool] = []
    try:
        result = await see_through(place.threads, step, lambda: cancellations.append(True))
    except Exception as error:
        if cancellations:
            raise CancelledError from error
        raise
    return result, bool(cancellations)


async def see_through(threads: Threads, step: Callable[[], T], on_cancel: Callable[[], None]) -> T:
    """What a step gives in a thread. A caller who is cancelled waits nevertheless: `on_cancel` hears of it at once."""
    answer = await insist(lambda: threads.begin(step), on_cancel)
    await insist(lambda: wait({answer}), on_cancel)
    return answer.result()


async def insist(attempt: Callable[[], Awaitable[T]], on_cancel: Callable[[], None]) -> T:
    """What an attempt gives, which is made again where the caller is cancelled meanwhile."""
    while True:
        try:
            return await attempt()
        except CancelledError:
            on_cancel()
