"""LeaseKeeper: a lease on each run that this process drives, renewed, and the signals to it passed on."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent_core.errors import JournalAway, JournalError
from agent_core.run.blocking import finish_blocking
from agent_core.run.control import StopSignal
from engine_shim.errors import RunBusy
from engine_shim.intervals import SIGNAL_INTERVAL_S
from engine_shim.store.driver_identity import new_driver
from engine_shim.store.leases import KEPT, TTL, Leases, Signal
from utools.forks import renew_in_forks

log = logging.getLogger("engine_shim")
CERTAIN_S: Final = KEPT - 1.0
"""So long after it was renewed a lease is relied upon: a little less than it holds, as clocks differ, and a record
takes its time."""
IDLE_ROUNDS: Final = 10
"""So often the thread looks for runs in vain before it ends: to start one costs more than a look."""
STEADY_CLOCK: Final = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Seconds of a clock that nobody sets, and that goes on while the machine is suspended."""


@dataclass(slots=True, eq=False)
class _Driven:
    """How a run is driven, and its hold; `is_gone` once it is not driven any more, even if it had just begun."""

    run: str
    keeper: "LeaseKeeper"
    stop: StopSignal
    loop: asyncio.AbstractEventLoop | None
    certain_until: float = 0.0
    is_gone: bool = False

    def is_certain(self) -> bool:
        return self.stop.is_lost or self.keeper.clock() < self.certain_until

    def confirm(self) -> None:
        if not self.is_certain():
            self.keeper.renew({self.run: self})


class LeaseKeeper:
    """The runs that this driver drives, in whichever event loops.

    A thread renews their leases for as long as there are any, so that a busy event loop loses none. It ends a while
    after the last one: where runs come one at a time, the next one finds it. A run whose lease
    was not renewed in time stands still before another driver can have it: no record is appended and no act begins
    until the lease is renewed, by this thread or by who is about to append. If it is still this driver's then, the run
    goes on, as after a store that was away for all. If another one has it, the run is given up: nothing more begins,
    and only what a write has answered is appended, so that it is not in doubt. `clock` counts seconds, those of a
    suspended machine or process as well. `failures` counts the renewals that failed, `lost` the runs that another
    driver took over.
    """

    def __init__(self, leases: Leases, *, clock: Callable[[], float] = STEADY_CLOCK) -> None:
        self.clock, self._leases = clock, leases
        self.failures = self.lost = 0
        self.begin_anew()
        renew_in_forks(self)

    def begin_anew(self) -> None:
        """Drive nothing, under a name of this process."""
        self.driver = new_driver()
        self._driven: dict[str, _Driven] = {}
        self._passing: set[str] = set()
        """Whose lease is just taken or released."""
        self._leaving: dict[tuple[str, asyncio.AbstractEventLoop | None], asyncio.Event] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @asynccontextmanager
    async def driving(self, run: str) -> AsyncIterator[StopSignal]:
        """Hold the lease on a run while it is driven in this event loop. RunBusy when another driver holds it."""
        driven = _Driven(run, self, StopSignal(), asyncio.get_running_loop())
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
        held = _Driven(run, self, StopSignal(), None)
        try:
            self._acquire(run, held)
            yield
        finally:
            self._release(run, held)

    def _acquire(self, run: str, driven: "_Driven") -> None:
        with self._lock:
            if run in self._driven or run in self._passing:
                raise RunBusy(run, self.driver)
            self._passing.add(run)
        try:
            driven.certain_until = self.clock() + CERTAIN_S
            if holder := self._leases.acquire(run, self.driver):
                raise RunBusy(run, holder)
            with self._lock:
                if driven.is_gone:
                    self._leases.release(run, self.driver)
                    return
                self._driven[run] = driven.stop.hold = driven
                if self._thread is None:
                    thread = threading.Thread(target=self._renew_while_needed, name="leases", daemon=True)
                    thread.start()  # may fail, and is tried again with the next run then
                    self._thread = thread
        finally:
            self._passing.discard(run)

    def _release(self, run: str, driven: "_Driven") -> None:
        """Release a run, if it is driven like this."""
        with self._lock:
            if self._driven.get(run) is not driven:
                return
            self._passing.add(run)  # else somebody else here could take what is released a moment later
            del self._driven[run]
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

    def pause_all(self) -> None:
        """Pause every run that this process drives."""
        for run in list(self._driven):
            self.notify(run, "pause")

    def _renew_while_needed(self) -> None:
        logged, idle = "", 0
        while True:
            time.sleep(SIGNAL_INTERVAL_S)
            with self._lock:
                driven = dict(self._driven)
                idle = 0 if driven else idle + 1
                if idle >= IDLE_ROUNDS:
                    self._thread = None
                    return
            if not driven:
                continue
            try:
                self.renew(driven)
            except Exception as error:  # whatever it is, the next attempt comes soon: without it the runs are lost
                self.failures += 1
                logged = _log_failure(logged, error, len(driven))
            else:
                logged = ""

    def renew(self, driven: dict[str, _Driven]) -> None:
        """Renew the leases on runs that are driven like this, and pass on what was signalled to them."""
        certain_until = self.clock() + CERTAIN_S
        found = self._leases.renew(self.driver, driven)
        for run, each in driven.items():
            notice = found.get(run)
            if self._driven.get(run) is not each:
                continue  # it has ended meanwhile
            if notice == "lost":
                self.lost += not each.stop.is_lost
                _give_up(run, each)
                continue
            each.certain_until = certain_until
            if notice is not None:
                _send(each, notice)


def _log_failure(logged: str, error: Exception, count: int) -> str:
    """Log why so many leases could not be renewed, unless that was logged last. Returns what is logged by now."""
    why = f"{type(error).__name__}: {error}"
    message = f"the leases on {count} runs could not be renewed: {error}"
    if why != logged and isinstance(error, JournalError):
        log.warning(message)
    elif why != logged:
        log.error(message, exc_info=error)
    return why


def _give_up(run: str, driven: _Driven) -> None:
    """Begin nothing more in a run: another driver has it."""
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
