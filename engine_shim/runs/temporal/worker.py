"""work(): a worker, which takes up the runs of one store that Temporal hands out."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.workflow import NondeterminismError

from agent_core.run.secrets import signing_keys
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.engine import Engine
from engine_shim.runs.temporal.activities import RunActivities
from engine_shim.runs.temporal.connect import ServerWatch, connect
from engine_shim.runs.temporal.rows import data_converter
from engine_shim.runs.temporal.run_host import RunHosts
from engine_shim.runs.temporal.settings import BEAT_S, STICKY
from engine_shim.runs.temporal.workflow import AgentRun

GRACE: Final = timedelta(seconds=20)
"""How long a worker that is to end lets acts answer."""
RUNNER: Final = UnsandboxedWorkflowRunner()
"""What walks is pure, and the same in every driver; a sandbox would cost a quarter of a worker's time."""
log = logging.getLogger("engine_shim")


def make_worker(client: Client, engine: Engine, queue: str) -> Worker:
    """Return a worker of one engine's store."""
    activities = RunActivities(engine.store, RunHosts(engine.executor), signing_keys())
    return Worker(
        client,
        task_queue=queue,
        workflows=[AgentRun],
        workflow_runner=RUNNER,
        activities=activities.all(),
        sticky_queue_schedule_to_start_timeout=STICKY,
        workflow_failure_exception_types=[NondeterminismError],
        max_heartbeat_throttle_interval=timedelta(seconds=BEAT_S),
        graceful_shutdown_timeout=GRACE,
    )


async def work(
    engines: dict[str, Engine],
    config: TemporalConfig,
    until: asyncio.Event,
    on_connected: Callable[[], object] | None = None,
) -> None:
    """Work on the queue of each engine until the event is set; `on_connected` is called once the server has answered.
    EngineAway where none answers."""
    clients = [await connect(config, data_converter(engine.store.journal)) for engine in engines.values()]
    if on_connected is not None:
        on_connected()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        for client, (queue, engine) in zip(clients, engines.items(), strict=True):
            await stack.enter_async_context(make_worker(client, engine, queue))
            log.info("worker on queue %s of %s", queue, config.address)
        watching = tasks.create_task(ServerWatch(config.address).watch(clients[-1]))
        await until.wait()
        watching.cancel()
