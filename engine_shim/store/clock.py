"""StoreClock: the time that all who share a store go by, kept without asking its database each time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from engine_shim.intervals import CLOCK_INTERVAL_S
from engine_shim.store.database import Database
from utools.databases.transaction import Transaction

ReadClock = Callable[[Transaction | None], float]
TOLERATED_S: Final = 1.0
"""How far the clock of a process may be from that of its store before it is worth telling."""

ADVICE: Final = "triggers, waits and webhooks go by the store's; let NTP keep the clocks of both machines"


@dataclass(frozen=True, slots=True)
class ClockDifference:
    """By how many seconds the clock of this process is ahead of its store's; negative where it is behind.

    `within` is how many seconds the measurement may be wrong by: half of the round trip.
    """

    seconds: float
    within: float = 0.0

    @property
    def is_notable(self) -> bool:
        """Whether the clocks differ by more than a second, however the round trip was divided."""
        return abs(self.seconds) - self.within > TOLERATED_S

    def __str__(self) -> str:
        return f"{abs(self.seconds):,.1f} seconds {'ahead of' if self.seconds > 0 else 'behind'} that of its store"


class _Measured(NamedTuple):
    """The time that a store had at some ticks of this process, and how many seconds that may be wrong by."""

    time: float
    ticks: float
    within: float


class StoreClock:
    """The time of a store. `read_clock` asks for it, within a transaction if there is one.

    A `remote` clock is that of a server. Between two queries it is continued by the process's own `ticks`, which no
    change of its `own` clock moves; before the first one it is the process's own. Any number of threads may share it.
    """

    def __init__(
        self,
        read_clock: ReadClock,
        *,
        remote: bool = False,
        own: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_clock, self.is_remote, self._own, self._ticks = read_clock, remote, own, ticks
        self._measured: _Measured | None = None

    @classmethod
    def of_database(cls, database: Database) -> "StoreClock":
        """Return the clock of a database: of its server, else of this machine."""
        return cls(database.read_clock, remote=database.threads is not None)

    @classmethod
    def of_machine(cls, clock: Callable[[], float]) -> "StoreClock":
        """Return a clock that is read by a function of this process."""
        return cls(lambda db: clock())

    def measure(self, db: Transaction | None = None) -> float:
        """Ask the store for its time, which it had in the midst of the round trip. JournalError if it is away.

        A slow answer does not replace a quick one, until that is old.
        """
        if not self.is_remote:
            return self._read_clock(db)
        begun = self._ticks()
        time_of_store = self._read_clock(db)
        within = (self._ticks() - begun) / 2
        found, last = _Measured(time_of_store, begun + within, within), self._measured
        if last is None or within <= last.within or found.ticks - last.ticks >= CLOCK_INTERVAL_S:
            self._measured = found
        return time_of_store

    def read(self) -> float:
        """Return the time of the store in seconds since 1970, without a query."""
        if not self.is_remote:
            return self._read_clock(None)
        if self._measured is None:
            return self._own()
        return self._measured.time + self._ticks() - self._measured.ticks

    def now(self) -> datetime:
        """Return the time of the store."""
        return datetime.fromtimestamp(self.read(), UTC)

    def write_now(self, ago: float = 0.0) -> str:
        """Return the time of the store so many seconds ago, as records write times."""
        from agent_core.run.clock import write_time  # a list of runs starts without it

        return write_time(self.now() - timedelta(seconds=ago))

    def compare(self) -> ClockDifference:
        """Return by how much the process's own clock differs now from the time that was measured."""
        if self._measured is None:
            return ClockDifference(0.0)
        return ClockDifference(self._own() - self.read(), self._measured.within)
