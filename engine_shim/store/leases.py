"""Leases: which driver drives which run, so that no two do, and the signals that others send it."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal, Protocol, get_args

from engine_shim.store.clock import StoreClock
from engine_shim.store.database import Database
from engine_shim.store.driver_identity import has_ended, pattern_of, read_place, read_process, read_start
from utools.databases.transaction import Transaction
from utools.threads import Threads

Signal = Literal["message", "pause", "cancel"]
"""That a message was added to a run, or that it is to stop; a later one in this list outweighs those before it."""
Notice = Literal["message", "pause", "cancel", "lost"]

TTL = 10.0
"""Seconds that a lease holds without being renewed."""
RENEW_AFTER = TTL / 3
KEPT = TTL - RENEW_AFTER
"""Seconds for which a lease holds at least, counted from before it was acquired or renewed."""
_TAKE_NEW = "INSERT INTO run_claims (run, driver, until) VALUES (?, ?, ?) ON CONFLICT (run) DO NOTHING"
_TAKE = """INSERT INTO run_claims (run, driver, until) VALUES (?, ?, ?) ON CONFLICT (run) DO UPDATE SET
    until = excluded.until, driver = excluded.driver,
    wish = CASE WHEN run_claims.driver = excluded.driver THEN run_claims.wish END
    WHERE run_claims.driver = excluded.driver OR (run_claims.driver = ? AND run_claims.until = ?)"""
_OWN = "SELECT run, wish, until FROM run_claims WHERE driver = ?"


class Leases(Protocol):
    """Leases on runs. Any number of threads and processes may share them; each verb is atomic.

    A driver keeps its lease until it releases it or is dead: it has not renewed for TTL seconds, or its process has
    ended for certain, which processes in the same place see. A new lease has no signal; the journal stays right even
    if two drive one run.
    """

    @property
    def threads(self) -> Threads | None:
        """As those of a journal in the same place."""
        ...

    def acquire(self, run: str, driver: str) -> str | None:
        """Lease the run to this driver. None when it holds it now, else the name of the living driver that does."""
        ...

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        """Renew the driver's leases on these runs. Gives the signal to each; "lost" for one it no longer holds.

        Meant to be called several times a second: it writes every few seconds only, so that those it renews hold for
        KEPT seconds at least. A signal is given again each time, until the run is released.
        """
        ...

    def signal(self, run: str, signal: Signal) -> bool:
        """Signal the run's driver to pause or cancel it, or that a message was added; no signal undoes a stronger one.

        False when no living driver holds it; then nothing is stored.
        """
        ...

    def release(self, run: str, driver: str) -> None:
        """Give the lease up, and its signal. Does nothing when this driver does not hold it."""
        ...

    def holder(self, run: str) -> str | None:
        """Return the name of the living driver that holds the run; None when there is none."""
        ...

    def held(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs that living drivers hold."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """That a driver holds a run `until` then (wall-clock seconds), and the signal to it."""

    driver: str
    until: float
    signal: Signal | None = None


class MemoryLeases:
    """Leases among the drivers of this process."""

    threads: Threads | None = None

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._leases: dict[str, Lease] = {}
        self._lock = Lock()

    def acquire(self, run: str, driver: str) -> str | None:
        with self._lock:
            lease, now = self._leases.get(run), self._clock()
            if holder := living_holder(lease, now, other_than=driver):
                return holder
            signal = lease.signal if lease and lease.driver == driver else None
            self._leases[run] = Lease(driver, now + TTL, signal)
            return None

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        with self._lock:
            own = {run: lease for run in runs if (lease := self._leases.get(run)) and lease.driver == driver}
            until = self._clock() + TTL
            self._leases |= {run: replace(lease, until=until) for run, lease in own.items()}
        return notices(runs, {run: lease.signal for run, lease in own.items()})

    def signal(self, run: str, signal: Signal) -> bool:
        with self._lock:
            lease = self._leases.get(run)
            if lease is None or living_holder(lease, self._clock()) is None:
                return False
            self._leases[run] = replace(lease, signal=stronger(lease.signal, signal))
            return True

    def release(self, run: str, driver: str) -> None:
        with self._lock:
            if (lease := self._leases.get(run)) and lease.driver == driver:
                del self._leases[run]

    def holder(self, run: str) -> str | None:
        with self._lock:
            return living_holder(self._leases.get(run), self._clock())

    def held(self, runs: Collection[str]) -> set[str]:
        return {run for run in runs if self.holder(run)}


class StoreLeases:
    """Leases among all processes that share a run store, by its clock, which is measured whenever a lease is."""

    def __init__(self, database: Database, clock: StoreClock) -> None:
        self._database, self._clock = database, clock

    @property
    def threads(self) -> Threads | None:
        return self._database.threads

    def acquire(self, run: str, driver: str) -> str | None:
        with self._database.writing(_subject(run)) as db:
            now = self._now(db)  # not before the lock: a lease taken while we waited would seem to be of the future
            if db.execute(_TAKE_NEW, (run, driver, now + TTL)).rowcount == 1:
                return None
            row = db.execute("SELECT driver, until FROM run_claims WHERE run = ?", (run,)).fetchone()
            if holder := living_holder(Lease(*row) if row else None, now, other_than=driver):
                return holder
            before, until = row or (driver, 0.0)
            is_taken = db.execute(_TAKE, (run, driver, now + TTL, before, until)).rowcount == 1
        return None if is_taken else before  # which has renewed it at this moment

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        asked = set(runs)
        rows = self._select(_OWN, driver)
        now = self._now()
        own: dict[str, Signal | None] = {run: signal for run, signal, _ in rows if run in asked}
        if not all(now + KEPT < until <= now + TTL for run, _, until in rows if run in asked):
            own = self._prolong(driver, own, now + TTL)
        return notices(runs, own)

    def _prolong(self, driver: str, runs: Collection[str], until: float) -> dict[str, Signal | None]:
        """Renew leases, and return those that are the driver's then: another one may have taken some meanwhile."""
        with self._database.writing(f"driver {driver}") as db:
            renewed = [(until, run, driver) for run in runs]
            db.executemany("UPDATE run_claims SET until = ? WHERE run = ? AND driver = ?", renewed)
            rows = db.execute(_OWN, (driver,)).fetchall()
        return {run: signal for run, signal, _ in rows if run in runs}

    def signal(self, run: str, signal: Signal) -> bool:
        holder = self.holder(run)
        if holder is None:
            return False
        with self._database.writing(_subject(run)) as db:
            row = db.execute("SELECT wish FROM run_claims WHERE run = ? AND driver = ?", (run, holder)).fetchone()
            if row is None:
                return False
            update = "UPDATE run_claims SET wish = ? WHERE run = ? AND driver = ?"
            return db.execute(update, (stronger(row[0], signal), run, holder)).rowcount == 1

    def release(self, run: str, driver: str) -> None:
        with self._database.writing(_subject(run)) as db:
            db.execute("DELETE FROM run_claims WHERE run = ? AND driver = ?", (run, driver))

    def holder(self, run: str) -> str | None:
        rows = self._select("SELECT driver, until FROM run_claims WHERE run = ?", run)
        return living_holder(Lease(*rows[0]), self._now()) if rows else None

    def held(self, runs: Collection[str]) -> set[str]:
        dialect = self._database.dialect
        query = f"SELECT run, driver, until FROM run_claims WHERE run IN {dialect.values}"
        rows = self._select(query, dialect.pack(list(runs))) if runs else []
        now = self._now() if rows else 0.0
        current = [(run, driver) for run, driver, until in rows if is_current(until, now)]
        dead = {driver for driver in {driver for _, driver in current} if is_dead(driver)}
        return {run for run, driver in current if driver not in dead}

    def free(self) -> tuple[str, list[Any]]:
        """Return a condition on `run_claims` of a query, and its values: it lets through runs without a lease that
        holds, and those of drivers in this place, which may have died just now."""
        now = self._now()
        return "(until IS NULL OR until <= ? OR until > ? OR driver LIKE ?)", [now, now + TTL, pattern_of(read_place())]

    def _now(self, db: Transaction | None = None) -> float:
        return self._clock.measure(db)

    def _select(self, query: str, value: Any) -> list[tuple[Any, ...]]:
        return self._database.rows("run_claims", query, value)


