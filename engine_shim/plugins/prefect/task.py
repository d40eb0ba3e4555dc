"""make_agent_task(): an agent as a task of Prefect, which goes on where an attempt before it has ended."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from prefect import Task, runtime
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.context import TaskRunContext
from prefect.tasks import exponential_backoff

from agent_core.models.client import ModelClient
from agent_core.node import NodeContext, make_run_id
from agent_core.outputs import Json
from agent_core.run.secrets import Secrets
from engine_shim.plugins.attempt import Place, deadline_within, execute_beside
from engine_shim.plugins.decided import FINAL_ERRORS, give_output, read_decisions
from engine_shim.plugins.prefect.blocks import AgentModel, AgentStore, open_block
from utools.registry import ToolRegistry
from utools.tool import Tool

LOOK_EVERY_S: Final = 5.0
"""How often an attempt asks whether its flow run is cancelled, of which Prefect tells only tasks that are called
directly."""
DEFAULTS: Final[Mapping[str, Any]] = {
    "retries": 3,
    "retry_delay_seconds": exponential_backoff(2),
    "cache_policy": NO_CACHE,  # a run that waits has outputs, too; the journal has those of one that has ended
}


def make_agent_task(
    name: str,
    config: Mapping[str, Any],
    *,
    tools: ToolRegistry | Iterable[Tool],
    journal: Place | AgentStore,
    model: ModelClient | str | AgentModel | None = None,
    secrets: Secrets | None = None,
    **options: Any,
) -> Any:
    """Return a task: `task(prompt)` gives the outputs of the node, with their `status`.

    `config` is the node's but its prompt, `options` are those of a task. `journal` and `model` may be blocks, or the
    names of saved ones: `agent-store/NAME`, `agent-model/NAME`. In a flow run, its subflows and retries included, the
    same prompt is the same run; `key` tells two runs apart. A run that waits is a result: `ask_agent` suspends the flow
    for it. AgentRunFailed for a run that failed or was cancelled, which is not retried, as nothing is that no retry
    mends. A flow run that is cancelled cancels the run; a worker that goes away lets go of it.
    """
    kept = tools if isinstance(tools, ToolRegistry) else list(tools)  # a registry cannot be sent to another process

    def attempt(prompt: str, *, key: str | None = None, decisions: Sequence[Json] = (), by: str = "caller") -> Json:
        told = TaskRunContext.get()
        context = NodeContext(
            run_id=_run_id(name, key or hashlib.sha256(prompt.encode()).hexdigest()[:16]),
            journal=open_block(journal),
            tools=kept,
            model=open_block(model),
            attempt=1 if told is None else told.task_run.run_count,
            deadline=deadline_within(None if told is None else told.task.timeout_seconds),
            secrets=secrets,
            decisions=read_decisions(decisions),
            by=by,
        )
        asked = {**config, "prompt": prompt}
        return give_output(execute_beside(asked, context, _is_cancelled, look_every=LOOK_EVERY_S))

    return Task(attempt, name=name, retry_condition_fn=_may_mend, **{**DEFAULTS, **options})


def _run_id(name: str, key: str) -> str:
    """Return the id of a run: Prefect gives a task another id, and a subflow too, when their flow is run again. The
    function of a task that is called without Prefect begins a run each time."""
    return make_run_id(name, runtime.flow_run.root_flow_run_id or runtime.task_run.id or str(uuid4()), key)


def _is_cancelled() -> bool:
    """Return whether the flow run, or the one that it is a part of, is cancelled; not if the server is away."""
    runs = {runtime.flow_run.id, runtime.flow_run.root_flow_run_id} - {None}
    try:
        with get_client(sync_client=True) as client:
            states = [client.read_flow_run(run).state for run in runs]
    except Exception:  # of any transport
        return False
    return any(state is not None and (state.is_cancelling() or state.is_cancelled()) for state in states)


def _may_mend(_task: Any, _run: Any, state: Any) -> bool:
    return not isinstance(state.data, FINAL_ERRORS)
