"""run_child(): a run of a host as a child workflow, driven by that host's workers. The sandbox can import it."""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from engine_shim.runs.temporal.settings import CHILD_WORKFLOW, QUEUE, workflow_id

SHOWN: Final = 80
"""How many characters of its parent and its key the id of a run shows."""
DIGITS: Final = 12
PAUSES_S: Final = (1, 2, 4, 8, 16, 32, 60)
"""How long a child waits whose run another workflow still drives; then the last one again."""


@dataclass(frozen=True)
class ChildRequest:
    """What the child runs: a `workflow` of the host, as `id` or `id@version`, or an `agent` of its catalogue, whose
    inputs are {message}, or {message, history}."""

    workflow: str | None = None
    agent: str | None = None
    inputs: dict[str, Any] = field(default_factory=dict)


async def run_child(
    request: ChildRequest,
    *,
    key: str,
    queue: str = QUEUE,
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE,
    **options: Any,
) -> dict[str, Any]:
    """Return {run_id, status, finish_reason, outputs} of a run, once it has completed. Call it in a workflow.

    `key` names the run among those of this workflow: a retry of the workflow, and one that continues as new, comes to
    the same run by the same key, which then continues, or gives its outputs again. `queue` is that of the host's
    workers; `options` are those of `execute_child_workflow`. ChildWorkflowError, whose cause is an ApplicationError of
    the type AgentRunFailed for a run that failed or was cancelled, and of another one for a run that cannot begin.
    """
    identity = workflow_id(queue, child_run_id(key))
    for attempt in range(10**9):
        try:
            outputs: dict[str, Any] = await workflow.execute_child_workflow(
                CHILD_WORKFLOW,
                request,
                id=identity,
                task_queue=queue,
                parent_close_policy=parent_close_policy,
                **options,
            )
        except WorkflowAlreadyStartedError:  # that of an earlier attempt ends at this moment, or still drives the run
            await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
        else:
            return outputs
    raise AssertionError


def child_run_id(key: str) -> str:
    """Return the id of the run that `run_child` begins by this key, in the workflow that calls it."""
    info = workflow.info()
    parts = [info.workflow_id, info.first_execution_run_id, key]
    shown = re.sub(r"[^A-Za-z0-9_.]+", "-", f"{info.workflow_id}.{key}")[:SHOWN].strip("-._")
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGITS]
    return f"{shown}-{digest}" if shown else digest
