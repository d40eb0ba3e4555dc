"""Which run an attempt at a task of Airflow goes on with, and what a kill is meant for: as Airflow numbers attempts."""

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core import Damaged, JournalAway, MemoryJournal, SqliteJournal
from agent_core.errors import Unreadable
from agent_core.models import ScriptedModel
from agent_core.node import NodeContext, execute_sync, list_waiting
from engine_shim.plugins.airflow.attempts import find_attempt, stop_if_given_up, waits_for_else
from engine_shim.plugins.airflow.store_address import read_address
from engine_shim.plugins.decided import FINAL_ERRORS, still_waits
from support.by_hand import Q, action, final
from utools import Tool

ALLOWED = [{"tool": "look", "approval": "always"}]
CONFIG = {"model": "scripted", "max_steps": 3, "allowed_tools": ALLOWED, "prompt": "Go."}
OTHER = {**CONFIG, "prompt": "Go on."}


def task(try_number: int = 1, *, cleared_after: int = 0, map_index: int = -1, state: Any = "running") -> Any:
    """A task with two retries, as Airflow counts its tries: a clear after so many of them adds to the most."""

    def get_task_states(**_: Any) -> Any:
        if isinstance(state, Exception):
            raise state
        return {"run": {"task" if map_index < 0 else f"task_{map_index}": state}}

    ids = {"dag_id": "dag", "task_id": "task", "run_id": "run", "map_index": map_index}
    counts = {"try_number": try_number, "max_tries": cleared_after + 2, "task": SimpleNamespace(retries=2)}
    return SimpleNamespace(**ids, **counts, get_task_states=get_task_states, log=logging.getLogger("test"))


class Store:
    """A journal in which the runs of attempts are."""

    def __init__(self, folder: Path) -> None:
        self.journal = SqliteJournal(folder / "runs.db")

    def run(self, ti: Any, *replies: str, config: Any = None) -> str:
        """Do what an attempt does, with these replies of a model; gives how the run is."""

        async def look(args: Any, context: Any) -> str:
            return "seen"

        attempt = find_attempt(ti, config or CONFIG, self.journal)
        tools = [Tool("look", "Looks.", Q, look, effect="read")]
        context = NodeContext(
            run_id=attempt.run_id, journal=self.journal, tools=tools, model=ScriptedModel(list(replies))
        )
        return execute_sync(attempt.config or config or CONFIG, context).status

    def number(self, ti: Any, config: Any = None, *, is_resumed: bool = False) -> tuple[int, bool]:
        """Return which of its runs an attempt is at, from 1, and whether that has begun."""
        found = find_attempt(ti, config or CONFIG, self.journal, is_resumed=is_resumed)
        runs = self.journal.runs()
        return (runs.index(found.run_id) + 1 if found.run_id in runs else len(runs) + 1), found.config is not None


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_retry_goes_on_with_the_run_as_it_began_also_where_it_has_ended(store: Store) -> None:
    assert store.number(task()) == (1, False)
    assert store.run(task(), action()) == "waiting"
    assert store.number(task(2)) == (1, True)
    assert store.number(task(2), OTHER) == (1, True)
    assert find_attempt(task(2), OTHER, store.journal).config["prompt"] == "Go."  # type: ignore[index]


def test_retry_after_the_end_of_a_run_gives_it_again(store: Store) -> None:
    assert store.run(task(), final("done")) == "completed"
    assert store.number(task(2)) == (1, True)
    assert store.number(task(3), OTHER) == (1, True)


def test_cleared_task_begins_another_run_where_its_run_has_ended(store: Store) -> None:
    assert store.run(task(), final("done")) == "completed"
    assert store.number(task(2, cleared_after=1)) == (2, False)
    assert find_attempt(task(2, cleared_after=1), CONFIG, store.journal).number == 1
    assert store.run(task(2, cleared_after=1), final("again")) == "completed"
    assert store.number(task(3, cleared_after=1)) == (2, True)
    assert store.number(task(4, cleared_after=3)) == (3, False)


