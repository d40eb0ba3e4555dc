"""ChildRun: the workflow of a run that another workflow begins as its child, and whose outputs that one gets."""

import asyncio
from typing import Any, Literal

import orjson
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agent_core.errors import AgentCoreError
from agent_core.outputs import Json
from agent_core.run.control import Stopping
from agent_core.statuses import ENDED
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.runs.temporal.backend import perform
from engine_shim.runs.temporal.settings import CHILD_WORKFLOW, KEPT, MAX_RESULT, RUN_FAILED
from engine_shim.runs.temporal.workflow import DrivenRun

GoOn = Literal["go on"]


@workflow.defn(name=CHILD_WORKFLOW, failure_exception_types=[AgentCoreError])
class ChildRun(DrivenRun):
    """Begins the run that its own id names, `QUEUE/RUN`, unless it has begun; drives it, waits in it, and gives its
    outputs. Whatever else signals that id, such as a decision, reaches it."""

    @workflow.run
    async def run(self, request: Json, word: Stopping | GoOn | None = None) -> Json:
        """Returns {run_id, status, finish_reason, outputs}. `word` is what a history before this one was told.

        ApplicationError of the type AgentRunFailed for a run that failed or was cancelled. A workflow that is cancelled
        cancels its run, and ends after it.
        """
        driving = asyncio.create_task(self._begin_and_drive(request, word))
        self._request, is_cancelled = request, False
        while not driving.done():
            try:
                await workflow.wait_condition(driving.done)
            except asyncio.CancelledError:
                is_cancelled = True
                self.wake("cancel")
        try:
            outcome = await driving
        except ActivityError as error:
            raise error.cause or error from error
        if is_cancelled and outcome.finish_reason == "cancelled":
            raise asyncio.CancelledError
        return read_outcome(outcome)

    async def _begin_and_drive(self, request: Json, word: Stopping | GoOn | None) -> FlowOutcome:
        run = workflow.info().workflow_id.rpartition("/")[2]
        if word is None:
            await perform("begin_run", run, request)
        elif word != "go on":
            self._stop.request(word)
        status = await self._drive_to_end(run)
        assert status in ENDED
        assert self._outcome is not None
        return self._outcome

    def _next_args(self, run: str) -> list[Any]:
        return [self._request, self._stop.requested or "go on"]


def read_outcome(outcome: FlowOutcome) -> Json:
    """Return how a run ended, for the workflow that began it: with the outputs that its definition declares, else with
    those of its nodes. ApplicationError for one that has not completed."""
    run: str = outcome.output["run_id"]
    if outcome.output["status"] != "completed":
        message = (outcome.output["error"] or {}).get("message", "it was cancelled")
        details = (run, outcome.finish_reason, message)
        told = f"run {run} ended by {outcome.finish_reason}: {message}"
        raise ApplicationError(told, *details, type=RUN_FAILED, non_retryable=True)
    nodes = {node: _without_records(output) for node, output in outcome.nodes.items()}
    outputs = nodes if outcome.declared is None else outcome.declared
    result = {"run_id": run, "status": "completed", "finish_reason": outcome.finish_reason, "outputs": outputs}
    if (size := len(orjson.dumps(result))) > MAX_RESULT:
        hint = "let the definition declare `outputs`; they are in the journal"
        told = f"run {run} has completed, and its outputs of {size:,} bytes are too large for Temporal: {hint}"
        raise ApplicationError(told, run, type="OutputsTooLarge", non_retryable=True)
    return result


def _without_records(output: Any) -> Any:
    """Return the output of a node; that of an agent without what its journal has."""
    if isinstance(output, dict) and {"finish_reason", *KEPT} <= output.keys():
        return {key: value for key, value in output.items() if key not in KEPT}
    return output
