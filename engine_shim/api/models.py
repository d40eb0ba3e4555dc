"""What goes in and out of the routes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agent_core.outputs import Json

Text = Annotated[str, Field(max_length=1_000_000)]
Said = Annotated[str, Field(min_length=1, max_length=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


def read_whole(value: Any) -> Any:
    """Return a number without a fraction as an integer: 3.0 is one in JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(read_whole)]


class RequestBody(BaseModel):
    """What comes in: nothing more than its fields, and nothing of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class WorkflowVersion(BaseModel):
    """One version of a workflow. A run names it as `id@version`."""

    id: str
    version: str
    name: str
    description: str
    inputs: Any = None


class WorkflowList(BaseModel):
    """All workflows with their versions, the newest first, which is the one that `id` alone names."""

    workflows: list[WorkflowVersion]


class WorkflowDetail(WorkflowVersion):
    """One version of a workflow, with its definition."""

    definition: Json


class Trigger(BaseModel):
    """What starts runs of a workflow without a caller. `next_at` is None for a webhook."""

    name: str
    workflow: str
    cron: str | None
    timezone: str
    next_at: str | None
    last_at: str | None
    last_run: str | None


class TriggerList(BaseModel):
    triggers: list[Trigger]


class Me(BaseModel):
    """Who calls: `is_open` says that the server asks for no token."""

    name: str
    tenant: str | None
    scopes: list[Literal["read", "run", "decide", "admin"]]
    is_open: bool
    version: str


class Health(BaseModel):
    """That the server serves. `clock_difference_s` is by how many seconds its clock is ahead of that of its store; null
    where both agree within a second."""

    status: Literal["ok", "ending"]
    version: str
    clock_difference_s: float | None