def test_cleared_task_whose_run_waits_goes_on_with_it_unless_its_config_is_another(store: Store) -> None:
    assert store.run(task(), action()) == "waiting"
    assert store.number(task(2, cleared_after=1)) == (1, True)
    assert store.number(task(2, cleared_after=1), {**CONFIG, "approval": "never"}) == (1, True)
    assert store.number(task(2, cleared_after=1), OTHER) == (2, False)


def test_task_that_goes_on_after_a_rest_keeps_its_run_though_it_was_cleared_before(store: Store) -> None:
    assert store.run(task(2, cleared_after=1), action()) == "waiting"
    assert store.number(task(2, cleared_after=1), OTHER, is_resumed=True) == (1, True)


def test_items_of_a_mapped_task_have_a_run_each(store: Store) -> None:
    found = {find_attempt(task(map_index=index), CONFIG, store.journal).run_id for index in (-1, 0, 1)}
    assert len(found) == 3


class Closed(MemoryJournal):
    """A journal of which nothing can be read, for a reason."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self.why = why

    def load(self, run: str) -> Any:
        raise self.why


async def test_run_waits_as_long_as_the_same_waits(store: Store) -> None:
    assert store.run(task(), action()) == "waiting"
    [run] = store.journal.runs()
    log = logging.getLogger("test")
    [call] = await list_waiting(run, journal=store.journal)
    assert not await waits_for_else(run, [[call["strand"], call["n"]]], store.journal, log)
    assert await waits_for_else(run, [[call["strand"], call["n"] + 1]], store.journal, log)
    assert still_waits(run, store.journal)


@pytest.mark.parametrize("why", [Damaged("agent", 3, "it is missing"), Unreadable("r", erased=True)])
async def test_run_that_cannot_be_read_any_more_is_not_waited_for(why: Exception) -> None:
    """Its task was asleep for ever; where Dagster's sensor met it, no other run went on."""
    journal = Closed(why)
    assert await waits_for_else("r", [["agent", 3]], journal, logging.getLogger("test"))
    assert not still_waits("r", journal)
    assert isinstance(why, FINAL_ERRORS)


async def test_store_that_is_away_is_looked_into_again() -> None:
    journal = Closed(JournalAway("it is busy"))
    assert not await waits_for_else("r", [["agent", 3]], journal, logging.getLogger("test"))
    with pytest.raises(JournalAway):
        still_waits("r", journal)


@pytest.mark.parametrize(
    ("state", "stopped"),
    [
        ("failed", "cancel"),
        ("success", "cancel"),
        ("restarting", "cancel"),
        (None, "cancel"),
        ("running", "let go"),
        ("queued", "let go"),
        (ConnectionError("away"), "let go"),
    ],
)
@pytest.mark.parametrize("map_index", [-1, 3])
def test_kill_cancels_only_where_airflow_says_that_the_task_is_to_end(state: Any, stopped: str, map_index: int) -> None:
    told, heard = list[str](), threading.Event()

    def note(how: str) -> None:
        told.append(how)
        heard.set()

    stop_if_given_up(task(state=state, map_index=map_index), lambda: note("cancel"), lambda: note("let go"))
    assert heard.wait(30)
    assert told == [stopped]


@pytest.mark.parametrize(
    ("parts", "address"),
    [
        ({"host": "db", "login": "ana", "password": "a b"}, "postgresql://ana:a%20b@db:5432/"),
        ({"host": "db", "login": None, "password": "secret"}, "postgresql://:secret@db:5432/"),
        (
            {"host": "db", "login": "ana", "password": None, "schema": "runs", "port": 6000},
            "postgresql://ana@db:6000/runs",
        ),
        ({"host": "fd00::7", "login": None, "password": None}, "postgresql://[fd00::7]:5432/"),
        ({"host": "a,b", "login": None, "password": None}, "postgresql://a,b:5432/"),
    ],
)
def test_connection_names_its_database_and_its_password_as_nothing_else(parts: dict[str, Any], address: str) -> None:
    usual = {"port": None, "schema": None, "extra_dejson": {"page": "http://page"}}
    assert read_address("store", SimpleNamespace(**{**usual, **parts})) == address
