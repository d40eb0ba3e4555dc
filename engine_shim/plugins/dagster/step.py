"""make_agent_op() and make_agent_asset(): an agent as a step of Dagster, which goes on where one before has ended."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dagster import (
    AssetIn,
    Backoff,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    Failure,
    In,
    OpExecutionContext,
    Output,
    RetryPolicy,
    asset,
    op,
)

from agent_core import verify
from agent_core.models.client import ModelClient
from agent_core.node import NodeContext, make_run_id
from agent_core.run.secrets import Secrets
from engine_shim.plugins.attempt import execute_beside
from engine_shim.plugins.dagster.resource import AgentResource
from engine_shim.plugins.decided import FINAL_ERRORS, give_output
from utools.annotations import read_signature
from utools.registry import ToolRegistry
from utools.tool import Tool

WAITING: Final = "agent_core/waiting"
"""The tag of a Dagster run in which an agent waits for a person."""
ROOT: Final = "dagster/root_run_id"
PARENT: Final = "dagster/parent_run_id"
CONTEXT: Final = "context"
"""The parameter of a prompt's function that is given Dagster's context instead of an asset."""
RETRIES: Final = RetryPolicy(max_retries=3, delay=2, backoff=Backoff.EXPONENTIAL)
Attempt = Callable[[OpExecutionContext, AgentResource, str], Output[dict[str, Any]]]


def make_agent_op(
    name: str,
    config: Mapping[str, Any],
    *,
    tools: ToolRegistry | Iterable[Tool],
    model: ModelClient | str | None = None,
    secrets: Secrets | None = None,
    **options: Any,
) -> Any:
    """Return an op with the input `prompt` and the resource `agents`; its output is that of the node, with its
    `status`.

    `config` is the node's but its prompt, `options` are those of an op. A retry, and a re-execution of a run, go on
    with the same run. A run that waits fails its step without a retry, and no process holds it; `make_agent_sensor`, or
    a re-execution from failure, goes on once it is decided. What no retry mends is not retried. Terminating the
    Dagster run cancels the run; a process that goes away lets go of it.
    """
    attempt = _attempt(name, config, ToolRegistry.from_tools(tools, where="tools"), model, secrets)

    @op(name=name, ins={"prompt": In(str)}, **{"retry_policy": RETRIES, **options})
    def compute(context: OpExecutionContext, agents: AgentResource, prompt: str) -> Output[dict[str, Any]]:
        return attempt(context, agents, prompt)

    return compute


def make_agent_asset(
    name: str,
    config: Mapping[str, Any],
    *,
    prompt: Callable[..., str],
    tools: ToolRegistry | Iterable[Tool],
    model: ModelClient | str | None = None,
    secrets: Secrets | None = None,
    **options: Any,
) -> Any:
    """Return an asset whose value is the output of the node: what `make_agent_op` returns, with a prompt that is made
    of other assets. `prompt` is a function of their values, by their names, and of `context`, if it wants that: such as
    for its partition. `options` are those of an asset."""
    attempt = _attempt(name, config, ToolRegistry.from_tools(tools, where="tools"), model, secrets)
    wanted = read_signature(prompt).parameters
    ins = {each: AssetIn() for each in wanted if each != CONTEXT}

    @asset(name=name, **{"ins": ins, "retry_policy": RETRIES, **options})
    def compute(context: OpExecutionContext, agents: AgentResource, **values: Any) -> Output[dict[str, Any]]:
        told = {CONTEXT: context} if CONTEXT in wanted else {}
        return attempt(context, agents, prompt(**told, **values))

    return compute


def _attempt(
    name: str,
    config: Mapping[str, Any],
    registry: ToolRegistry,
    model: ModelClient | str | None,
    secrets: Secrets | None,
) -> Attempt:
    def attempt(context: OpExecutionContext, agents: AgentResource, prompt: str) -> Output[dict[str, Any]]:
        step = (str(context.op_handle), context.get_mapping_key() or "")
        run_id = make_run_id(name, root_of(context.instance, context.run), *step)
        with agents.open_journal() as journal:
            told = NodeContext(
                run_id=run_id,
                journal=journal,
                tools=registry,
                model=model or agents.client(),
                attempt=context.retry_number + 1,
                secrets=secrets,
            )
            try:
                output = give_output(execute_beside({**config, "prompt": prompt}, told, lambda: _is_cancelled(context)))
            except FINAL_ERRORS as error:
                raise Failure(str(error), {"agent_run_id": run_id}, allow_retries=False) from error
            proof = _prove(output, journal)
        if output["status"] == "waiting":
            context.instance.add_run_tags(context.run_id, {WAITING: "true"})
            raise Failure(f"run {run_id} waits for a person", proof, allow_retries=False)
        return Output(output, metadata=proof)

    return attempt


def root_of(instance: DagsterInstance, run: DagsterRun) -> str:
    """Return the id of the first of the Dagster runs that were re-executed, or that a sensor went on with."""
    root = run.root_run_id or run.tags.get(ROOT)
    before = instance.get_run_by_id(root) if root else None
    return root or run.run_id if before is None else root_of(instance, before)


def _is_cancelled(context: OpExecutionContext) -> bool:
    """Return whether the Dagster run is terminated by request; as Dagster does, else its process only goes away."""
    run = context.instance.get_run_by_id(context.run_id)
    return run is not None and run.status in (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED)


def _prove(output: dict[str, Any], journal: Any) -> dict[str, Any]:
    """Return what proves a run, for the page of a step."""
    held = verify(journal, run_id=output["run_id"])
    return {
        "agent_run_id": output["run_id"],
        "journal_head": output["journal"]["head"],
        "journal_records": output["journal"]["count"],
        "verified": held.ok,
        "finish_reason": output["finish_reason"],
        "steps": len(output["trace"]),
        "usage": output["usage"],
        "waiting": output["waiting"],
    }
