"""Timers: resumes waiting runs whose time has come."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from engine_shim.errors import RunBusy
from engine_shim.intervals import TIMER_INTERVAL_S
from engine_shim.runs.steering import RECOVERY
from engine_shim.service.driven_runs import ServerEnds
from engine_shim.service.run_service import RunService
from engine_shim.service.shares import OverShare
from utools.words.text import error_words

LATE_S: Final = 10.0
"""How late a server resumes a run whose worker at Temporal should have done so."""
log = logging.getLogger("engine_shim")


@dataclass(frozen=True, slots=True)
class Timers:
    """The times for which the submitted runs of one store wait."""

    runs: RunService

    async def run_forever(self) -> None:
        """Resume waiting runs whose time has come, until cancelled."""
        while True:
            await self.resume_due()
            await asyncio.sleep(TIMER_INTERVAL_S)

    async def resume_due(self) -> None:
        """Resume each waiting run whose time has come, the earliest first."""
        for run in await self.runs.store.run_blocking(self._find_due):
            try:
                await self.runs.resume(run, by=RECOVERY)
            except (OverShare, ServerEnds):
                break
            except RunBusy:
                continue
            except Exception as error:  # one run that cannot go on must not keep the others from it
                self.runs.driven.backoff.note_failure(run)
                log.error("run %s cannot be resumed: %s", run, error_words(error))

    def _find_due(self) -> list[str]:
        engine, driven = self.runs.engine, self.runs.driven
        now = engine.store.clock.write_now(LATE_S if engine._has_workers else 0.0)
        due = engine.store.list_due(engine.host, now)
        return [run for run in due if run not in driven and driven.backoff.is_due(run)]
