"""ClockWatch: measures the clock of a store now and then, and tells when that of this process differs."""

import asyncio
import logging

from agent_core.run.blocking import run_blocking
from engine_shim.intervals import CLOCK_INTERVAL_S
from engine_shim.store.clock import ADVICE, TOLERATED_S, ClockDifference
from engine_shim.store.run_store import RunStore

log = logging.getLogger("engine_shim")


class ClockWatch:
    """The clock of one store, as a server or a worker looks at it."""

    def __init__(self, store: RunStore) -> None:
        self._store, self._told = store, ClockDifference(0.0)

    async def run_forever(self) -> None:
        """Measure the clock now and then, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(CLOCK_INTERVAL_S)

    async def look(self) -> None:
        """Measure the clock, and log how it differs: once, and again when that has changed."""
        await run_blocking(self._store.journal, self._store.clock.measure)
        found, before = self._store.clock.compare(), self._told
        if not found.is_notable:
            found = ClockDifference(0.0)
        if abs(found.seconds - before.seconds) <= TOLERATED_S:
            return
        self._told = found
        if found.is_notable:
            log.warning("the clock of this machine is %s: %s", found, ADVICE)
        else:
            log.info("the clock of this machine agrees with that of its store again")

    def find_difference(self) -> float | None:
        """Return by how many seconds this machine is ahead of its store; None where both agree within a second."""
        found = self._store.clock.compare()
        return round(found.seconds, 1) if found.is_notable else None
