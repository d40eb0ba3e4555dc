"""make_agent_activity(): an agent as an activity of Temporal, which goes on where an attempt before it has ended."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from agent_core.decisions import Decision
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.node import AttemptStop, NodeContext, execute, make_run_id
from agent_core.outputs import Json
from agent_core.run.agent_output import AgentOutput
from agent_core.run.cancellation import retry_if_cancelled
from agent_core.run.secrets import Secrets
from engine_shim.plugins.attempt import deadline_within
from engine_shim.plugins.decided import FINAL_ERRORS, encode_decisions, give_output, read_decisions
from engine_shim.runs.temporal.settings import KEPT, MAX_RESULT
from utools.registry import ToolRegistry
from utools.tool import Tool

BEATS: Final = 3
"""How many heartbeats there are in the time in which Temporal wants one."""
LET_GO: Final = "LetGo"
"""The type of the error of an attempt whose time was over: the next one goes on."""


@dataclass(frozen=True)
class AgentRequest:
    """What a workflow asks of an agent: a prompt; later on, decisions on the calls for which the run waits."""

    prompt: str
    run_id: str | None = None
    decisions: list[Json] = field(default_factory=list)
    by: str = "caller"

    def decided(self, output: Mapping[str, Any], decisions: Mapping[int, Decision], *, by: str) -> "AgentRequest":
        """Return the request that goes on with a run that waits: with a person's decisions, by their place in
        `output["waiting"]`; `by` names that person."""
        return replace(self, run_id=output["run_id"], decisions=encode_decisions(output, decisions), by=by)


def make_agent_activity(
    name: str,
    config: Mapping[str, Any],
    *,
    tools: ToolRegistry | Iterable[Tool],
    journal: Journal | str | os.PathLike[str],
    model: ModelClient | str | None = None,
    secrets: Secrets | None = None,
) -> Callable[[AgentRequest], Coroutine[Any, Any, Json]]:
    """Return an activity that a workflow calls by its name with an AgentRequest: it gives the outputs of the node, with
    their `status`.

    `config` is the node's but its prompt. Each attempt goes on with the run of the one before. Give the activity a
    `heartbeat_timeout`, by which Temporal finds a worker that died. A run that waits is a result: call the activity
    again with `request.decided(…)`. ApplicationError, which Temporal does not retry, for a run that failed (its type is
    AgentRunFailed) and for what no retry mends. A workflow that cancels the activity cancels the run; a worker that
    shuts down lets go of it.
    """
    registry = ToolRegistry.from_tools(tools, where="tools")

    @activity.defn(name=name)
    async def attempt(request: AgentRequest) -> Json:
        info = activity.info()
        context = NodeContext(
            run_id=request.run_id
            or make_run_id(name, info.workflow_id or "", info.workflow_run_id or "", info.activity_id),
            journal=journal,
            tools=registry,
            model=model,
            attempt=info.attempt,
            deadline=_deadline_of(info),
            secrets=secrets,
            decisions=read_decisions(request.decisions),
            by=request.by,
        )
        with _beating(info), _final_errors():
            output = await _see_through({**config, "prompt": request.prompt}, context)
            if output.status == "paused":
                raise ApplicationError(f"run {output.run_id} goes on in the next attempt", type=LET_GO)
            return _fit(give_output(output))

    return attempt


def _fit(output: Json) -> Json:
    """Return outputs that Temporal takes: without what the journal keeps, where they are too large. ApplicationError
    where they still are, since each further attempt would give the same."""
    if len(orjson.dumps(output)) <= MAX_RESULT:
        return output
    less = {key: value for key, value in output.items() if key not in KEPT}
    if (size := len(orjson.dumps(less))) > MAX_RESULT:
        run = output["run_id"]
        told = f"run {run} is {output['status']}, and its outputs of {size:,} bytes are too large for Temporal"
        raise ApplicationError(f"{told}; they are in the journal", run, type="OutputsTooLarge", non_retryable=True)
    return less


async def _see_through(config: Mapping[str, Any], context: NodeContext) -> AgentOutput:
    """Return what an attempt comes to. Where it is cancelled, its run is, or is let go of, as Temporal says why; a
    further cancellation, as by a worker that shuts down meanwhile, changes nothing of that."""
    work = asyncio.ensure_future(execute(config, context))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stopping = asyncio.create_task(_stop(work, context.stop))
        await retry_if_cancelled(lambda: asyncio.wait([stopping]), lambda _: None)
        stopping.result()
        raise


async def _stop(work: asyncio.Future[AgentOutput], stop: AttemptStop) -> None:
    if await _is_given_up():
        stop.cancel()
    else:
        stop.let_go()
    await asyncio.wait([work])


async def _is_given_up() -> bool:
    """Return whether no other attempt comes: the activity was cancelled, or its workflow has ended before it."""
    details, info = activity.cancellation_details(), activity.info()
    if details is None or details.cancel_requested or not details.not_found:
        return details is not None and details.cancel_requested
    handle = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    with suppress(RPCError):
        return (await handle.describe()).status != WorkflowExecutionStatus.RUNNING
    return False


@contextmanager
def _beating(info: activity.Info) -> Iterator[None]:
    """Tell Temporal that the activity lives, until the end of the block."""
    every = (info.heartbeat_timeout or timedelta(minutes=1)).total_seconds() / BEATS

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(every)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


@contextmanager
def _final_errors() -> Iterator[None]:
    """Tell Temporal of which errors no retry mends what is wrong."""
    try:
        yield
    except FINAL_ERRORS as error:
        raise ApplicationError(str(error), *error.args, type=type(error).__name__, non_retryable=True) from error


def _deadline_of(info: activity.Info) -> datetime | None:
    """Return when a run is to be let go, before the attempt of its activity ends."""
    limit = info.start_to_close_timeout
    return deadline_within(None if limit is None else limit.total_seconds())
