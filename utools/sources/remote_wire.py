"""How one host offers its tools to another: the JSON of `GET /tools` and `POST /tools/{code}/execute`."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

TOOLS = "/tools"
EXECUTE = "/tools/{code}/execute"


class Function(BaseModel):
    """A tool in function-calling shape: its code, what it does, the schema of its arguments."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default={"type": "object"})


class Offer(BaseModel):
    """One entry of the list that `GET /tools` answers, as `ToolRegistry.definitions` gives it, and what else is known.

    A caller believes `effect` and `idempotent` only of a host that it trusts.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    type: Literal["function"] = "function"
    function: Function
    effect: Literal["read", "write"] = "write"
    idempotent: bool = False


class Execution(BaseModel):
    """What `POST /tools/{code}/execute` is sent. `idempotency_key` is the same for every attempt of one call."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    args: dict[str, Any]
    idempotency_key: str | None = None


class Executed(BaseModel):
    """What it answers, with status 200 even where the tool failed.

    `transient`: trying again may help; `cut_off`: the tool had begun, and nobody knows how far it came.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    success: bool
    output: Any = None
    error: str | None = None
    transient: bool = False
    cut_off: bool = False
