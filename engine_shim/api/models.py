"""What goes in and out of the routes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent_core.agents.chat import TURN_TOKENS
from agent_core.agents.reply import ReplyReason
from agent_core.decisions import Approve, Decision, Deny, Edit, Fail, Retry, Skip
from agent_core.errors import DefinitionError
from agent_core.outputs import Json, PolicyDecision, RunError, WaitingCall
from engine_shim.statuses import ListedStatus, RunStatus

Text = Annotated[str, Field(max_length=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


def _read_whole(value: Any) -> Any:
    """A number without a fraction as an integer: 3.0 is one in JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_read_whole)]


class _In(BaseModel):
    """What comes in: nothing more than its fields, and nothing of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RunRequest(_In):
    """The inputs of a run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"external": {"message": "Where is order 17?"}}]})

    external: Json = {}


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
    waiting: list[WaitingCall]
    error: RunError | None
    journal: JournalEnd | None
    why_paused: str | None = Field(description="Why nobody takes it up by itself any more.")
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


class RecordRef(_In):
    """A record of a run, as in `flow/agent_core.1:4`."""

    strand: Name
    n: Whole = Field(ge=0, le=2**31)


def _only_with(decision: str, key: str, schema: Json) -> Json:
    """What JSON Schema says of a key that one decision alone may have."""
    return {
        "if": {"properties": {"decision": {"const": decision}}},
        "then": schema,
        "else": {"properties": {key: {"type": "null"}}},
    }


class DecideRequest(_In):
    """A decision on one waiting call. `at` may be left out when one waits. `args` are those of `edit`, `message` that
    of `deny`."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                _only_with("edit", "args", {"required": ["args"], "properties": {"args": {"type": "object"}}}),
                _only_with("deny", "message", {}),
            ],
            "examples": [
                {"decision": "approve"},
                {"decision": "deny", "message": "Not this month."},
                {"decision": "edit", "args": {"pieces": 2}},
            ],
        }
    )
    decision: Literal["approve", "deny", "edit", "retry", "skip", "fail"]
    at: RecordRef | None = None
    message: Text | None = None
    args: Json | None = None

    @model_validator(mode="after")
    def _check_args(self) -> "DecideRequest":
        if (self.args is not None) != (self.decision == "edit"):
            raise ValueError("args belong to the decision edit, and to no other")
        if self.message is not None and self.decision != "deny":
            raise ValueError("a message belongs to the decision deny, and to no other")
        return self

    def read(self) -> Decision:
        """The decision. DefinitionError for one that no call can have."""
        match self.decision:
            case "approve":
                return Approve()
            case "deny":
                return Deny(self.message or "")
            case "edit":
                if self.args is None:
                    raise DefinitionError("edit needs args", where="args")
                return Edit(self.args)
            case "retry":
                return Retry()
            case "skip":
                return Skip()
        return Fail()


class ForkRequest(_In):
    """Where a new run leaves the past of this one; without it, where a failed run failed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}, {"at": {"strand": "flow/agent_core.1", "n": 4}}]})

    at: RecordRef | None = None
    repeat_writes: bool = False


class MessageRequest(_In):
    """A message for the next question of one of the run's agents."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Look at order 18 as well."}]})

    content: Text
    role: Literal["user", "assistant"] = "user"


class Verdict(BaseModel):
    """Whether a run's records are whole: chains, end, and seal where the host has a key; `seal` says what was checked
    of that, `why` why it is not ok."""

    ok: bool
    complete: bool
    head: str
    count: int
    first_bad: Json | None
    why: str | None
    seal: str


class ReplayRequest(_In):
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
        "identical", "diverged", "unfinished", "damaged", "unreadable", "changed", "outlived", "inapplicable"
    ]
    identical: bool
    place: RecordPlace | None
    why: str | None
    divergence: Json | None
    tape_ended: str | None
    steps: int
    decisions: list[PolicyDecision]


class ChatRequest(_In):
    """A message to an agent; without a conversation's id a new one begins. Both limits only narrow the agent's own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"message": "Where is order 17?"}]})

    message: Text
    conversation_id: Name | None = None
    agent: Name | None = None
    max_tool_calls: Whole = Field(default=5, ge=1, le=1000)
    max_tokens: Whole = Field(
        default=TURN_TOKENS,
        ge=1,
        le=10_000_000,
        description="Read and written in all steps of the turn, prompts included.",
    )


class ChatToolCall(BaseModel):
    """A call that the agent made."""

    tool: str
    arguments: Any
    result: Any


class ChatMeta(BaseModel):
    """What the turn cost."""

    total_tokens: int
    tool_calls_count: int
    latency_ms: int


class ChatAnswer(BaseModel):
    """What came of a turn. `trace_id` is the id of its run."""

    success: bool
    response: str
    conversation_id: str
    trace_id: str | None
    finish_reason: ReplyReason
    tool_calls: list[ChatToolCall]
    meta: ChatMeta
    waiting: list[WaitingCall]
    error: RunError | None


class ChatBegun(BaseModel):
    """A turn that goes on. `trace_id` is the id of its run, which waits for earlier turns of its conversation."""

    conversation_id: str
    trace_id: str
    status: Literal["running"]


class Conversation(BaseModel):
    """The stored messages, oldest first."""

    conversation_id: str
    messages: list[Json]


class ConversationSummary(BaseModel):
    """A conversation in a list: who answered last, when that turn began, and the beginning of the last message."""

    conversation_id: str
    agent: str
    updated_at: str
    messages: int
    last: str


class ConversationList(BaseModel):
    """The newest first."""

    conversations: list[ConversationSummary]


class Agent(BaseModel):
    """An agent of the catalogue, and the tools that it has here."""

    name: str
    description: str
    model: str
    tools: list[str]


class AgentList(BaseModel):
    agents: list[Agent]


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
    """Who calls: `is_open` says that the server asks nobody for a token."""

    name: str
    tenant: str | None
    scopes: list[Literal["read", "run", "decide", "admin"]]
    is_open: bool
    version: str


class Health(BaseModel):
    """That the server serves."""

    status: Literal["ok", "ending"]
    version: str
