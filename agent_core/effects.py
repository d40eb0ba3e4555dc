"""What a loop asks for and what it is told: the only words between the pure loop and the world.

    effect                  reply
    CallModel               Said | Failed | Cancelled | Suspended
    CallTools               a tuple with a Did | Failed | Cancelled | Suspended for each call
    Classify                the effect of one call: "read", "write" or "nested"
    Wait                    a tuple of decisions, or Suspended, or Cancelled
    Decided                 None
    Visits                  a tuple with (visit, reply, journal) for each visit that was made

Replies carry time (`at`, ISO 8601 UTC; `seconds`, active) and tokens, so that no loop reads a clock.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

FinishReason = Literal[
    "final", "max_steps", "max_tool_calls", "token_budget", "cost_budget", "timeout", "cancelled",
    "protocol_error", "invalid_action", "policy_denied", "tool_error", "model_error", "content_filter",
    "awaiting_approval", "in_doubt", "paused",
]  # fmt: skip
Json = dict[str, Any]


# ── effects ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CallModel:
    """One question. `messages` are JSON texts in the shape that goes on the wire, oldest first."""

    step: int
    question: int
    model: str
    messages: tuple[bytes, ...]
    digest: str
    options: Json
    within: float | None
    cut: Json | None = None

    def record(self) -> Json:
        """What the journal says of the question: enough to prove it, not the text itself."""
        told: Json = {"ask": "model", "step": self.step, "model": self.model, "digest": self.digest}
        told["messages"] = len(self.messages)
        return {**told, "cut": self.cut} if self.cut else told


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that judge has let through. `args` came from the model, `config` is what the tool gets.

    `inherited` is what a nested run is handed down: what is left to spend, and which texts are trusted. `fills` says
    where the door puts secrets into the config: {at, parts}, a part being a text or {"env": NAME}.
    """

    id: str
    tool: str
    args: Json
    config: Json
    effect: str
    within: float | None
    idempotent: bool = False
    inherited: Json = field(default_factory=dict)
    fills: Sequence[Json] = ()
    rate_limit: str | None = None

    @property
    def doubtful(self) -> bool:
        """Whether it must not happen twice."""
        return self.effect == "write" and not self.idempotent

    def record(self) -> Json:
        return {"ask": "tool", "id": self.id, "tool": self.tool, "args": self.args, "effect": self.effect}


@dataclass(frozen=True, slots=True)
class CallTools:
    """Calls that are made side by side; what has to be in order is asked for one by one."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Classify:
    """What a call would do, asked of a tool whose effect is a function that only its host has.

    The recorder says before which record of which `strand` it is asked.
    """

    index: int
    tool: str
    args: Json
    strand: str = ""
    n: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Calls that need a person's word before they may run."""

    calls: tuple[ToolCall, ...]
    reason: FinishReason = "awaiting_approval"


@dataclass(frozen=True, slots=True)
class Decided:
    """What judge made of one reply."""

    record: Json


@dataclass(frozen=True, slots=True)
class Visit:
    """Visit `n` of a workflow's node; `attempt` counts the times that it is tried again, after `delay` seconds.

    `spent` is what earlier attempts have used up, `after` the visits (node, n) whose ends let this one start.
    """

    node: str
    n: int
    call: ToolCall
    attempt: int = 0
    delay: float = 0.0
    spent: Json | None = None
    after: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Visits:
    """Node visits, side by side. `more` is told each that ended (visit, reply or nested outcome, journal)
    and names those that may start now."""

    first: tuple[Visit, ...]
    more: Callable[[Visit, Any, Json | None], Sequence[Visit]]


Effect = CallModel | CallTools | Classify | Wait | Decided | Visits


