"""The runs of cluster.py as written by hand for Temporal: nothing is recorded but Temporal's own history.

python cluster_by_hand.py submit FLOW SECONDS IN_FLIGHT ADDRESS QUEUE    begins runs, and waits for their results
python cluster_by_hand.py work ADDRESS QUEUE                             is a worker, until it is ended
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import orjson
from cluster_host import CALLS, NODES, answer, keep_in_flight, measure
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

WITHIN: Final = timedelta(seconds=60)


@activity.defn
async def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A question to the model."""
    step: dict[str, Any] = orjson.loads(answer(messages))
    return step


@activity.defn
async def look(q: str) -> str:
    return f"{q}: three titles were found in the archive"


@activity.defn
async def note(q: str) -> str:
    return f"noted {q}"


@workflow.defn
class Agent:
    """A model that looks and notes by turns."""

    @workflow.run
    async def run(self) -> str:
        messages: list[dict[str, Any]] = [{"role": "system", "content": "Look through the archive."}]
        for _ in range(CALLS + 1):
            step = await workflow.execute_activity(ask, messages, start_to_close_timeout=WITHIN)
            if step["type"] == "final":
                return str(step["answer"])
            found = await workflow.execute_activity(step["tool"], step["args"]["q"], start_to_close_timeout=WITHIN)
            messages += [{"role": "assistant", "content": str(step)}, {"role": "user", "content": found}]
        raise AssertionError


@workflow.defn
class Chain:
    """Ten tools, each with what the one before gave."""

    @workflow.run
    async def run(self) -> str:
        found = "x"
        for number in range(NODES):
            found = await workflow.execute_activity(("look", "note")[number % 2], found, start_to_close_timeout=WITHIN)
        return found


async def work(address: str, queue: str) -> None:
    client = await Client.connect(address)
    activities: list[Callable[..., Awaitable[Any]]] = [ask, look, note]
    runner = UnsandboxedWorkflowRunner()
    await Worker(
        client, task_queue=queue, workflows=[Agent, Chain], activities=activities, workflow_runner=runner
    ).run()


async def submit(flow: str, seconds: str, in_flight: str, address: str, queue: str) -> None:
    client = await Client.connect(address)

    async def run_one() -> None:
        kind = Agent.run if flow == "agent" else Chain.run
        await client.execute_workflow(kind, id=f"{flow}-{uuid4().hex}", task_queue=queue)

    await measure(lambda span: keep_in_flight(run_one, span, int(in_flight)), float(seconds))
    await asyncio.Event().wait()  # until it is ended: a client has no end of its own


if __name__ == "__main__":
    asyncio.run({"submit": submit, "work": work}[sys.argv[1]](*sys.argv[2:]))
