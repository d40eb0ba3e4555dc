"""BeginRun: the activity by which a run begins that another workflow asks for. It may come again."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from temporalio import activity
from temporalio.exceptions import ApplicationError

from agent_core.errors import AgentCoreError, JournalError
from agent_core.outputs import Json
from engine_shim.definition.errors import refuse
from engine_shim.definition.inputs import unlisted_inputs
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.errors import DefinitionError, EngineError, RunBusy
from engine_shim.runs.engine import Engine
from engine_shim.runs.temporal.settings import workflow_id


class RunRequest(BaseModel):
    """What a workflow asks for: `workflow`, as `id` or `id@version`, or an `agent` of the host; and its inputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workflow: str | None = None
    agent: str | None = None
    inputs: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if (self.workflow is None) == (self.agent is None):
            raise ValueError("name a `workflow`, or an `agent`")
        return self


class Definitions(Protocol):
    """The definitions that a host knows by name."""

    def find(self, request: RunRequest) -> tuple[CheckedWorkflow, Json]:
        """Return what runs, and its inputs. EngineError or DefinitionError for what the host does not know."""
        ...


class BeginRun:
    """Begins runs of one engine. A worker without `definitions` refuses each."""

    def __init__(self, engine: Engine, definitions: Definitions | None) -> None:
        self._engine, self._definitions = engine, definitions

    @activity.defn
    async def begin_run(self, run: str, request: Json) -> None:
        """Write how a run begins, unless it has begun so. What no retry mends is not tried again."""
        with _final_errors():
            _check_id(run, activity.info())
            await asyncio.to_thread(self._begin, run, request)

    def _begin(self, run: str, told: Json) -> None:
        if self._definitions is None:
            raise DefinitionError("this worker knows no definitions; start it with `agent-core worker`", where="worker")
        workflow, inputs = self._definitions.find(_read_request(told))
        if self._engine._has_begun(run):
            self._check_same(run, workflow, inputs)
            return
        refuse(unlisted_inputs(workflow.definition, inputs))
        self._engine.begin(workflow, external=inputs, run_id=run)

    def _check_same(self, run: str, workflow: CheckedWorkflow, inputs: Json) -> None:
        """DefinitionError for a run of another workflow, or of other inputs."""
        known = self._engine.workflow(run).definition.id
        if known != workflow.definition.id or not self._engine._has_begun_with(run, workflow, external=inputs):
            what = f"run {run!r} began as another one, of {known!r}; give the child workflow another id"
            raise DefinitionError(what, where="run_id")


def _check_id(run: str, info: activity.Info) -> None:
    """DefinitionError for a workflow under whose id nobody looks for the run."""
    if info.workflow_id != workflow_id(info.task_queue, run):
        what = f"must be {info.task_queue}/RUN, and its run is called RUN"
        raise DefinitionError(what, where="the id of the child workflow", value=info.workflow_id)


def _read_request(told: Json) -> RunRequest:
    try:
        return RunRequest.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"])) or "request"
        raise DefinitionError(first["msg"], where=where) from None


@contextmanager
def _final_errors() -> Iterator[None]:
    """Tell Temporal which errors no retry mends: all but a run that is busy, and a store that is away."""
    try:
        yield
    except (RunBusy, JournalError):
        raise
    except (AgentCoreError, DefinitionError, EngineError) as error:
        raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error
