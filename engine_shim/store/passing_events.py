"""PassingEvents: what no record holds of acts that are under way, for those who follow their runs elsewhere.

A driver writes them while somebody follows the run, and deletes them once the act has its answer. They may be lost at
any time: the records are the truth. No copy of a store has them.
"""

import json
from collections.abc import Collection, Sequence
from typing import Final, Literal, NamedTuple

from engine_shim.store.run_store import DatabaseRunStore, RunStore

FOLLOWED_S: Final = 15.0
"""How long a run counts as followed after its follower has said so."""
FORGOTTEN_S: Final = 600.0
"""How long the events of an act stay whose driver has died."""
_EVENTS: Final = "passing_events"
_FOLLOWERS: Final = "run_followers"
_SUBJECT: Final = "passing events"
"""Positions are given in the order in which others see the events, so one driver writes after the other."""
_FOLLOW: Final = f"""INSERT INTO {_FOLLOWERS} (run, until) VALUES (?, ?)
    ON CONFLICT (run) DO UPDATE SET until = excluded.until WHERE excluded.until > {_FOLLOWERS}.until"""
_ADD: Final = f"INSERT INTO {_EVENTS} (run, strand, n, at, pieces) VALUES (?, ?, ?, ?, ?)"
_READ: Final = f"SELECT seq, strand, n, pieces FROM {_EVENTS} WHERE run = ? AND seq > ? ORDER BY seq"
_DELETE: Final = f"DELETE FROM {_EVENTS} WHERE run = ? AND strand = ? AND n = ?"
Kind = Literal["answer", "thought", "discarded", "whole", "progress"]


class Piece(NamedTuple):
    """A piece of an answer or a thought, or a tool's word.

    `number` is how many characters of the answer were before a piece of it, how many a `whole` one has, and the
    fraction of a `progress`.
    """

    kind: Kind
    text: str = ""
    number: float | None = None


class Passing(NamedTuple):
    """What passed in an act for a while: behind record `n` of its strand, and before the next one."""

    strand: str
    n: int
    pieces: Sequence[Piece]


class PassingEvents:
    """The passing events of one store. Any number of threads and processes may share it. Raises JournalError."""

    def __init__(self, store: DatabaseRunStore) -> None:
        self._database, self._clock, self._contents = store.database, store.clock, store.contents

    # ── who follows ───────────────────────────────────────────────────────────────────────────────

    def follow(self, runs: Collection[str]) -> None:
        """Note that runs are followed for the next FOLLOWED_S seconds."""
        with self._database.writing(_SUBJECT) as db:
            now = self._clock.measure(db)
            db.execute(f"DELETE FROM {_FOLLOWERS} WHERE until < ?", (now,))
            db.executemany(_FOLLOW, [(run, now + FOLLOWED_S) for run in runs])

    def find_followed(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs that somebody follows."""
        dialect = self._database.dialect
        query = f"SELECT run, until FROM {_FOLLOWERS} WHERE run IN {dialect.values}"
        found = self._database.rows(_FOLLOWERS, query, dialect.pack(list(runs)))
        now = self._clock.measure() if found else 0.0
        return {run for run, until in found if now < until <= now + FOLLOWED_S}

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def write(self, events: Sequence[tuple[str, Passing]], answered: Sequence[tuple[str, str, int]] = ()) -> None:
        """Add events of runs, and delete those of acts that have their answers, by (run, strand, n)."""
        texts = [self._contents.encrypt_text(run, _EVENTS, json.dumps(each.pieces)) for run, each in events]
        with self._database.writing(_SUBJECT) as db:
            if events:
                now = self._clock.read()
                together = zip(events, texts, strict=True)
                db.executemany(_ADD, [(run, each.strand, each.n, now, text) for (run, each), text in together])
            if answered:
                db.executemany(_DELETE, answered)

    def sweep(self) -> None:
        """Delete what drivers that died have left."""
        with self._database.writing(_SUBJECT) as db:
            db.execute(f"DELETE FROM {_EVENTS} WHERE at < ?", (self._clock.measure(db) - FORGOTTEN_S,))

    def list_news(self, runs: Collection[str], after: int) -> dict[str, int]:
        """Return those of the runs with events behind a position, each with that of its last one."""
        dialect = self._database.dialect
        query = f"SELECT run, max(seq) FROM {_EVENTS} WHERE run IN {dialect.values} AND seq > ? GROUP BY run"
        return dict(self._database.rows(_EVENTS, query, dialect.pack(list(runs)), after))

    def read(self, run: str, after: int) -> list[tuple[int, Passing]]:
        """Return the events of a run behind a position, each with its own."""
        found = self._database.rows(_EVENTS, _READ, run, after)
        texts = [(seq, strand, n, self._contents.decrypt_text(run, _EVENTS, text)) for seq, strand, n, text in found]
        return [
            (seq, Passing(strand, n, [Piece(*each) for each in json.loads(pieces)]))
            for seq, strand, n, pieces in texts
            if pieces is not None
        ]


def passing_events_of(store: RunStore) -> PassingEvents | None:
    """Return the passing events of a store; None for one that no other process shares."""
    return PassingEvents(store) if isinstance(store, DatabaseRunStore) else None