def _subject(run: str) -> str:
    return f"lease {run}"


def stronger(before: Signal | None, signal: Signal) -> Signal:
    """Of two signals the one that counts."""
    order: tuple[Signal, ...] = get_args(Signal)
    return signal if before is None or order.index(signal) > order.index(before) else before


def living_holder(lease: Lease | None, now: float, *, other_than: str | None = None) -> str | None:
    """Return the driver of a lease, if it seems to be alive and is not this one."""
    if lease is None or lease.driver == other_than or not is_current(lease.until, now) or is_dead(lease.driver):
        return None
    return lease.driver


def is_current(until: float, now: float) -> bool:
    """Return whether a lease that holds until then still does; in wall-clock seconds.

    An `until` beyond a whole TTL was written before the clock was set back, and proves nothing.
    """
    return now < until <= now + TTL


def is_dead(driver: str) -> bool:
    """Return whether the process of a driver has ended for certain. Of a process in another place, and of one that its
    name does not tell, only the time of the lease counts."""
    return has_ended(read_process(driver), read_place(), read_start)


def notices(runs: Collection[str], own: Mapping[str, Signal | None]) -> dict[str, Notice]:
    """Return what a driver is told of the runs that it asks for, by the signals to those that are its own."""
    found: dict[str, Notice | None] = {run: own.get(run, "lost") for run in runs}
    return {run: notice for run, notice in found.items() if notice is not None}
