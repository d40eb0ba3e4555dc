"""run_within(): work that ends in its time, or is abandoned."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TooLate(Exception):
    """The work did not end in its time."""


class CancelledItself(Exception):
    """The work raised a cancellation that was not requested."""


async def run_within(work: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """Return what `work` gives within `seconds`. Work that ignores its cancellation is abandoned, not waited for."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        raise TooLate
    if task.cancelled():
        raise CancelledItself
    return task.result()


def _abandon(task: "asyncio.Future[Any]") -> None:
    task.add_done_callback(_retrieve_exception)
    task.cancel()


def _retrieve_exception(done: "asyncio.Future[Any]") -> None:
    if not done.cancelled():
        done.exception()
