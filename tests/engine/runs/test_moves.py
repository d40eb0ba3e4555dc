"""The statuses of a run move as the table says; tests/conftest.py watches the moves of all tests, by each driver."""

import json
from itertools import pairwise

import pytest

from agent_core import Approve
from agent_core.models import ScriptedModel
from agent_core.statuses import ENDED, LISTED, MOVES, OPEN, SETTLED, STATUSES, read_ended_status, read_status
from engine_shim import Engine, MemoryRunStore
from engine_shim.store.entries import RunEntry

ORDER = {
    "id": "w",
    "nodes": [
        {"id": "order", "tool": "echo", "config": {"text": "an order"}, "approval": "always"},
        {
            "id": "ask",
            "tool": "agent_core",
            "config": {"model": "m", "max_steps": 2, "allowed_tools": [], "prompt": "Go."},
        },
    ],
    "edges": [{"from": "order", "to": "ask"}],
}


class WatchedStore(MemoryRunStore):
    """A store in memory that remembers which statuses its runs had."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: list[str] = []

    def save(self, entry: RunEntry) -> None:
        self.statuses.append(entry.status)
        super().save(entry)


def test_every_status_has_its_moves_and_is_either_open_or_settled() -> None:
    assert set(MOVES) == set(STATUSES)
    assert {each for moves in MOVES.values() for each in moves} <= set(STATUSES)
    assert sorted(OPEN + SETTLED) == sorted(STATUSES)
    assert all(status not in moves for status, moves in MOVES.items())


def test_a_run_that_has_ended_stays_as_it_is_and_any_other_can_end() -> None:
    for status, moves in MOVES.items():
        assert moves == () if status in ENDED else set(ENDED) <= set(moves)


def test_every_status_is_reached_from_pending() -> None:
    reached = {"pending"}
    for _ in STATUSES:
        reached |= {each for status, moves in MOVES.items() if status in reached for each in moves}
    assert reached == set(STATUSES)


def engine_of(store: WatchedStore) -> Engine:
    return Engine(store=store, model=ScriptedModel([json.dumps({"type": "final", "answer": "done"})]))


async def test_a_run_that_waits_is_decided_paused_and_resumed_along_the_table() -> None:
    store = WatchedStore()
    engine = engine_of(store)
    waiting = await engine.run(ORDER, run_id="r")
    assert await engine.pause("r") == "paused"
    (call,) = waiting.waiting
    ended = await engine.resume("r", decisions={(call["strand"], call["n"]): Approve()})
    assert (waiting.status, ended.status) == ("waiting", "completed")
    moves = [move for move in pairwise(store.statuses) if move[0] != move[1]]
    assert moves[:3] == [("pending", "running"), ("running", "waiting"), ("waiting", "paused")]
    assert moves[3:] == [("paused", "pending"), ("pending", "running"), ("running", "completed")]


async def test_a_run_that_waits_is_cancelled_along_the_table() -> None:
    store = WatchedStore()
    engine = engine_of(store)
    await engine.run(ORDER, run_id="r")
    assert await engine.cancel("r") == "cancelled"
    assert store.statuses[-1] == "cancelled"


@pytest.mark.parametrize("value", ["", "done", None, 3, "Completed"])
def test_a_status_that_a_store_cannot_have_is_unreadable(value: object) -> None:
    assert read_status(value) == "unreadable"


@pytest.mark.parametrize("status", LISTED)
def test_a_status_of_the_list_is_read_as_it_is(status: str) -> None:
    assert read_status(status) == status


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ({"kind": "run_finished", "status": "cancelled"}, "cancelled"),
        ({"kind": "run_finished", "finish_reason": "final"}, "completed"),
        ({"kind": "run_finished", "finish_reason": "cancelled"}, "cancelled"),
        ({"kind": "run_finished", "finish_reason": "max_steps"}, "failed"),
    ],
)
def test_a_run_ends_as_its_last_record_says(last: dict[str, str], status: str) -> None:
    assert read_ended_status(last) == status
