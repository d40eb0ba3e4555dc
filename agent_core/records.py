"""What the journal's records hold: one type for each kind, and how answers are written. Pure.

    record         written when                                    by
    run_started    a run begins: all that the loop needs           the driver, from the host's preparation
    asked          an act follows at once                          the recorder
    answered       the act has a result                            the recorder
    decided        judge has decided about a reply                 the loop
    waiting        a call waits for a person, a node for an event  the recorder
    resolved       a person decided, or paused or resumed the run  the caller who decides
                   the event came for which a node waited          the recorder
    cancelled      in place of an answer                           the driver, or the caller who cancels
    message        somebody adds a message to the run              the caller who adds it
    signal         somebody sends a signal to the run              the caller who sends it
    received       an agent reads the messages that were added     the recorder
    run_finished   the run has ended                               the recorder
    sealed         a run ended or waits, and the host has keys     the driver

Field names and their order are the wire format: `encode_answer` and `encode_usage` name every field.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired

from typing_extensions import TypedDict

from agent_core.effects import Answer, CallModel, Failed, ModelReply, ReadMessage, ToolCall, ToolReply, VerdictKind
from agent_core.inherited import SourceRecord
from agent_core.outputs import FinishReason, Json, RunError, RunUsage, TokenParts, UsedTool
from agent_core.rules import RecordedRules
from agent_core.statuses import EndedStatus
from agent_core.tool_policy import ToolPolicy
from utools.tool import Effect as ToolEffect

Kind = Literal[
    "run_started",
    "decided",
    "waiting",
    "resolved",
    "asked",
    "answered",
    "cancelled",
    "message",
    "signal",
    "received",
    "run_finished",
    "sealed",
]
Closing = tuple[str, str, int] | list[Any]
"""[path, head, count] of a strand that a record closes."""


# ── how a run begins ─────────────────────────────────────────────────────────────────────────────


class LimitsRecord(TypedDict):
    """A run's limits; None means unlimited. Tokens, USD, active seconds. A workflow has only those it was handed."""

    steps: NotRequired[int | None]
    tool_calls: NotRequired[int | None]
    tokens: NotRequired[int | None]
    cost: NotRequired[float | None]
    seconds: float | None
    call_seconds: NotRequired[float | None]


class SpentRecord(TokenParts):
    """What earlier attempts at a run have used up. `writes` must not happen twice."""

    steps: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    requests: int
    cost: float | None
    seconds: float
    writes: int
    estimated: bool
    used_tools: NotRequired[Json]


class RunOrigin(TypedDict):
    """Where a forked run comes from: the run, and the record before which it parts from it.

    `at` is when it was forked; `retry` says that this was to try again what had failed.
    """

    run: str
    strand: str
    n: int
    at: NotRequired[str]
    retry: NotRequired[bool]


class TakenOver(TypedDict):
    """What a fork took over of an earlier run as it was recorded there, so that nothing that read it is done anew.

    `journal` is what a nested run that had ended told of its records; its `run` is the earlier run's id. `visits` are
    those of a workflow that goes on, by the id of the run in which each of them began: `{{run.id}}` is that one there.
    """

    journal: NotRequired[Json]
    visits: NotRequired[dict[str, list[tuple[str, int]]]]


class RunStartedBody(TypedDict):
    """What every run begins with."""

    loop: str
    format: int
    run: str
    at: str
    limits: LimitsRecord
    redaction: Any
    versions: dict[str, str]
    rules: NotRequired[RecordedRules]
    taken: NotRequired[TakenOver]


class AgentNote(TypedDict):
    """An agent of the catalogue: the tools that its policy kept, and why it dropped each other one of the host.

    `overrides` are the keys of its config that this turn set otherwise, `conversation` the one that it is a turn of.
    """

    name: str
    kept: list[str]
    dropped: dict[str, str]
    overrides: list[str]
    conversation: NotRequired[str]


TURN_TOOL: Final = "agent_core.turn"
"""The tool of a turn's first and last node: reads the history, and stores the turn."""


class TurnNote(TypedDict):
    """The agent of the catalogue whose turn a workflow is, and the stored conversation that it belongs to."""

    name: str
    conversation: NotRequired[str]


class DocumentRecord(TypedDict):
    """An MCP resource or prompt that the system message has as data: its hash and length, and how much was shown."""

    label: str
    sha256: str
    characters: int
    shown: int


