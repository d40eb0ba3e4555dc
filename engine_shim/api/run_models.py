"""What goes in and out of the routes about runs."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from agent_core.decisions import WITHOUT_FIELDS, Decision, Deny, Done, Edit
from agent_core.errors import DefinitionError
from agent_core.journal.path import PLACE, read_place
from agent_core.outputs import Json, PolicyDecision, RunError, WaitingCall
from agent_core.statuses import ListedStatus, RunStatus
from engine_shim.api.models import Name, RequestBody, Said, Text, Whole

T = TypeVar("T")


class RunRequest(RequestBody):
    """The inputs of a run, and where its caller wants to be told when it waits and ends: a URL of a host that the
    configuration names under `callbacks`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"external": {"message": "Where is order 17?"}}]})

    external: Json = Field(default={})
    callback_url: Annotated[str, Field(max_length=4096)] | None = None


class DecisionLink(BaseModel):
    """A link that decides about one waiting call, once. Whoever has the `url` can decide; records show the `id`."""

    url: str
    id: str
    expires_at: str


class ShownCall(WaitingCall):
    """A waiting call; with a `link` that decides about it, where links were asked for."""

    link: NotRequired[DecisionLink]


class JournalEnd(BaseModel):
    """The head of a run's journal and how many records it has: what `agent-core verify --head --count` asks for."""

    head: str
    count: int


class Run(BaseModel):
    """A run of a workflow, or a turn of a conversation with an agent.

    `outputs` are those that the workflow declares, `{}` unless it has completed; where it declares none, they are by
    node. `nodes`, with `?nodes=true`, are those of all nodes.
    """

    run_id: str
    status: RunStatus
    workflow: str | None
    version: str | None
    agent: str | None
    conversation: str | None
    started_at: str | None
    submitted_by: str | None
    outputs: Json
    path: list[str]
    waiting: list[ShownCall]
    error: RunError | None
    journal: JournalEnd | None
    why_paused: str | None = Field(description="Why no server resumes it by itself any more.")
    nodes: Json = Field(default={}, description="The outputs of all nodes, with `?nodes=true` alone.")


class RunSummary(BaseModel):
    """A run as a list shows it. The status of a run that only its journal knows is `unfinished` or `unreadable`.

    `seconds` is null until its end, `agent` unless it is a turn with one, and `cost` (USD) where no price is known.
    `reasons` are why its agents ended, `tools` those that it asked, `asked` the beginning of its first input.
    """

    run_id: str
    workflow: str
    version: str
    status: ListedStatus
    started_at: str
    seconds: float | None
    reasons: list[str]
    tools: list[str]
    asked: str
    agent: str | None
    tokens: int
    cost: float | None


class RunList(BaseModel):
    """The newest runs first. `next` is where the following page begins, by `before`; null where there is none."""

    runs: list[RunSummary]
    next: str | None


class RunStatusView(BaseModel):
    """A run's status once a request has reached it; it may still be running when a call takes long."""

    run_id: str
    status: RunStatus


class RecordRef(RequestBody):
    """A record of a run."""

    strand: Name
    n: Whole = Field(ge=0, le=2**31)

    @property
    def place(self) -> tuple[str, int]:
        return self.strand, self.n


def _read_place(value: Any) -> Any:
    """Return what a place as text stands for. ValueError for what is no place."""
    if value is None or isinstance(value, Mapping):
        return value
    if not isinstance(value, str) or (place := read_place(value)) is None:
        raise ValueError("must be STRAND:N, as in flow/agent_core.1:4, or an object with strand and n")
    return {"strand": place[0], "n": place[1]}


PlaceText = Annotated[str, Field(pattern=PLACE, examples=["flow/agent_core.1:4"])]
At = Annotated[RecordRef | None, BeforeValidator(_read_place, json_schema_input_type=RecordRef | PlaceText | None)]
"""A record, also as the command line writes it: STRAND:N."""


KEY_OF: Final = {"deny": "message", "done": "output", "edit": "args"}
"""The key that a decision alone may have."""


def _describe_decisions() -> Json:
    """Return what JSON Schema says of the keys that one decision alone may have: each case is within the other one, as
    generators of clients take `allOf` for a list of models."""
    none: Json = {key: {"type": "null"} for key in KEY_OF.values()}
    rule: Json = {"properties": none}
    for decision, key in KEY_OF.items():
        then: Json = {"properties": {**none, key: {"type": "object"} if key == "args" else {}}}
        rule = {"if": {"properties": {"decision": {"const": decision}}}, "then": then, "else": rule}
    return {**rule, "then": {**rule["then"], "required": ["args"]}}


