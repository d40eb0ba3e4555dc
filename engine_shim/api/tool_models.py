"""What goes in and out of the routes for tools."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent_core.outputs import Json, RunError
from agent_core.statuses import RunStatus
from engine_shim.api.models import RequestBody
from utools.tool import Effect


class ToolUser(BaseModel):
    """A node that uses a tool, by itself or by its agent, in the newest version of a workflow."""

    workflow: str
    version: str
    node: str
    how: Literal["node", "agent"]


class Tool(BaseModel):
    """A tool of this host. `executable` says that it may be executed by itself, `pinned` that its definition comes from
    elsewhere and was approved. `agents` are those of the catalogue that have it."""

    code: str
    description: str
    effect: Literal[Effect, "depends"]
    executable: bool
    config_schema: Json
    output_schema: Json | None
    source: str
    idempotent: bool
    pinned: bool
    used_by: list[ToolUser]
    agents: list[str]


class LeftOutSource(BaseModel):
    """A source of tools, or one tool of it, that cannot be used, and why."""

    name: str
    why: str


class ToolList(BaseModel):
    tools: list[Tool]
    left_out: list[LeftOutSource]


class ExecuteRequest(RequestBody):
    """The arguments of a call, beside what the operator presets."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"args": {"expression": "2 * 21"}}]})

    args: Json = Field(default={})


class Execution(BaseModel):
    """What came of a call, which is a run of one step."""

    run_id: str
    success: bool
    output: Any
    error: RunError | None
    status: RunStatus


class ToolDefinition(BaseModel):
    """A tool as its source describes it."""

    description: str
    config_schema: Json
    output_schema: Json | None
    read_only: bool
    idempotent: bool


class ToolChange(BaseModel):
    """What a source offers otherwise than was approved."""

    source: str
    tool: str
    kind: Literal["new", "changed", "gone"]
    before: ToolDefinition | None
    after: ToolDefinition | None


class SourceFault(BaseModel):
    """Why a source could not be asked."""

    source: str
    message: str


class ToolChanges(BaseModel):
    """All changes, and the digest by which exactly these are approved."""

    changes: list[ToolChange]
    digest: str
    faults: list[SourceFault]


class ApproveRequest(RequestBody):
    """The digest of the changes that somebody has looked at."""

    digest: Annotated[str, Field(min_length=1, max_length=128)]


class Approval(BaseModel):
    """How many changes are approved. Runs get them once the server has started again."""

    approved: int
    restart_needed: bool
