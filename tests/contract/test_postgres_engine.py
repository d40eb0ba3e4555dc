"""The engine on a store in PostgreSQL: runs are driven, shared, taken over and recorded as they are in a file."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Approve, SqliteJournal, replay, verify
from agent_core.audit.normalize import normalize
from agent_core.errors import DefinitionError
from agent_core.journal.store import Journal
from agent_core.models.scripted import ScriptedModel
from engine_shim import Engine
from engine_shim.errors import RunBusy
from engine_shim.runs.loops import LOOPS
from support.told import Told

if TYPE_CHECKING:
    from engine_shim.store.run_store_postgres import PostgresRunStore

pytestmark = pytest.mark.xdist_group("postgres")
FLOW: dict[str, Any] = {
    "id": "flow",
    "nodes": [
        {"id": "first", "tool": "echo", "config": {"text": "{{external.word}}"}},
        {"id": "asked", "tool": "echo", "config": {"text": "{{nodes.first}}"}, "approval": "always"},
    ],
}
KILLED = """
import asyncio, sys
from engine_shim import Engine
from utools import tool

@tool(effect="read")
async def linger() -> str:
    "Take long."
    print("lingers", flush=True)
    await asyncio.sleep(60)
    return "late"

asyncio.run(Engine([linger], store=sys.argv[1]).run({"id": "f", "nodes": [{"tool": "linger"}]}, run_id="r"))
"""


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def store(url: str) -> "Iterator[PostgresRunStore]":
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(url)) as made:
        yield made


async def drive(place: Any) -> Any:
    """The result of a run that waits in one engine, and goes on in another."""
    first, second = Engine(store=place), Engine(store=place)
    waiting = await first.run(FLOW, external={"word": "hello"}, run_id="r")
    (call,) = waiting.waiting
    await first.close()
    done = await second.resume("r", decisions={(call["strand"], call["n"]): Approve()}, by="ada")
    await second.close()
    return done


async def test_run_waits_in_one_engine_and_goes_on_in_another(url: str, store: "PostgresRunStore") -> None:
    done = await drive(url)
    assert (done.status, done.outputs["asked"]) == ("completed", "hello")
    assert [(entry.run, entry.status) for entry in store.entries()] == [("r", "completed")]
    assert verify(store.journal, run_id="r", head=done.journal["head"]).ok
    assert replay(store.journal, run_id="r", loops=LOOPS).identical


async def test_records_are_those_of_a_run_in_a_file(url: str, tmp_path: Any, store: "PostgresRunStore") -> None:
    await drive(url)
    await drive(tmp_path / "runs.db")

    def records_in(journal: Journal) -> dict[str, list[Any]]:
        return {path: [normalize(row.record()) for row in rows] for path, rows in journal.load("r").items()}

    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        assert records_in(store.journal) == records_in(journal)


@pytest.fixture
def lingering(url: str) -> "Iterator[subprocess.Popen[str]]":
    """A process that drives the run r, which takes long."""
    with subprocess.Popen([sys.executable, "-c", KILLED, url], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "lingers\n"
            yield process
        finally:
            process.kill()


async def test_run_of_a_killed_process_is_refused_while_it_lives_and_taken_over_at_once(
    url: str, lingering: "subprocess.Popen[str]"
) -> None:
    engine = Engine([quick()], store=url)
    with pytest.raises(RunBusy):
        await engine.resume("r")
    lingering.kill()
    lingering.wait()
    done = await engine.resume("r")
    await engine.close()
    assert (done.status, done.outputs["linger"]) == ("completed", "quick")


def quick() -> Any:
    from utools import tool

    @tool(effect="read")
    async def linger() -> str:
        """Take no time."""
        return "quick"

    return linger


def test_store_that_needs_what_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "engine_shim.store.run_store_postgres", None)
    with pytest.raises(DefinitionError, match="needs the extra postgres"):
        Engine(store="postgresql://127.0.0.1/none")


async def test_no_event_loop_waits_for_the_database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.event_loops import watch_event_loops

    in_loops = watch_event_loops(monkeypatch)
    agent = {"model": "scripted", "max_steps": 2, "allowed_tools": ["echo"], "prompt": "Go."}
    asks = {"id": "w", "nodes": [{"id": "a", "tool": "agent_core", "config": agent}, FLOW["nodes"][1]]}
    asks["nodes"][1] = {"id": "asked", "tool": "echo", "config": {"text": "x"}, "approval": "always"}
    told = Told()
    engine = Engine(store=url, model=ScriptedModel([{"type": "final", "answer": "Done."}]), telemetry=told.telemetry)
    waiting = await engine.run(asks, run_id="first")
    (call,) = waiting.waiting
    await engine.resume("first", decisions={(call["strand"], call["n"]): Approve()}, by="ada")
    await engine.close()
    again = {**asks, "nodes": [{"id": "a", "tool": "agent_core", "config": {**agent, "model": "replay:first"}}]}
    second = Engine(store=url, telemetry=told.telemetry)
    await second.run(again, run_id="second")
    await second.close()
    assert in_loops == []
