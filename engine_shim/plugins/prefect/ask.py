"""ask_agent(): a flow that asks an agent, and is suspended without a worker while its run waits for a person."""

import asyncio
import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from prefect import get_run_logger, pause_flow_run, suspend_flow_run
from prefect.context import FlowRunContext
from prefect.input import RunInput
from pydantic import Field

from agent_core.errors import DecisionError
from agent_core.outputs import Json
from engine_shim.plugins.decided import place_decisions

A_DAY = 24 * 3600
Call = Callable[..., Awaitable[Any]]
"""Calls a function with what follows it."""


class AgentDecisions(RunInput):
    """What a person decides about the calls that wait: what the flow run is resumed with."""

    decisions: list[dict[str, Any]] = Field(default=[], description='{"decision": "approve"}, one for each call')
    by: str = Field(default="caller", description="Who decides")


def ask_agent(task: Any, prompt: str, *, key: str | None = None, timeout: int | None = None) -> Any:
    """Return the outputs of an agent's task once nothing waits; in an `async` flow they are awaited.

    While a run waits, its flow run is suspended, and no process holds it; resumed with AgentDecisions, it runs from its
    start, and comes back here. A flow run without a deployment, and a subflow, cannot be suspended: it is paused in its
    process. `timeout` is in seconds: none if suspended, a day if paused. A decision that fits nothing is logged, and
    the flow asks again.
    """
    context = FlowRunContext.get()
    if context is not None and context.flow is not None and context.flow.isasync:
        return _ask(_call_beside, task, prompt, key, timeout)
    return _finish(_ask(_call, task, prompt, key, timeout))


async def _ask(call: Call, task: Any, prompt: str, key: str | None, seconds: int | None) -> Json:
    asked = Counter[str]()
    output: Json = await call(task, prompt, key=key)
    while output["status"] == "waiting":
        shown = json.dumps(output["waiting"], sort_keys=True)
        name = hashlib.sha256(f"{output['run_id']} {shown} {asked[shown]}".encode()).hexdigest()
        asked[shown] += 1
        given = await call(_wait_for_person, output["waiting"], name, seconds)
        try:
            placed = place_decisions(given.decisions, output["waiting"])
            output = await call(task, prompt, key=key, decisions=placed, by=given.by)
        except DecisionError as error:
            get_run_logger().warning("%s; asking again", error)
            output = await call(task, prompt, key=key)
    return output


async def _call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return function(*args, **options)


async def _call_beside(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function in a thread, so that the flow's event loop goes on; Prefect's own may give an awaitable."""
    given = await asyncio.to_thread(function, *args, **options)
    return await given if inspect.isawaitable(given) else given


def _finish(asking: Coroutine[Any, Any, Json]) -> Json:
    """Return what a coroutine gives that waits for nothing."""
    try:
        asking.send(None)
    except StopIteration as end:
        given: Json = end.value
        return given
    raise RuntimeError("a flow without `async` cannot wait for an awaitable")


def _wait_for_person(waiting: list[Json], name: str, timeout: int | None) -> Any:
    context = FlowRunContext.get()
    run = None if context is None else context.flow_run
    shown = f"These calls wait:\n```json\n{json.dumps(waiting, indent=2)}\n```"
    wanted = AgentDecisions.with_initial_data(description=shown)
    if run is None or run.deployment_id is None or run.parent_task_run_id is not None:
        return pause_flow_run(wait_for_input=wanted, timeout=timeout or A_DAY, key=name)
    return suspend_flow_run(wait_for_input=wanted, timeout=timeout, key=name)
