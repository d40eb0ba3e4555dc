"""Orphans: for how long the unfinished runs without a driver have been so, as one server sees them."""

from collections.abc import Callable, Iterable
from time import monotonic


class Orphans:
    """The runs without a driver, and when this server saw each so first. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def note(self, runs: Iterable[str]) -> None:
        """Note which runs are without a driver now; all others are not."""
        now = self._clock()
        self._since = {run: self._since.get(run, now) for run in runs}

    def __len__(self) -> int:
        return len(self._since)

    @property
    def oldest_seconds(self) -> float:
        """For how long the one that was seen first has been without a driver; 0 if there is none."""
        since = self._since
        return self._clock() - min(since.values()) if since else 0.0
