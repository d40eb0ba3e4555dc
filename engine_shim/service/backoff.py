"""Backoff: when a server tries again to drive on a run that could not be driven on."""

import time
from collections.abc import Callable
from typing import Final

FIRST_S: Final = 2.0
LONGEST_S: Final = 16.0
"""How long after a failure a run is tried again: twice as long each time."""


class Backoff:
    """The runs of one process that could not be driven on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[str, tuple[float, float]] = {}

    def note_failure(self, run: str) -> None:
        """Let a run wait, longer than the last time."""
        _, last = self._failed.get(run, (0.0, FIRST_S / 2))
        seconds = min(last * 2, LONGEST_S)
        self._failed[run] = (self._clock() + seconds, seconds)

    def is_due(self, run: str) -> bool:
        """Return whether a run may be tried: it did not fail, or long enough ago."""
        return self._failed.get(run, (0.0, 0.0))[0] <= self._clock()

    def forget(self, run: str) -> None:
        """A run continued, or came to rest."""
        self._failed.pop(run, None)
