"""ask_agent(): a flow that asks an agent, and is suspended without a worker while its run waits for a person."""

import hashlib
import json
from collections import Counter
from typing import Any

from prefect import get_run_logger, pause_flow_run, suspend_flow_run
from prefect.context import FlowRunContext
from prefect.input import RunInput
from pydantic import Field

from agent_core.errors import DecisionError
from agent_core.outputs import Json
from engine_shim.plugins.decided import place_decisions

A_DAY = 24 * 3600


class AgentDecisions(RunInput):
    """What a person decides about the calls that wait: what the flow run is resumed with."""

    decisions: list[dict[str, Any]] = Field(default=[], description='{"decision": "approve"}, one for each call')
    by: str = Field(default="caller", description="Who decides")


def ask_agent(task: Any, prompt: str, *, key: str | None = None, timeout: int | None = None) -> Json:
    """Return the outputs of an agent's task once nothing waits; called in a flow without `async`.

    While a run waits, its flow run is suspended, and no process holds it; resumed with AgentDecisions, it runs from its
    start, and comes back here. A flow run without a deployment, and a subflow, cannot be suspended: it is paused in its
    process. `timeout` is in seconds: none if suspended, a day if paused. A decision that fits nothing is logged, and
    the flow asks again.
    """
    asked = Counter[str]()
    output: Json = task(prompt, key=key)
    while output["status"] == "waiting":
        shown = json.dumps(output["waiting"], sort_keys=True)
        name = hashlib.sha256(f"{output['run_id']} {shown} {asked[shown]}".encode()).hexdigest()
        asked[shown] += 1
        given = _wait_for_person(output["waiting"], name, timeout)
        try:
            output = task(prompt, key=key, decisions=place_decisions(given.decisions, output["waiting"]), by=given.by)
        except DecisionError as error:
            get_run_logger().warning("%s; asking again", error)
            output = task(prompt, key=key)
    return output


def _wait_for_person(waiting: list[Json], name: str, timeout: int | None) -> Any:
    context = FlowRunContext.get()
    run = None if context is None else context.flow_run
    shown = f"These calls wait:\n```json\n{json.dumps(waiting, indent=2)}\n```"
    wanted = AgentDecisions.with_initial_data(description=shown)
    if run is None or run.deployment_id is None or run.parent_task_run_id is not None:
        return pause_flow_run(wait_for_input=wanted, timeout=timeout or A_DAY, key=name)
    return suspend_flow_run(wait_for_input=wanted, timeout=timeout, key=name)
