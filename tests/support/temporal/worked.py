"""A worker in this process for one workflow of a test, and what Temporal's history has of its run."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from temporalio.client import Client, WorkflowHistory

from engine_shim.host.config import TemporalConfig
from engine_shim.runs.temporal.settings import workflow_id
from engine_shim.runs.temporal.worker import work
from support.crash.matrix_workflows import Case
from support.temporal.homes import Home, open_home


@asynccontextmanager
async def worked(
    name: str, case: Case, folder: Path, address: str, *, worker_keys: Mapping[str, Any] = MappingProxyType({})
) -> AsyncIterator[Home]:
    """A workflow at a server, with a worker in this process until the end of the block, whose configuration has these
    keys."""
    home = open_home(name, case, folder, temporal=TemporalConfig(address=address, queue=name))
    until = asyncio.Event()
    config = TemporalConfig(address=address, **worker_keys)
    worker = asyncio.create_task(work({name: home.worker_engine()}, config, until))
    try:
        yield home
    finally:
        until.set()
        await worker
        home.engine.store.close()


async def read_histories(address: str, queue: str, run: str) -> list[WorkflowHistory]:
    """The histories of a run, in order of time: each that goes on as new begins another one."""
    client, found = await Client.connect(address), list[WorkflowHistory]()
    execution: str | None = ""
    last = await client.get_workflow_handle(workflow_id(queue, run)).fetch_history()
    execution = last.events[0].workflow_execution_started_event_attributes.first_execution_run_id
    while execution:
        history = await client.get_workflow_handle(workflow_id(queue, run), run_id=execution).fetch_history()
        found.append(history)
        execution = history.events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return found


def payloads_of(history: WorkflowHistory) -> list[bytes]:
    """What the events of a history were given, and have given."""

    def look(value: Any) -> Iterator[bytes]:
        if isinstance(value, dict):
            if "data" in value and "metadata" in value:
                yield b64decode(value["data"])
            value = list(value.values())
        for each in value if isinstance(value, list) else ():
            yield from look(each)

    return list(look(history.to_json_dict()))
