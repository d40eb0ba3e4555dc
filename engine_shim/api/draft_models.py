"""What goes in and out of the routes for those who write workflows."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent_core.outputs import Json
from engine_shim.api.models import Name, RequestBody, Text

FormatName = Literal["yaml", "json"]
EXAMPLE = "id: hello\nnodes:\n  - {id: say, tool: echo, config: {text: Hello}}\n"


class DraftRequest(RequestBody):
    """A definition as it is written."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": EXAMPLE, "format": "yaml"}]})

    text: Text
    format: FormatName


class DraftRunRequest(DraftRequest):
    """A definition as it is written, and the inputs of its run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": EXAMPLE, "format": "yaml", "external": {}}]})

    external: Json = Field(default={})


class SaveRequest(DraftRequest):
    """A definition as a new version. `expects` is the newest version that it began from; null where there was none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": EXAMPLE, "format": "yaml", "expects": None}]})

    expects: Name | None = None


class DraftFault(BaseModel):
    """What is wrong at a path of the text, and what its author may not mean."""

    path: list[str | int]
    line: int | None
    node: str
    message: str


class DraftNode(BaseModel):
    """A node of the graph; its level is one below the lowest of those that it comes after."""

    id: str
    tool: str
    level: int
    entry: bool
    end: bool


class DraftEdge(BaseModel):
    """An edge of the graph; `back` closes a loop."""

    source: Annotated[str, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    when: str | None
    ask: str | None
    on: Literal["error"] | None
    back: bool


class DraftGraph(BaseModel):
    """The graph that a text defines."""

    nodes: list[DraftNode]
    edges: list[DraftEdge]


class DraftVariable(BaseModel):
    """What a placeholder can name. `type` has JSON types, as in `string|null`, or `any`; it is `certain` that the value
    is there once its node has run."""

    node: str
    path: str
    type: str
    certain: bool


class DraftCheck(BaseModel):
    """What is wrong with a text, and what it defines."""

    id: str | None
    version: str | None
    problems: list[DraftFault]
    warnings: list[DraftFault]
    graph: DraftGraph | None
    variables: list[DraftVariable]


class WorkflowSource(BaseModel):
    """The text of a file that defines a version of a workflow. `file` starts from the workflows' directory."""

    id: str
    version: str
    format: FormatName
    text: str
    file: str