class AgentStartedBody(RunStartedBody):
    """How an agent's run begins: config, policy, rendered prompt and every template, so that a replay needs no host."""

    call_prefix: str
    config: Json
    tools: dict[str, ToolPolicy]
    messages: list[Json]
    texts: dict[str, str]
    trusted: NotRequired[list[str]]
    sources: NotRequired[list[SourceRecord]]
    options: Json
    cuts: NotRequired[int]
    window: NotRequired[int]
    api: NotRequired[str]
    reading: NotRequired[ToolPolicy]
    examples: NotRequired[list[Json]]
    agent: NotRequired[AgentNote]
    documents: NotRequired[Sequence[DocumentRecord]]


class AgentStarted(AgentStartedBody):
    kind: Literal["run_started"]
    spent: NotRequired[SpentRecord]
    forked: NotRequired[RunOrigin]


class NodeTool(TypedDict):
    """What a workflow's run knows of a tool that one of its nodes calls. `inward`: its arguments stay in the run;
    `awaits`: its answer says for what the node waits."""

    schema: Json
    effect: Any
    idempotent: bool
    within: float | None
    inward: NotRequired[bool]
    awaits: NotRequired[bool]


class FlowStartedBody(RunStartedBody):
    """How a workflow's run begins."""

    definition: Json
    external: Json
    env: Json
    handed: NotRequired[Json]
    turn: NotRequired[TurnNote]
    tools: dict[str, NodeTool]


class FlowStarted(FlowStartedBody):
    kind: Literal["run_started"]
    spent: NotRequired[SpentRecord]
    forked: NotRequired[RunOrigin]


# ── acts and their answers ───────────────────────────────────────────────────────────────────────


class ModelAsk(TypedDict):
    """A question: enough to prove it, not the text itself. `messages` counts them."""

    ask: Literal["model"]
    step: int
    model: str
    digest: str
    messages: int
    cut: NotRequired[Json]


class ToolAsk(TypedDict):
    """A call that judge has let through."""

    ask: Literal["tool"]
    id: str
    tool: str
    args: Json
    effect: ToolEffect


class ModelAsked(ModelAsk):
    kind: Literal["asked"]


class ToolAsked(ToolAsk):
    kind: Literal["asked"]


class BatchAsked(TypedDict):
    """Calls that are made at once, each in a strand of its own."""

    kind: Literal["asked"]
    ask: Literal["batch"]
    tools: list[str]


class ModelAnswered(TypedDict):
    """A model's reply, redacted. `calls` are native function calls; `calls` and `echo` go back to the vendor.

    `refusal` is why the vendor did not pass on its own model's call. `dropped` names the APIs whose `echo` of earlier
    replies was left out of the question, since the model that was asked does not understand it.
    """

    kind: Literal["answered"]
    reply: Literal["said"]
    content: str
    finish_reason: str
    usage: Json
    at: str
    seconds: float
    requests: int
    model: str
    calls: NotRequired[Sequence[Json]]
    echo: NotRequired[Json]
    refusal: NotRequired[str]
    dropped: NotRequired[Sequence[str]]


class ToolAnswered(TypedDict):
    """A tool's result, or a nested run's; `usage` is what it spent on models. `permanent`: it would fail again."""

    kind: Literal["answered"]
    reply: Literal["did"]
    success: bool
    output: Any
    error: str | None
    at: str
    seconds: float
    cached: bool
    usage: Json | None
    permanent: NotRequired[Literal[True]]
    closes: NotRequired[Sequence[Closing]]


class FailureAnswered(TypedDict):
    """An act that the world could not do; `overflow` says how much too long a question was, in tokens."""

    kind: Literal["answered"]
    reply: Literal["failed"]
    reason: str
    message: str
    at: str
    seconds: float
    requests: int
    overflow: NotRequired[Json]
    closes: NotRequired[Sequence[Closing]]


class BatchAnswered(TypedDict):
    """All calls of a batch have ended; it took as long as the longest."""

    kind: Literal["answered"]
    reply: Literal["batch"]
    at: str
    seconds: float
    closes: Sequence[Closing]


class Cancelled(TypedDict):
    kind: Literal["cancelled"]
    at: str
    closes: NotRequired[Sequence[Closing]]


# ── decisions ────────────────────────────────────────────────────────────────────────────────────