# ── replies ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply. `usage` has input_tokens, output_tokens, estimated and, where known, cost.

    `calls` are native function calls, {name, arguments} each; what else stands in them, and all of `echo`, goes back
    to the vendor with the message.
    """

    content: str
    finish_reason: str
    usage: Json
    at: str
    seconds: float
    requests: int = 1
    model: str = ""
    calls: Sequence[Json] = ()
    echo: Json | None = None


@dataclass(frozen=True, slots=True)
class ToolReply:
    """A tool's result. `usage` is what a nested run spent."""

    success: bool
    output: Any
    error: str | None
    at: str
    seconds: float
    cached: bool = False
    usage: Json | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An act that the world could not do, and why: `model_error`, `timeout`, `definition`, …"""

    reason: str
    message: str
    at: str
    seconds: float
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was cancelled while this was under way."""

    at: str


@dataclass(frozen=True, slots=True)
class InDoubt:
    """A write that may or may not have happened: only a person can tell. Never reaches a loop."""

    message: str
    at: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Suspended:
    """Nothing more can be done for now; `waiting` says what a person has to decide, {strand, n, tool, args, reason},
    or, with the reason `paused`, what would have been done next."""

    reason: FinishReason
    waiting: tuple[Json, ...]


Result = ToolReply | Failed
"""What came of a call."""
Stop = Cancelled | Suspended
"""What there is instead when the run goes no further, for now or for good."""
Answer = ModelReply | Result
CallReply = Answer | Stop
_ANSWERS: Mapping[str, type[ModelReply] | type[ToolReply] | type[Failed]] = {
    "said": ModelReply,
    "did": ToolReply,
    "failed": Failed,
}
_SELDOM = ("calls", "echo")
"""What stands in the record only where there is something."""
_NAMES = {kind: name for name, kind in _ANSWERS.items()}


def answer_record(answer: Answer) -> Json:
    """An answer as the journal holds it; `answer_from` is its inverse."""
    body = {name: getattr(answer, name) for name in answer.__slots__}
    for name in _SELDOM:
        if not body.get(name):
            body.pop(name, None)
    return {"kind": "answered", "reply": _NAMES[type(answer)], **body}


def answer_from(record: Json) -> Answer:
    """The answer that an `answered` record holds."""
    body = dict(record)
    for name in ("kind", "reply", "closes"):
        body.pop(name, None)
    return _ANSWERS[record["reply"]](**body)


# ── decisions of a person ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Approve:
    """Let the waiting call run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse the waiting call; the model reads `message`."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Let the waiting call run with other arguments; they are judged again."""

    args: Json


@dataclass(frozen=True, slots=True)
class Retry:
    """The write in doubt did not happen: do it again."""


@dataclass(frozen=True, slots=True)
class Skip:
    """The write in doubt is not repeated; the run goes on without its result."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The write in doubt ends the run."""


Decision = Approve | Deny | Edit | Retry | Skip | Fail
DECISIONS: Mapping[str, type[Decision]] = {
    kind.__name__.lower(): kind for kind in (Approve, Deny, Edit, Retry, Skip, Fail)
}


def decision_record(decision: Decision) -> Json:
    """A decision as the journal holds it; `decision_from` is its inverse."""
    body = {name: getattr(decision, name) for name in decision.__slots__}
    return {"decision": type(decision).__name__.lower(), **body}


def decision_from(record: Json) -> Decision:
    """The decision that a `resolved` record holds."""
    kind = DECISIONS[record["decision"]]
    return kind(**{name: record[name] for name in kind.__slots__})


# ── how a loop ends ──────────────────────────────────────────────────────────────────────────────


class Outcome(Protocol):
    """What a loop returns, as far as the recorder has to know it."""

    @property
    def finish_reason(self) -> FinishReason: ...
    @property
    def waiting(self) -> tuple[Json, ...]:
        """What waits for a person, or for the end of a pause; empty when the run has ended."""
        ...

    @property
    def spent(self) -> Json:
        """What the run has used up, as the next attempt at it starts with. Its `writes` must not happen twice."""
        ...

    def finished(self) -> Json:
        """The body of the `run_finished` record."""
        ...

    def answer(self) -> ToolReply:
        """The result that the asking loop gets, when this run was nested under a call."""
        ...


Loop = Generator[Effect, Any, Outcome]
