"""A program's own workflows, in the sandbox, which begin runs of a host as children: python child_app.py ADDRESS."""

import asyncio
import sys
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from engine_shim.plugins.temporal.child import ChildRequest, child_run_id, run_child

QUEUE = "parents"


@workflow.defn
class Parent:
    """Begins a run of a host and gives its outputs."""

    def __init__(self) -> None:
        self._run = ""

    @workflow.query
    def run_id(self) -> str:
        return self._run

    @workflow.run
    async def run(self, queue: str, request: ChildRequest) -> Any:
        self._run = child_run_id("ask")
        return await run_child(request, key="ask", queue=queue)


@workflow.defn
class Plain:
    """Does the same by names alone."""

    @workflow.run
    async def run(self, queue: str, identity: str, request: dict[str, Any]) -> Any:
        return await workflow.execute_child_workflow("agent_core_run", request, id=identity, task_queue=queue)


@workflow.defn
class Restless:
    """Ends while its child is under way, the first time: by an error, so that it is tried again, or to continue as new;
    or goes on with other things, and comes to the child when it is told."""

    def __init__(self) -> None:
        self._is_told, self._run = False, ""

    @workflow.signal
    def go_on(self) -> None:
        self._is_told = True

    @workflow.query
    def run_id(self) -> str:
        return self._run

    @workflow.run
    async def run(self, queue: str, request: ChildRequest, how: str, is_again: bool = False) -> Any:
        self._run = child_run_id("ask")
        asking = asyncio.create_task(run_child(request, key="ask", queue=queue))
        if not is_again and workflow.info().attempt == 1:
            await workflow.wait_condition(lambda: self._is_told)
            if how == "fail":
                raise ApplicationError("something else went wrong")
            workflow.continue_as_new(args=[queue, request, how, True])
        return await asking


async def work(address: str) -> None:
    client = await Client.connect(address)
    await Worker(client, task_queue=QUEUE, workflows=[Parent, Plain, Restless]).run()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
