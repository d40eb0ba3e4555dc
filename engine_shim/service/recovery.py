"""Recovery: takes up the runs that servers have left in their midst, so that one that ends servers ends no others.

A server that ends in the midst of runs may have been ended by one of them. So a takeover is noted first. A
run without a new record since it was taken up before is taken up alone: until it has one, has come to rest or has gone
on for a while, nothing else is. One that was taken up three times without a new record is paused.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from engine_shim.errors import RunBusy
from engine_shim.runs.engine import Engine
from engine_shim.runs.steering import RECOVERY
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.takeovers import MOST, describe_takeovers

PROBATION_S: Final = 10.0
"""How long a run has to continue, while the server answers, to be none that ends servers."""
log = logging.getLogger("engine_shim")


@dataclass(slots=True)
class Recovery:
    """The takeovers of one process. `clock` counts seconds; `pauses` are the runs that it has paused."""

    engine: Engine
    store: AsyncRunStore
    is_driven: Callable[[str], bool]
    clock: Callable[[], float] = monotonic
    pauses: int = 0
    _unproven: dict[str, float] = field(default_factory=dict)
    _suspect: str | None = None

    async def take_up(self, run: str, drive: Callable[[], Awaitable[None]]) -> bool:
        """Take a run up by `drive`, unless it has to wait for others, or is paused; whether it was taken up."""
        if not await self._settle():
            return False
        taken = await self.store.takeovers(run)
        if taken >= MOST:
            await self._pause(run, taken)
            return False
        if taken and self._unproven:
            return False
        if await self.store.status(run) == "running":
            await self.store.add_takeover(run)
            self._unproven[run] = self.clock() + PROBATION_S
            self._suspect = run if taken else self._suspect
        await drive()
        return True

    async def _settle(self) -> bool:
        """Look which of the runs that were taken up are proven; whether another may be taken up now."""
        for run, until in list(self._unproven.items()):
            is_over = not self.is_driven(run) or self.clock() >= until
            if is_over or not await self.store.takeovers(run):
                del self._unproven[run]
                await self.store.forget_takeovers(run)
        self._suspect = self._suspect if self._suspect in self._unproven else None
        return self._suspect is None

    async def _pause(self, run: str, taken: int) -> None:
        log.error("run %s is paused: %s", run, describe_takeovers(taken))
        try:
            await self.engine.pause(run, by=RECOVERY)
            self.pauses += 1
        except RunBusy:
            log.debug("run %s is driven by another process", run)