class JudgedCall(TypedDict):
    """One call of a reply and the verdict on it; a verdict other than `run` has its reason and message.

    `origins` says where each value comes from, by pointer.
    """

    id: str
    tool: str
    args: Json
    effect: ToolEffect
    verdict: VerdictKind
    reason: NotRequired[FinishReason | None]
    message: NotRequired[str]
    origins: NotRequired[Mapping[str, str]]


class UnreadableReply(TypedDict):
    kind: str
    message: str


StepStatus = Literal["running", "done", "failed", "skipped"]


class PlanStatus(TypedDict):
    """How far a step of a plan has come; `message` says why it failed, or was skipped."""

    step: int
    status: StepStatus
    message: NotRequired[str]


class DecidedBody(TypedDict):
    """What became of a reply: `unreadable`, `final`, or `calls` that were judged, perhaps stopped by a `limit`.

    In plan mode: a `plan`, perhaps `refused`, and for each of its steps how far it has come, with its call.
    """

    step: int
    unreadable: NotRequired[UnreadableReply]
    thought: NotRequired[str]
    stripped: NotRequired[list[str]]
    final: NotRequired[Literal[True]]
    edited: NotRequired[Literal[True]]
    calls: NotRequired[list[JudgedCall]]
    limit: NotRequired[str]
    plan: NotRequired[list[Json]]
    refused: NotRequired[UnreadableReply]
    plan_step: NotRequired[PlanStatus]


class Decided(DecidedBody):
    kind: Literal["decided"]


class Waiting(TypedDict):
    """A call that waits for a person; `message` is why, where there is more to say. In doubt it has the `seconds` that
    it took so far."""

    kind: Literal["waiting"]
    reason: FinishReason
    ask: str
    id: NotRequired[str]
    tool: NotRequired[str]
    args: NotRequired[Json]
    effect: NotRequired[str]
    origins: NotRequired[Mapping[str, str]]
    message: NotRequired[str]
    seconds: NotRequired[float]


class BatchWaiting(TypedDict):
    """Calls that wait, each in a strand of its own."""

    kind: Literal["waiting"]
    reason: FinishReason
    tools: list[str]


class EventWaiting(TypedDict):
    """A node that waits for a time, a signal, or both."""

    kind: Literal["waiting"]
    reason: Literal["awaiting_event"]
    tool: str
    args: Json
    until: NotRequired[str]
    signal: NotRequired[str]


class Resolved(TypedDict):
    """A person's decision, or their pause, resume or cancel in the strand `control`; or a late answer."""

    kind: Literal["resolved"]
    decision: str
    message: NotRequired[str]
    args: NotRequired[Json]
    schema: NotRequired[Json]
    output: NotRequired[Any]
    by: str
    at: str
    answer: NotRequired[Json]


class TimeElapsed(TypedDict):
    """The time has come for which a node waited."""

    kind: Literal["resolved"]
    decision: Literal["elapsed"]
    at: str


class SignalTaken(TypedDict):
    """The signal has come for which a node waited; `n` is its record in the strand `control`."""

    kind: Literal["resolved"]
    decision: Literal["signalled"]
    signal: str
    data: Any
    n: NotRequired[int]
    by: str
    at: str


class BatchResolved(TypedDict):
    """All waiting calls of a batch are decided."""

    kind: Literal["resolved"]
    decision: Literal["batch"]
    closes: Sequence[Closing]


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


class AddedMessage(TypedDict):
    """A message that somebody adds to a run, in the strand `control`."""

    kind: Literal["message"]
    role: Literal["user", "assistant"]
    content: str
    by: str
    at: str


class SentSignal(TypedDict):
    """A signal that somebody sends to a run, in the strand `control`. The first wait of that name takes it."""

    kind: Literal["signal"]
    name: str
    data: Any
    by: str
    at: str


class Received(TypedDict):
    """Messages that were added, before the question in which the model reads them."""

    kind: Literal["received"]
    messages: Sequence[ReadMessage]


# ── how a run ends ───────────────────────────────────────────────────────────────────────────────


class AgentFinished(TypedDict):
    """How an agent's run ended. `output` is the SHA-256 of the node's whole output."""

    kind: Literal["run_finished"]
    finish_reason: FinishReason
    final_answer: Any
    error: RunError | None
    usage: RunUsage
    used_tools: dict[str, UsedTool]
    at: str
    output: str
    closes: NotRequired[Sequence[Closing]]


