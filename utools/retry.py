"""retry(): an attempt at what may be away for a while, made again after pauses that grow."""

from asyncio import sleep
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses between attempts in seconds: each `factor` times the one before, none longer than `longest`."""

    first: float
    longest: float = inf
    factor: float = 2.0

    def __iter__(self) -> Iterator[float]:
        pause = self.first
        while True:
            yield pause
            pause = min(pause * self.factor, self.longest)


async def retry(
    attempt: Callable[[], Awaitable[T]],
    is_transient: Callable[[Exception], bool],
    pauses: Pauses,
    *,
    patience: float = inf,
) -> T:
    """Return what an attempt gives, made again after each error that `is_transient`.

    Any other error is raised, and the last one where the next attempt would begin after `patience` seconds.
    """
    until, coming = monotonic() + patience, iter(pauses)
    while True:
        pause = next(coming)
        try:
            return await attempt()
        except Exception as error:
            if not is_transient(error) or monotonic() + pause > until:
                raise
        await sleep(pause)
