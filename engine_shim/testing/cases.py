"""FlowCases: the keys of a test file: what a workflow is given, what stands in for its world, what must come. Pure."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent_core.statuses import RunStatus
from engine_shim.evals.cases import CannedAnswer, Refused, name_of
from engine_shim.evals.matching import Expected
from utools.signal_name import SIGNAL_NAME

Replies = list[str | dict[str, Any]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Mock(_Strict):
    """What a node or a tool gives in place of doing its work: an `output`, an `error`, or `answers` in turn.

    An answer may name the `args` that it is for; the last one that fits is given again.
    """

    output: Any = None
    error: str | None = None
    answers: list[CannedAnswer] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("must say one of output, error and answers")
        return self


class Made(_Strict):
    """A call that must be made: by its `tool` or the `node` that makes it, with at least these `args`."""

    tool: str | None = None
    node: str | None = None
    args: dict[str, Expected] = {}

    @model_validator(mode="after")
    def _names_it(self) -> Self:
        if self.tool is None and self.node is None:
            raise ValueError("must name a tool or a node")
        return self


class Decided(_Strict):
    """What a person decides about a call that waits."""

    decision: Literal["approve", "deny", "edit", "retry", "skip", "fail", "done"]
    message: str = ""
    args: dict[str, Any] | None = None
    output: Any = None


class SentSignal(_Strict):
    """A signal that somebody sends to the run, with its data as JSON."""

    name: str = Field(pattern=SIGNAL_NAME)
    data: Any = None


def _as_signal(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _as_decision(value: Any) -> Any:
    return {"decision": value} if isinstance(value, str) else value


class FlowCase(_Strict):
    """One run of the workflow, and what must come of it. A case without a name is named by its inputs.

    `replies` are what models answer: a list for a workflow with one agent, or a list for each node that asks; `model`
    names a script or a recorded run in their place. `mock` is by node or tool, `decisions` are taken in the order in
    which calls wait. A node that waits takes the next of the `signals` of its name, if there is one; else its time has
    come at once, and without a time it waits. `path`, `outputs`, `error`, `calls` in any order, `refused` and
    `not_called` are what must come; without a `status` the run has to be completed, or failed where an `error` is
    expected.
    """

    inputs: dict[str, Any] = {}
    name: str = Field(default_factory=name_of, min_length=1, max_length=100)
    replies: Replies | dict[str, Replies] | None = None
    model: str | None = Field(default=None, min_length=1)
    mock: dict[str, Mock] = {}
    decisions: list[Annotated[Decided, BeforeValidator(_as_decision)]] = []
    signals: list[Annotated[SentSignal, BeforeValidator(_as_signal)]] = []
    status: RunStatus | None = None
    path: list[str] | None = None
    outputs: dict[str, Expected] = {}
    error: str | None = None
    calls: list[Made] = []
    refused: list[Refused] = []
    not_called: list[Made] = []

    @property
    def wanted_status(self) -> RunStatus:
        return self.status or ("failed" if self.error is not None else "completed")

    @model_validator(mode="after")
    def _has_one_model(self) -> Self:
        if self.replies is not None and self.model is not None:
            raise ValueError("has replies and a model; leave out one of the two")
        return self


class FlowCases(_Strict):
    """The whole file. `workflow` is a path from its directory; without it, `shop.test.yaml` tests `shop.yaml` beside
    it. `mock` is for all cases, and a case's own comes first."""

    workflow: str | None = Field(default=None, min_length=1)
    mock: dict[str, Mock] = {}
    cases: list[FlowCase] = Field(min_length=1)
