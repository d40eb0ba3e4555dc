"""Driving runs so that others can stop them: a claim on each, kept alive, and what is wished of it passed on."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent_core.errors import JournalError
from agent_core.run.control import StopSignal
from engine_shim.errors import RunBusy
from engine_shim.runs.driver import new_driver
from engine_shim.runs.leases import Leases, Wish

log = logging.getLogger("engine_shim")
INTERVAL_S = 0.2
"""How often it is looked whether somebody wishes something."""


@dataclass(frozen=True, slots=True)
class _Driven:
    stop: StopSignal
    loop: asyncio.AbstractEventLoop


class LeaseKeeper:
    """The runs that this driver drives, in whichever event loops.

    A thread looks after them for as long as there are any, so that a busy loop loses no claim.
    """

    def __init__(self, claims: Leases) -> None:
        self.driver = new_driver()
        self._claims = claims
        self._driven: dict[str, _Driven] = {}
        self._lock = threading.Lock()
        self._watch: threading.Thread | None = None
        self._idle = threading.Event()

    @contextmanager
    def driving(self, run: str) -> Iterator[StopSignal]:
        """Claim the run while its driver is at work in this event loop. RunBusy when somebody else drives it."""
        driven = _Driven(StopSignal(), asyncio.get_running_loop())
        with self._lock:
            if run in self._driven:
                raise RunBusy(run, self.driver)
            if holder := self._claims.claim(run, self.driver):
                raise RunBusy(run, holder)
            self._driven[run] = driven
            self._idle.clear()
            if self._watch is None:
                self._watch = threading.Thread(target=self._look_after, name="steering", daemon=True)
                self._watch.start()
        try:
            yield driven.stop
        finally:
            with self._lock:
                del self._driven[run]
                if not self._driven:
                    self._idle.set()
            self._claims.release(run, self.driver)

    def _look_after(self) -> None:
        while True:
            self._idle.wait(INTERVAL_S)
            with self._lock:
                driven = dict(self._driven)
                if not driven:
                    self._watch = None
                    return
            try:
                self._pass_on(driven)
            except JournalError as error:  # the store may be locked for a while; the next look comes soon
                log.warning("the claims on %d runs could not be renewed: %s", len(driven), error)

    def _pass_on(self, driven: dict[str, _Driven]) -> None:
        for run, notice in self._claims.renew(self.driver, driven).items():
            if self._driven.get(run) is not driven[run]:
                continue  # it has ended meanwhile
            if notice == "lost":
                log.warning("run %s: another driver has taken it over", run)
            else:
                _tell(driven[run], notice)


def _tell(driven: _Driven, notice: Wish) -> None:
    try:
        driven.loop.call_soon_threadsafe(driven.stop.request, notice)
    except RuntimeError:  # the loop was closed meanwhile, and the run with it
        log.debug("a run's event loop is closed")