class FlowFinished(TypedDict):
    """How a workflow's run ended. `output` is the SHA-256 of its result."""

    kind: Literal["run_finished"]
    status: EndedStatus
    path: list[str]
    error: RunError | None
    at: str
    output: str
    closes: NotRequired[Sequence[Closing]]


class Sealed(TypedDict):
    """Head and count of all other strands, and the store and the tenant that the run is of, signed by the key `kid`:
    with a secret key as `mac`, with one that has a public part at a time as `sig`. Older ones name no store."""

    kind: Literal["sealed"]
    head: str
    count: int
    kid: str
    store: NotRequired[str]
    tenant: NotRequired[str | None]
    mac: NotRequired[str]
    at: NotRequired[str]
    sig: NotRequired[str]
    timestamp: NotRequired[str]
    root: NotRequired[str]
    salt: NotRequired[str]


Started = AgentStarted | FlowStarted
Asked = ModelAsked | ToolAsked | BatchAsked
Answered = ModelAnswered | ToolAnswered | FailureAnswered | BatchAnswered
Finished = AgentFinished | FlowFinished
Messages = AddedMessage | SentSignal | Received
EventResolved = TimeElapsed | SignalTaken
AnyRecord = (
    Started | Asked | Answered | Cancelled | Decided | Waiting | BatchWaiting | EventWaiting | Resolved | BatchResolved
    | EventResolved | Messages | Finished | Sealed
)  # fmt: skip


# ── the wire names ───────────────────────────────────────────────────────────────────────────────

REPLIES: Final[Mapping[str, type[ModelReply | ToolReply | Failed]]] = {
    "said": ModelReply,
    "did": ToolReply,
    "failed": Failed,
}
"""The answer for each `reply` of an `answered` record."""


def encode_ask(effect: CallModel | ToolCall) -> ModelAsk | ToolAsk:
    """Return the part of an `asked` or `waiting` record that says what is asked."""
    match effect:
        case ToolCall():
            return {"ask": "tool", "id": effect.id, "tool": effect.tool, "args": effect.args, "effect": effect.effect}
        case CallModel():
            ask: ModelAsk = {
                "ask": "model",
                "step": effect.step,
                "model": effect.model,
                "digest": effect.digest,
                "messages": len(effect.messages),
            }
            if effect.cut:
                ask["cut"] = effect.cut
            return ask


def encode_asked(effect: CallModel | ToolCall) -> ModelAsked | ToolAsked:
    """Return the `asked` record of an act."""
    asked: Any = {"kind": "asked", **encode_ask(effect)}
    record: ModelAsked | ToolAsked = asked
    return record


def encode_answer(answer: Answer) -> ModelAnswered | ToolAnswered | FailureAnswered:
    """Return the `answered` record of an answer; `decode_answer` is its inverse."""
    match answer:
        case ModelReply():
            record: ModelAnswered = {
                "kind": "answered",
                "reply": "said",
                "content": answer.content,
                "finish_reason": answer.finish_reason,
                "usage": answer.usage,
                "at": answer.at,
                "seconds": answer.seconds,
                "requests": answer.requests,
                "model": answer.model,
            }
            if answer.calls:
                record["calls"] = answer.calls
            if answer.echo:
                record["echo"] = answer.echo
            if answer.refusal:
                record["refusal"] = answer.refusal
            if answer.dropped:
                record["dropped"] = answer.dropped
            return record
        case ToolReply():
            result: ToolAnswered = {
                "kind": "answered",
                "reply": "did",
                "success": answer.success,
                "output": answer.output,
                "error": answer.error,
                "at": answer.at,
                "seconds": answer.seconds,
                "cached": answer.cached,
                "usage": answer.usage,
            }
            if answer.permanent:
                result["permanent"] = True
            return result
        case Failed():
            failure: FailureAnswered = {
                "kind": "answered",
                "reply": "failed",
                "reason": answer.reason,
                "message": answer.message,
                "at": answer.at,
                "seconds": answer.seconds,
                "requests": answer.requests,
            }
            if answer.overflow:
                failure["overflow"] = answer.overflow
            return failure


def decode_answer(record: Mapping[str, Any]) -> Answer:
    """Return the answer that an `answered` record holds."""
    match record:
        case (
            {"kind": _, "reply": reply, "closes": _, **fields}
            | {"kind": _, "reply": reply, **fields}
            | {"reply": reply, **fields}
        ):
            answer: Answer = REPLIES[reply](**fields)
            return answer
        case _:
            raise KeyError("reply")
