"""LeaseKeeper: a lease on each run that this process drives, renewed, and the signals to it passed on."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent_core.errors import JournalAway, JournalError
from agent_core.run.control import StopSignal
from engine_shim.errors import RunBusy
from engine_shim.runs.leases import TTL, Leases, Signal, new_driver

log = logging.getLogger("engine_shim")
INTERVAL_S = 0.2
"""How often it looks for signals."""


@dataclass(frozen=True, slots=True)
class _Driven:
    stop: StopSignal
    loop: asyncio.AbstractEventLoop


class LeaseKeeper:
    """The runs that this driver drives, in whichever event loops.

    A thread renews their leases for as long as there are any, so that a busy event loop loses none.
    """

    def __init__(self, leases: Leases) -> None:
        self.driver = new_driver()
        self._leases = leases
        self._driven: dict[str, _Driven] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()

    @contextmanager
    def driving(self, run: str) -> Iterator[StopSignal]:
        """Hold the lease on a run while it is driven in this event loop. RunBusy when another driver holds it."""
        driven = _Driven(StopSignal(), asyncio.get_running_loop())
        with self._lock:
            if run in self._driven:
                raise RunBusy(run, self.driver)
            if holder := self._leases.acquire(run, self.driver):
                raise RunBusy(run, holder)
            self._driven[run] = driven
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_while_needed, name="leases", daemon=True)
                self._thread.start()
        try:
            yield driven.stop
        finally:
            with self._lock:
                del self._driven[run]
                if not self._driven:
                    self._idle.set()
            self._release(run)

    def _release(self, run: str) -> None:
        try:
            self._leases.release(run, self.driver)
        except JournalAway as error:
            log.warning("run %s: its lease could not be released, and ends within %g s: %s", run, TTL, error)

    def notify(self, run: str, signal: Signal) -> None:
        """Pass a signal on at once where this process drives the run: the store's comes with the next renewal."""
        with self._lock:
            driven = self._driven.get(run)
        if driven is not None:
            _send(driven, signal)

    def abandon_all(self) -> None:
        """Let no record be appended any more to the runs that this process drives."""
        for driven in list(self._driven.values()):
            driven.stop.is_abandoned = True

    def stop_all(self, signal: Signal) -> None:
        """Pass a signal on to every run that this process drives."""
        for run in list(self._driven):
            self.notify(run, signal)

    def _renew_while_needed(self) -> None:
        while True:
            self._idle.wait(INTERVAL_S)
            with self._lock:
                driven = dict(self._driven)
                if not driven:
                    self._thread = None
                    return
            try:
                self._renew(driven)
            except JournalError as error:  # the store may be locked for a while; the next attempt comes soon
                log.warning("the leases on %d runs could not be renewed: %s", len(driven), error)

    def _renew(self, driven: dict[str, _Driven]) -> None:
        for run, notice in self._leases.renew(self.driver, driven).items():
            if self._driven.get(run) is not driven[run]:
                continue  # it has ended meanwhile
            if notice == "lost":
                _give_up(run, driven[run])
            else:
                _send(driven[run], notice)


def _give_up(run: str, driven: _Driven) -> None:
    """Let what is under way in a run answer, and begin nothing more: another driver has it."""
    if not driven.stop.is_lost:
        log.warning("run %s: another driver has taken it over", run)
        driven.stop.is_lost = True
        _send(driven, "pause")


def _send(driven: _Driven, signal: Signal) -> None:
    if signal == "message":
        driven.stop.has_messages = True
        return
    try:
        driven.loop.call_soon_threadsafe(driven.stop.request, signal)
    except RuntimeError:  # the loop was closed meanwhile, and the run with it
        log.debug("a run's event loop is closed")
