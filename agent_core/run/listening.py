"""Listening: the branches of a run that wait for a time or a signal, and whether anything else goes on beside them."""

import asyncio
from datetime import datetime
from typing import Final

SHORT_S: Final = 5.0
"""Seconds up to which a wait keeps its run driven: to let the run go and to take it up again costs as much."""


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one time to another, both in ISO 8601 with a zone; negative if `end` is the earlier."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


class Listening:
    """Counts the branches of a run that is driven, without those that wait for an event or for their own branches; at
    first it is one, the whole run.

    Once it counts none, and no wait ends within SHORT_S, listening `is_over`: every wait is given up, and the run is
    let go until one of the events comes.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._busy = 1
        self._waits: dict[asyncio.Event, float | None] = {}
        """Each wait, with the time of the event loop when it ends."""

    def reset(self) -> None:
        """Begin anew, with one branch."""
        self.is_over, self._busy = False, 1

    def add(self, branches: int) -> None:
        """Count so many branches more; a negative number counts them less."""
        self._busy += branches
        if self.is_over and self._busy and not self._waits:  # every wait was given up, and something else goes on
            self.is_over = False
        self._end_if_idle()

    async def wait(self, until: str | None, now: str) -> None:
        """Wait until the time has come, there is news, or listening is over."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        left = None if until is None else max(0.0, seconds_between(now, until))
        self._waits[news] = None if left is None else loop.time() + left
        try:
            self.add(-1)
            async with asyncio.timeout(left):
                await news.wait()
        except TimeoutError:
            pass
        finally:
            del self._waits[news]
            self._busy += 1

    def notify(self) -> None:
        """Let every wait look for what has come."""
        for news in self._waits:
            news.set()

    def _end_if_idle(self) -> None:
        if self._busy or not self._waits:
            return
        soon = asyncio.get_running_loop().time() + SHORT_S
        if not any(end is not None and end <= soon for end in self._waits.values()):
            self.is_over = True
            self.notify()