def only_with(decision: str, value: T, info: ValidationInfo) -> T:
    """Return the value of a key that one decision alone may have; ValueError where it is given with another one."""
    if value is not None and info.data.get("decision") not in (decision, None):
        raise ValueError(f"belongs to the decision {decision}, and to no other")
    return value


class DecideRequest(RequestBody):
    """A decision on one waiting call. `at` may be left out when one waits. `args` are those of `edit`, `message` that
    of `deny`, `output` what a write in doubt gave that is `done`."""

    model_config = ConfigDict(
        json_schema_extra={
            **_describe_decisions(),
            "examples": [
                {"decision": "approve"},
                {"decision": "approve", "at": "flow/agent_core.1:4"},
                {"decision": "deny", "message": "Not this month."},
                {"decision": "edit", "args": {"pieces": 2}},
                {"decision": "done", "output": {"order": 17}},
            ],
        }
    )
    decision: Literal["approve", "deny", "edit", "retry", "skip", "fail", "done"]
    at: At = None
    message: Text | None = None
    args: Json | None = Field(default=None, validate_default=True)
    output: Any = None

    @field_validator("args")
    @classmethod
    def _check_args(cls, args: Json | None, info: ValidationInfo) -> Json | None:
        if info.data.get("decision") == "edit" and args is None:
            raise PydanticCustomError("value_not_shown", "the decision edit needs the arguments of the call, an object")
        return only_with("edit", args, info)

    @field_validator("message")
    @classmethod
    def _check_message(cls, message: str | None, info: ValidationInfo) -> str | None:
        return only_with("deny", message, info)

    @field_validator("output")
    @classmethod
    def _check_output(cls, output: Any, info: ValidationInfo) -> Any:
        return only_with("done", output, info)

    def read(self) -> Decision:
        """Return the decision. DefinitionError for one that no call can have."""
        match self.decision:
            case "deny":
                return Deny(self.message or "")
            case "edit":
                if self.args is None:
                    raise DefinitionError("edit needs args", where="args")
                return Edit(self.args)
            case "done":
                return Done(self.output)
            case name:
                return WITHOUT_FIELDS[name]()


class ForkRequest(RequestBody):
    """Where a new run leaves the past of this one; without it, where a failed run failed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{}, {"at": {"strand": "flow/agent_core.1", "n": 4}}, {"at": "flow/agent_core.1:4"}]
        }
    )

    at: At = None
    repeat_writes: bool = False


class MessageRequest(RequestBody):
    """A message for the next question of one of the run's agents."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Look at order 18 as well."}]})

    content: Said
    role: Literal["user", "assistant"] = "user"


class SignalRequest(RequestBody):
    """A signal's data, any JSON value: the output `data` of the node that waits for it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"data": {"amount": 12}}]})

    data: Any = None


class Verdict(BaseModel):
    """Whether a run's records are whole: chains, end, and seal where the host has a key; `seal` says what was checked
    of that, `why` why it is not ok. Where its contents are `encrypted` by a key that is not here, or were `erased`, it
    is not known whether the run is complete; of a run that a `newer` version wrote, nothing is known here."""

    ok: bool
    complete: bool
    head: str
    count: int
    first_bad: Json | None
    why: str | None
    seal: str
    contents: Literal["read", "encrypted", "erased", "newer"]


class ReplayRequest(RequestBody):
    """Another policy to judge the run by, in all its agents or in that of one strand; without one, its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"policy": {"deny_tools": ["order"]}}]})

    policy: Json | None = None
    strand: Name | None = None


class RecordPlace(BaseModel):
    """Where a record stands in its run."""

    strand: str
    n: int


class ReplayedRun(BaseModel):
    """What came of a replay. Under another policy, `decisions` has both verdicts on each call."""

    outcome: Literal[
        "identical", "diverged", "unfinished", "damaged", "unreadable", "erased", "changed", "outlived", "inapplicable"
    ]
    identical: bool
    place: RecordPlace | None
    why: str | None
    divergence: Json | None
    tape_ended: str | None
    steps: int
    decisions: list[PolicyDecision]
