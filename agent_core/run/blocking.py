"""run_blocking(): a step on a journal, done beside the event loop where the journal waits for a network."""

from asyncio import CancelledError, wait
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from agent_core.run.cancellation import OnCancel, retry_if_cancelled
from utools.threads import Threads

T = TypeVar("T")
P = ParamSpec("P")


class HasThreads(Protocol):
    """A journal, or whatever else is in the same database."""

    @property
    def threads(self) -> Threads | None: ...


async def run_blocking(place: HasThreads, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a step on a journal gives: in one of its threads where it has them, else at once.

    When the caller is cancelled, a step that has begun continues, and no caller hears of its end.
    """
    return step(*args, **kwargs) if place.threads is None else await place.threads.run(partial(step, *args, **kwargs))


async def finish_blocking(place: HasThreads, step: Callable[[], T]) -> tuple[T, CancelledError | None]:
    """Return what `run_blocking` gives, once the step has ended, and the cancellation of the caller meanwhile.

    Where the caller was cancelled and the step failed, the cancellation continues.
    """
    if place.threads is None:
        return step(), None
    cancellations: list[CancelledError] = []
    try:
        result = await finish_despite_cancel(place.threads, step, cancellations.append)
    except Exception as error:
        if cancellations:
            raise cancellations[-1] from error
        raise
    return result, cancellations[-1] if cancellations else None


async def finish_despite_cancel(threads: Threads, step: Callable[[], T], on_cancel: OnCancel) -> T:
    """Return what a step gives in a thread. A caller who is cancelled waits nevertheless: `on_cancel` hears of it at
    once."""
    answer = await retry_if_cancelled(lambda: threads.begin(step), on_cancel)
    await retry_if_cancelled(lambda: wait({answer}), on_cancel)
    return answer.result()
