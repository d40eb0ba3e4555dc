"""The processes of overload.py: workers of one workflow as written by hand for Temporal, and as ours.

    python overload_host.py KIND submit FOLDER ADDRESS KEYS RUNS      begins RUNS runs, prints a line, and follows them
    python overload_host.py KIND work FOLDER ADDRESS KEYS             is a worker, until it is ended

KIND is `hand` or `ours`; KEYS are further ones of `temporal:` as JSON, for ours. A run is a chain of STEPS steps; each
step writes one byte to FOLDER/steps.
"""

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from engine_shim import Engine
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.temporal.worker import work
from utools import tool

STEPS: Final = 100
"""How many steps a run has: more than it makes while it is measured."""
QUEUE: Final = "overload"
WITHIN: Final = timedelta(seconds=60)


def note_step(file: Path) -> None:
    """Count a step: one byte, appended at once."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, b".")
    os.close(descriptor)


@activity.defn
async def step(file: str) -> str:
    note_step(Path(file))
    return "noted"


@workflow.defn
class ByHand:
    """The chain as a workflow of Temporal."""

    @workflow.run
    async def run(self, file: str) -> None:
        for _ in range(STEPS):
            await workflow.execute_activity(step, file, start_to_close_timeout=WITHIN)


async def work_by_hand(folder: Path, config: TemporalConfig) -> None:
    client = await Client.connect(config.address)
    runner = UnsandboxedWorkflowRunner()
    await Worker(client, task_queue=QUEUE, workflows=[ByHand], activities=[step], workflow_runner=runner).run()


async def submit_by_hand(folder: Path, config: TemporalConfig, runs: int) -> None:
    client = await Client.connect(config.address)
    for number in range(runs):
        await client.start_workflow(ByHand.run, str(folder / "steps"), id=run_id(number), task_queue=QUEUE)
    print("begun", flush=True)
    await asyncio.Event().wait()


def engine(folder: Path, temporal: TemporalConfig | None) -> Engine:
    file = folder / "steps"

    @tool(effect="read", code="step")
    def step(n: int) -> str:
        """Counts a step."""
        note_step(file)
        return "noted"

    return Engine([step], store=folder / "runs.db", max_running=1000, temporal=temporal)


def chain() -> dict[str, object]:
    nodes = [{"id": f"n{i}", "tool": "step", "config": {"n": i}} for i in range(STEPS)]
    edges = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(STEPS - 1)]
    return {"id": "chain", "nodes": nodes, "edges": edges}


async def work_as_ours(folder: Path, config: TemporalConfig) -> None:
    await work({QUEUE: engine(folder, None)}, config, asyncio.Event())


async def submit_as_ours(folder: Path, config: TemporalConfig, runs: int) -> None:
    host = engine(folder, config)
    running = [asyncio.create_task(host.run(chain(), run_id=run_id(number))) for number in range(runs)]
    while not all(host._has_begun(run_id(number)) for number in range(runs)):
        await asyncio.sleep(0.1)
    print("begun", flush=True)
    await asyncio.gather(*running)


def run_id(number: int) -> str:
    return f"run-{number}"


def main(kind: str, role: str, folder: str, address: str, keys: str, *runs: str) -> None:
    config = TemporalConfig(address=address, queue=QUEUE, **json.loads(keys))
    works, submits = {"hand": (work_by_hand, submit_by_hand), "ours": (work_as_ours, submit_as_ours)}[kind]
    if role == "work":
        asyncio.run(works(Path(folder), config))
    else:
        asyncio.run(submits(Path(folder), config, int(*runs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
