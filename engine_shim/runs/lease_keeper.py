"""LeaseKeeper: a lease on each run that this process drives, renewed, and the signals to it passed on."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from agent_core.errors import JournalAway, JournalError
from agent_core.run.blocking import finish_blocking
from agent_core.run.control import StopSignal
from engine_shim.errors import RunBusy
from engine_shim.intervals import SIGNAL_INTERVAL_S
from engine_shim.store.leases import TTL, Leases, Signal, new_driver

log = logging.getLogger("engine_shim")


@dataclass(slots=True, eq=False)
class _Driven:
    """How a run is driven; `is_gone` once it is not any more, even if it had just begun."""

    stop: StopSignal
    loop: asyncio.AbstractEventLoop | None
    is_gone: bool = False


class LeaseKeeper:
    """The runs that this driver drives, in whichever event loops.

    A thread renews their leases for as long as there are any, so that a busy event loop loses none. `failures` counts
    the renewals that failed, `lost` the runs that another driver took over.
    """

    def __init__(self, leases: Leases) -> None:
        self.driver = new_driver()
        self.failures = self.lost = 0
        self._leases = leases
        self._driven: dict[str, _Driven] = {}
        self._passing: set[str] = set()
        """Whose lease is just taken or released."""
        self._leaving: dict[tuple[str, asyncio.AbstractEventLoop | None], asyncio.Event] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()

    @asynccontextmanager
    async def driving(self, run: str) -> AsyncIterator[StopSignal]:
        """Hold the lease on a run while it is driven in this event loop. RunBusy when another driver holds it."""
        driven = _Driven(StopSignal(), asyncio.get_running_loop())
        while left := self._leaving.get((run, driven.loop)):
            await left.wait()
        try:
            _, cancellation = await finish_blocking(self._leases, partial(self._acquire, run, driven))
            if cancellation is not None:
                raise cancellation
            yield driven.stop
        except GeneratorExit:  # its loop was closed over it, and waits for nothing any more
            driven.is_gone = True
            self._release(run, driven)
            raise
        finally:
            if self._driven.get(run) is driven:
                await self._leave(run, driven)

    async def _leave(self, run: str, driven: "_Driven") -> None:
        """Release a run. Who is to drive it next, in the same event loop, waits for that."""
        left = self._leaving[run, driven.loop] = asyncio.Event()
        try:
            _, cancellation = await finish_blocking(self._leases, partial(self._release, run, driven))
        finally:
            del self._leaving[run, driven.loop]
            left.set()
        if cancellation is not None:
            raise cancellation

    @contextmanager
    def holding(self, run: str) -> Iterator[None]:
        """Hold the lease on a run that is not driven meanwhile. RunBusy when another driver holds it."""
        held = _Driven(StopSignal(), None)
        self._acquire(run, held)
        try:
            yield
        finally:
            self._release(run, held)

    def _acquire(self, run: str, driven: "_Driven") -> None:
        with self._lock:
            if run in self._driven or run in self._passing:
                raise RunBusy(run, self.driver)
            self._passing.add(run)
        try:
            if holder := self._leases.acquire(run, self.driver):
                raise RunBusy(run, holder)
            with self._lock:
                if driven.is_gone:
                    self._leases.release(run, self.driver)
                    return
                self._driven[run] = driven
                self._idle.clear()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._renew_while_needed, name="leases", daemon=True)
                    self._thread.start()
        finally:
            self._passing.discard(run)

    def _release(self, run: str, driven: "_Driven") -> None:
        """Release a run, if it is driven like this."""
        with self._lock:
            if self._driven.get(run) is not driven:
                return
            self._passing.add(run)  # else somebody else here could take what is released a moment later
            del self._driven[run]
            if not self._driven:
                self._idle.set()
        try:
            self._leases.release(run, self.driver)
        except JournalAway as error:
            log.warning("run %s: its lease could not be released, and ends within %g s: %s", run, TTL, error)
        finally:
            self._passing.discard(run)

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
            self._idle.wait(SIGNAL_INTERVAL_S)
            with self._lock:
                driven = dict(self._driven)
                if not driven:
                    self._thread = None
                    return
            try:
                self._renew(driven)
            except JournalError as error:  # the store may be locked for a while; the next attempt comes soon
                self.failures += 1
                log.warning("the leases on %d runs could not be renewed: %s", len(driven), error)

    def _renew(self, driven: dict[str, _Driven]) -> None:
        for run, notice in self._leases.renew(self.driver, driven).items():
            if self._driven.get(run) is not driven[run]:
                continue  # it has ended meanwhile
            if notice == "lost":
                self.lost += not driven[run].stop.is_lost
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
    if driven.loop is None:
        return
    try:
        if signal == "message":
            driven.loop.call_soon_threadsafe(driven.stop.note_messages)
        else:
            driven.loop.call_soon_threadsafe(driven.stop.request, signal)
    except RuntimeError:  # the loop was closed meanwhile, and the run with it
        log.debug("a run's event loop is closed")
