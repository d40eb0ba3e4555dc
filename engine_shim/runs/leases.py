"""Who drives which run, so that no two do, and what others wish of the one who does."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal, Protocol

from engine_shim.runs.database import Database
from engine_shim.runs.driver import TTL, lives

Wish = Literal["pause", "cancel"]
Notice = Literal["pause", "cancel", "lost"]

_RENEW_AFTER = TTL / 3
_TABLE = """CREATE TABLE IF NOT EXISTS run_claims (
    run TEXT PRIMARY KEY, driver TEXT NOT NULL, until REAL NOT NULL, wish TEXT) WITHOUT ROWID"""
_TAKE = """INSERT INTO run_claims (run, driver, until) VALUES (?, ?, ?) ON CONFLICT (run) DO UPDATE SET
    until = excluded.until, driver = excluded.driver, wish = CASE WHEN driver = excluded.driver THEN wish END"""


class Leases(Protocol):
    """Claims on runs. Any number of threads and processes may share them; each verb is atomic.

    A claim is given up by its driver, or goes over when that driver is dead: its process is gone, or it has not
    renewed for TTL seconds. A claim begins without wishes; the journal stays right even if two drive one run.
    """

    def claim(self, run: str, driver: str) -> str | None:
        """Take the run for this driver. None when it has it now, else the name of the living driver that has it."""
        ...

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        """Keep the driver's claims on these runs alive. What is wished of them; "lost" for one it no longer has.

        Meant to be asked several times a second: it writes every few seconds only. A wish is told again each time,
        until the run is released.
        """
        ...

    def wish(self, run: str, wish: Wish) -> bool:
        """Ask the run's driver to pause or cancel it; a pause takes back no cancel.

        False when no living driver has it; then nothing is left behind.
        """
        ...

    def release(self, run: str, driver: str) -> None:
        """Let go of the run, and of what is wished of it. Does nothing when this driver does not have it."""
        ...

    def driver(self, run: str) -> str | None:
        """The name of the living driver that has the run; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """That a driver has a run until then (wall-clock seconds), and what is wished of it."""

    driver: str
    until: float
    wish: Wish | None = None


class MemoryClaims:
    """Claims among the drivers of this process."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._claims: dict[str, Lease] = {}
        self._lock = Lock()

    def claim(self, run: str, driver: str) -> str | None:
        with self._lock:
            held, now = self._claims.get(run), self._clock()
            if rival := _rival(held, driver, now):
                return rival
            wish = held.wish if held and held.driver == driver else None
            self._claims[run] = Lease(driver, now + TTL, wish)
            return None

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        with self._lock:
            held = {run: claim for run in runs if (claim := self._claims.get(run)) and claim.driver == driver}
            until = self._clock() + TTL
            self._claims |= {run: replace(claim, until=until) for run, claim in held.items()}
        return _notices(runs, {run: claim.wish for run, claim in held.items()})

    def wish(self, run: str, wish: Wish) -> bool:
        with self._lock:
            held = self._claims.get(run)
            if held is None or not lives(held.driver, held.until, self._clock()):
                return False
            self._claims[run] = replace(held, wish="cancel" if held.wish == "cancel" else wish)
            return True

    def release(self, run: str, driver: str) -> None:
        with self._lock:
            if (held := self._claims.get(run)) and held.driver == driver:
                del self._claims[run]

    def driver(self, run: str) -> str | None:
        with self._lock:
            return _rival(self._claims.get(run), None, self._clock())


class SqliteClaims:
    """Claims among all processes that share the run store's file."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database, self._clock = database, clock

    def claim(self, run: str, driver: str) -> str | None:
        with self._database.writing(_TABLE) as db:
            row = db.execute("SELECT driver, until FROM run_claims WHERE run = ?", (run,)).fetchone()
            now = self._clock()  # not before the lock: a claim made while we waited would seem to be of the future
            if rival := _rival(Lease(*row) if row else None, driver, now):
                return rival
            db.execute(_TAKE, (run, driver, now + TTL))
        return None

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        asked = set(runs)
        rows = self._select("SELECT run, wish, until FROM run_claims WHERE driver = ?", driver)
        now = self._clock()
        held: dict[str, Wish | None] = {run: wish for run, wish, _ in rows if run in asked}
        if not all(now + TTL - _RENEW_AFTER < until <= now + TTL for run, _, until in rows if run in asked):
            with self._database.writing(_TABLE) as db:
                renewed = [(now + TTL, run, driver) for run in held]
                db.executemany("UPDATE run_claims SET until = ? WHERE run = ? AND driver = ?", renewed)
        return _notices(runs, held)

    def wish(self, run: str, wish: Wish) -> bool:
        asked = self.driver(run)
        if asked is None:
            return False
        with self._database.writing(_TABLE) as db:
            update = "UPDATE run_claims SET wish = iif(wish = 'cancel', wish, ?) WHERE run = ? AND driver = ?"
            return db.execute(update, (wish, run, asked)).rowcount == 1

    def release(self, run: str, driver: str) -> None:
        with self._database.writing(_TABLE) as db:
            db.execute("DELETE FROM run_claims WHERE run = ? AND driver = ?", (run, driver))

    def driver(self, run: str) -> str | None:
        rows = self._select("SELECT driver, until FROM run_claims WHERE run = ?", run)
        return _rival(Lease(*rows[0]) if rows else None, None, self._clock())

    def _select(self, query: str, value: str) -> list[tuple[Any, ...]]:
        return self._database.rows("run_claims", query, value)


def _rival(held: Lease | None, driver: str | None, now: float) -> str | None:
    """The living driver, other than this one, that has the run."""
    if held is None or held.driver == driver or not lives(held.driver, held.until, now):
        return None
    return held.driver


def _notices(runs: Collection[str], held: Mapping[str, Wish | None]) -> dict[str, Notice]:
    notices: dict[str, Notice | None] = {run: held.get(run, "lost") for run in runs}
    return {run: notice for run, notice in notices.items() if notice is not None}
