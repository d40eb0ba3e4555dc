"""work(): a worker, which takes up the runs of one store that Temporal hands out."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.workflow import NondeterminismError

from agent_core.run.executor import Executor
from agent_core.run.secrets import signing_keys
from engine_shim.host.config import TemporalConfig
from engine_shim.intervals import CLOCK_INTERVAL_S
from engine_shim.runs.engine import Engine
from engine_shim.runs.temporal.activities import RunActivities
from engine_shim.runs.temporal.begin_run import BeginRun, Definitions
from engine_shim.runs.temporal.child import ChildRun
from engine_shim.runs.temporal.connect import ServerWatch, connect
from engine_shim.runs.temporal.heart import Heart
from engine_shim.runs.temporal.passing_writer import PassingWriter
from engine_shim.runs.temporal.rows import data_converter
from engine_shim.runs.temporal.run_host import RunHosts
from engine_shim.runs.temporal.timeouts import WorkerTimeouts, beat_interval
from engine_shim.runs.temporal.workflow import AgentRun
from engine_shim.store.clock_watch import ClockWatch
from engine_shim.store.passing_events import passing_events_of

TASKS_A_CORE: Final = 4
"""How many runs a worker steps at the same time, and how many short steps on the store it does, for each core. The time
of a task runs from when the worker takes it: of a hundred that share a core each would come too late."""
GRACE: Final = timedelta(seconds=20)
"""How long a worker that is to end lets acts answer."""
RUNNER: Final = UnsandboxedWorkflowRunner()
"""What walks is pure, and the same in every driver; a sandbox would cost a quarter of a worker's time."""
log = logging.getLogger("engine_shim")


def make_worker(
    client: Client,
    engine: Engine,
    queue: str,
    config: TemporalConfig,
    heart: Heart,
    passing: PassingWriter | None = None,
    definitions: Definitions | None = None,
) -> Worker:
    """Return a worker of one engine's store; `definitions` are those that other workflows may begin runs of."""
    tasks = TASKS_A_CORE * count_cores()

    def open_executor(run: str) -> Executor:
        return replace(engine._executor(run), is_let_go=activity.is_worker_shutdown)

    activities = RunActivities(engine.store, RunHosts(open_executor), signing_keys(), heart, passing)
    return Worker(
        client,
        task_queue=queue,
        workflows=[AgentRun, ChildRun],
        workflow_runner=RUNNER,
        activities=[*activities.all(), BeginRun(engine, definitions).begin_run],
        interceptors=[WorkerTimeouts(config)],
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=config.sticky_timeout),
        workflow_failure_exception_types=[NondeterminismError],
        max_heartbeat_throttle_interval=beat_interval(timedelta(seconds=config.heartbeat_timeout)),
        max_concurrent_workflow_tasks=config.max_workflow_tasks or tasks,
        max_concurrent_activities=config.max_activities,
        max_concurrent_local_activities=config.max_local_activities or tasks,
        graceful_shutdown_timeout=GRACE,
    )


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def work(
    engines: dict[str, Engine],
    config: TemporalConfig,
    until: asyncio.Event,
    on_connected: Callable[[], object] | None = None,
    definitions: Mapping[str, Definitions] = MappingProxyType({}),
) -> None:
    """Work on the queue of each engine until the event is set; `on_connected` is called once the server has answered,
    and all is built that a first act needs. `definitions` by queue are those that other workflows may begin runs of.
    EngineAway where none answers."""
    clients = [await connect(config, data_converter(engine.store.journal)) for engine in engines.values()]
    for engine in engines.values():
        await engine.warm_up()
    if on_connected is not None:
        on_connected()
    heart = Heart(config)
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        stack.enter_context(heart.running())
        for client, (queue, engine) in zip(clients, engines.items(), strict=True):
            passing = PassingWriter(passing_events_of(engine.store))
            stack.push_async_callback(passing.close)
            known = definitions.get(queue)
            await stack.enter_async_context(make_worker(client, engine, queue, config, heart, passing, known))
            log.info("worker on queue %s of %s", queue, config.address)
        watching = [tasks.create_task(ServerWatch(config.address).watch(clients[-1]))]
        watching += [tasks.create_task(_watch_clock(each)) for each in engines.values() if each.store.clock.is_remote]
        await until.wait()
        for each in watching:
            each.cancel()


async def _watch_clock(engine: Engine) -> None:
    """Measure the clock of a store until cancelled: what waits in a run waits by that."""
    while True:
        try:
            await ClockWatch(engine.store).run_forever()
        except Exception as error:  # whatever it is, the worker goes on, by the last measurement
            log.warning("the clock of the store cannot be read: %s", error)
        await asyncio.sleep(CLOCK_INTERVAL_S)
