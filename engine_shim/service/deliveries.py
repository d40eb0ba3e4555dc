"""Deliveries: what webhooks have still to be told, in the store of the runs, so that it outlives a server."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent_core.statuses import NotifiedStatus, RunStatus
from engine_shim.store.database import Database

BACKOFF_S: Final = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0)
"""How long after each failed attempt the next one is made; after the last of them, none."""
CLAIM_S: Final = 60.0
"""How long an attempt is this server's alone."""
COLLECTED: Final = 100
AT_ONCE: Final = 10
"""How many events are taken up, and how many are told to one receiver, together."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that a webhook is to be told: number, run, status and time, and which attempt this is, from 1."""

    event: int
    run: str
    status: NotifiedStatus
    at: datetime
    attempt: int


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The deliveries to one webhook, by its name. Any number of servers share them; each event is one server's at a
    time. The events of a run keep their order: a later one waits until the earlier one is told, or given up."""

    database: Database
    hook: str
    clock: Callable[[], float]

    def begin(self) -> None:
        """Tell of what happens from now on, if the webhook is new."""
        with self.database.writing() as db:
            query = """INSERT INTO webhook_cursors (hook, event)
                SELECT ?, coalesce(max(seq), 0) FROM run_events WHERE true ON CONFLICT DO NOTHING"""
            db.execute(query, (self.hook,))

    def collect(self, is_wanted: Callable[[str, RunStatus], bool]) -> int:
        """Take up the events since the last time whose run and status are wanted; gives how many there were."""
        known = self.database.rows("webhook_cursors", "SELECT event FROM webhook_cursors WHERE hook = ?", self.hook)
        query = "SELECT seq, run, status FROM run_events WHERE seq > ? ORDER BY seq LIMIT ?"
        found = self.database.rows("run_events", query, known[0][0] if known else 0, COLLECTED)
        if found:
            wanted = [(self.hook, seq, run, self.clock()) for seq, run, status in found if is_wanted(run, status)]
            with self.database.writing() as db:
                add = "INSERT INTO webhook_deliveries VALUES (?, ?, ?, 0, ?) ON CONFLICT DO NOTHING"
                db.executemany(add, wanted)
                move = "UPDATE webhook_cursors SET event = ? WHERE hook = ? AND event < ?"
                db.execute(move, (found[-1][0], self.hook, found[-1][0]))
        return len(found)

    def claim(self, most: int = AT_ONCE) -> list[Delivery]:
        """Return deliveries that are due, of each run the first one; they are this server's for a while. Receivers that
        took nothing before come last."""
        return list(self._claim_due(most))

    def finish(self, delivery: Delivery) -> None:
        """Note that an event was delivered, or is given up; unless it is to be told anew since this attempt began."""
        self._drop(delivery.event, delivery.attempt)

    def postpone(self, delivery: Delivery) -> bool:
        """Try it again later; False, and it is given up, when it was tried often enough."""
        if delivery.attempt > len(BACKOFF_S):
            self.finish(delivery)
            return False
        due = self.clock() + BACKOFF_S[delivery.attempt - 1]
        with self.database.writing() as db:
            query = "UPDATE webhook_deliveries SET due = ? WHERE hook = ? AND event = ? AND attempts >= ?"
            db.execute(query, (due, self.hook, delivery.event, delivery.attempt))
        return True

    def _drop(self, event: int, attempt: int) -> None:
        """Drop a delivery, unless its attempts were begun anew since this one."""
        with self.database.writing() as db:
            query = "DELETE FROM webhook_deliveries WHERE hook = ? AND event = ? AND attempts >= ?"
            db.execute(query, (self.hook, event, attempt))

    def _claim_due(self, most: int) -> Iterator[Delivery]:
        now = self.clock()
        query = """SELECT d.event, d.run, e.status, e.at, d.attempts FROM webhook_deliveries d
            LEFT JOIN run_events e ON e.seq = d.event
            WHERE d.hook = ? AND d.due <= ? AND NOT EXISTS
                (SELECT 1 FROM webhook_deliveries b WHERE b.hook = d.hook AND b.run = d.run AND b.event < d.event)
            ORDER BY d.attempts, d.event LIMIT ?"""
        for event, run, status, at, attempts in self.database.rows("webhook_deliveries", query, self.hook, now, most):
            with self.database.writing() as db:
                take = """UPDATE webhook_deliveries SET attempts = attempts + 1, due = ?
                    WHERE hook = ? AND event = ? AND due <= ?"""
                is_ours = db.execute(take, (now + CLAIM_S, self.hook, event, now)).rowcount > 0
            if not is_ours:
                continue
            if status is None:  # the run was deleted meanwhile
                self._drop(event, attempts + 1)
            else:
                yield Delivery(event, run, status, datetime.fromisoformat(at), attempts + 1)
