"""The turns of conversations among the runs of a store."""

from typing import Final, NamedTuple

from engine_shim.store.database import Reader
from engine_shim.store.run_store import DatabaseRunStore

_WAITING_TURN: Final = """SELECT run FROM run_turns JOIN workflow_runs USING (run)
    WHERE conversation = ? AND status = 'waiting' ORDER BY started_at DESC, run DESC LIMIT 1"""
_NEWEST_TURNS: Final = """SELECT conversation, agent, started_at FROM (
    SELECT conversation, agent, started_at,
        row_number() OVER (PARTITION BY conversation ORDER BY started_at DESC, run DESC) AS place
        FROM run_turns JOIN workflow_runs USING (run) WHERE conversation IS NOT NULL) AS turns
    WHERE place = 1 ORDER BY started_at DESC LIMIT ?"""


MOST_RECENT: Final = 5000
"""Runs among which the newest turns are looked for first: all turns of a store may be very many."""
_RECENT_TURNS: Final = f"""SELECT conversation, agent, started_at FROM (
        SELECT run, started_at FROM workflow_runs ORDER BY started_at DESC, run DESC LIMIT {MOST_RECENT}) AS recent
    JOIN run_turns USING (run) WHERE conversation IS NOT NULL ORDER BY started_at DESC, run DESC"""


class NewestTurn(NamedTuple):
    """The newest turn of a conversation with an agent."""

    conversation: str
    agent: str
    started_at: str


def find_waiting_turn(store: DatabaseRunStore, conversation: str) -> str | None:
    """Return the run of the newest turn of a conversation that waits; None if there is none."""
    found = store.database.rows("run_turns", _WAITING_TURN, conversation)
    return found[0][0] if found else None


def list_newest_turns(database: Reader, most: int) -> list[NewestTurn]:
    """Return the newest turn of each conversation, newest first."""
    recent: dict[str, NewestTurn] = {}
    for row in database.rows("run_turns", _RECENT_TURNS):
        recent.setdefault(row[0], NewestTurn(*row))
    if len(recent) >= most:
        return list(recent.values())[:most]
    return [NewestTurn(*row) for row in database.rows("run_turns", _NEWEST_TURNS, most)]
