"""The words between the pure loops and the world: what a loop asks for, and what it receives. Pure.

    effect                  reply
    CallModel               ModelReply | Failed | Cancelled | Suspended | Received
    CallTools               a tuple with a ToolReply | Failed | Cancelled | Suspended for each call
    Classify                the effect of one call: "read", "write" or "nested"
    Wait                    a tuple of decisions, or Suspended, or Cancelled
    AwaitEvent              Elapsed | Signalled | Cancelled | Suspended
    Decided                 None
    Visits                  a tuple with (visit, reply, journal) for each visit that was made
    Items                   None; or Suspended, when none of them has begun

Replies carry time (`at`, ISO 8601 UTC; `seconds`, active) and tokens, so that no loop reads a clock.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NotRequired, Protocol

from typing_extensions import TypedDict

from agent_core.inherited import Inherited
from agent_core.outputs import FinishReason, Json, WaitingCall
from utools.tool import Effect as ToolEffect

VerdictKind = Literal["run", "wait", "refuse"]
"""What a call may do: run, wait for a person, or go back to the model as refused."""

_NOTHING: Json = {}
_NOT_INHERITED = Inherited()

# ── effects ──────────────────────────────────────────────────────────────────────────────────────


class CallModel(NamedTuple):
    """One question. `messages` are JSON texts in the shape that goes on the wire, oldest first.

    `within` is how many seconds it may take, `cut` what was cut to make it fit; `tools` and `config` are the run's
    own, the latter without its `messages_json`.
    """

    step: int
    question: int
    model: str
    messages: Sequence[bytes]
    digest: str
    options: Json
    within: float | None
    cut: Json | None = None
    tools: Mapping[str, Any] = _NOTHING
    config: Json = _NOTHING


class ToolCall(NamedTuple):
    """One call that judge has let through. `args` came from the model, `config` is what the tool gets.

    `fills` says where the executor puts secrets into the config: {at, parts}, a part being a text or {"env": NAME}.
    `inherited` is what a nested run is handed down. `within` is how many seconds the call may take. `given` is the
    output of a call that the loop answers itself: no tool is called. `language` is that of the model which reads what
    became of it. `origins` says where its values come from, by pointer. `question` is why a person is asked about it.
    """

    id: str
    tool: str
    args: Json
    config: Json
    effect: ToolEffect
    within: float | None
    idempotent: bool = False
    inherited: Inherited = _NOT_INHERITED
    fills: Sequence[Json] = ()
    rate_limit: str | None = None
    given: str | None = None
    language: str = "en"
    origins: Mapping[str, str] | None = None
    question: str | None = None

    @property
    def once_only(self) -> bool:
        """Whether it must not happen twice."""
        return self.effect == "write" and not self.idempotent


class CallTools(NamedTuple):
    """Calls that are made at the same time. What has to be in order is asked for one by one."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Classify:
    """Asks a tool whose effect is a function of its host what a call would do.

    The recorder fills in the `strand` and the number `n` of the record that follows.
    """

    index: int
    tool: str
    args: Json
    strand: str = ""
    n: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Calls that need a person's decision before they may run."""

    calls: tuple[ToolCall, ...]
    reason: FinishReason = "awaiting_approval"


@dataclass(frozen=True, slots=True)
class AwaitEvent:
    """Waits for a time, a named signal, or whichever of the two comes first.

    `call` is the node's call that asks for it, `until` the time in ISO 8601, UTC; one of `until` and `signal` may be
    None.
    """

    call: ToolCall
    until: str | None
    signal: str | None


class Decided(NamedTuple):
    """What judge made of one reply."""

    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Visit:
    """Visit `n` of a workflow's node; `attempt` counts its retries, each after `delay` seconds.

    `spent` is what earlier attempts have used up, `after` the visits (node, n) whose ends let this one start. A `loop`
    stands in place of the call alone: what it asks for is recorded in the visit's strand, what it returns is the reply.
    """

    node: str
    n: int
    call: ToolCall
    attempt: int = 0
    delay: float = 0.0
    spent: Json | None = None
    after: tuple[tuple[str, int], ...] = ()
    loop: "Callable[[], Generator[Effect, Any, Any]] | None" = None


@dataclass(frozen=True, slots=True)
class Visits:
    """Node visits that run at the same time. `more` receives each that ended (visit, reply or nested outcome, journal)
    and returns those that may start now."""

    first: tuple[Visit, ...]
    more: Callable[[Visit, Any, Json | None], Sequence[Visit]]


@dataclass(frozen=True, slots=True)
class Items:
    """Calls of one visit for the items of a list, after `delay` seconds; item `n` of the list is visit `n` here.

    `tools` are those of all calls. `first` and `more` are as of Visits.
    """

    tools: tuple[str, ...]
    first: tuple[Visit, ...]
    more: Callable[[Visit, Any, Json | None], Sequence[Visit]]
    delay: float = 0.0


Effect = CallModel | CallTools | Classify | Wait | AwaitEvent | Decided | Visits | Items


# ── replies ──────────────────────────────────────────────────────────────────────────────────────


class ModelReply(NamedTuple):
    """A model's reply. `usage` has input_tokens, output_tokens, estimated and, where known, cost.

    `calls` are native function calls, {name, arguments} each; what else is in them, and all of `echo`, goes back to
    the vendor with the message. `refusal` and `dropped` are those of the Completion.
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
    refusal: str = ""
    dropped: Sequence[str] = ()


class ToolReply(NamedTuple):
    """A tool's result. `usage` is what it, or a nested run, spent on models; `permanent`: it would fail again."""

    success: bool
    output: Any
    error: str | None
    at: str
    seconds: float
    cached: bool = False
    usage: Json | None = None
    permanent: bool = False


class Failed(NamedTuple):
    """An act that the world could not do, and why: `model_error`, `timeout`, `definition`, …

    `overflow` is of a question that was too long: {room, counted}, the tokens that it may have and that it has by the
    vendor's count, null each where the vendor does not say.
    """

    reason: str
    message: str
    at: str
    seconds: float
    requests: int = 0
    overflow: Json | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was cancelled during the act."""

    at: str


@dataclass(frozen=True, slots=True)
class InDoubt:
    """A write that may or may not have happened: only a person can tell. It never reaches a loop."""

    message: str
    at: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Suspended:
    """The run cannot continue for now.

    `waiting` says what a person has to decide, for which time or signal it waits, or, with the reason `paused`, what
    would have been done next.
    """

    reason: FinishReason
    waiting: tuple[WaitingCall, ...]


class ReadMessage(TypedDict):
    """A message that an agent reads; `n` is its record in the strand `control`, unless the run was forked since."""

    role: Literal["user", "assistant"]
    content: str
    by: str
    n: NotRequired[int]


@dataclass(frozen=True, slots=True)
class Received:
    """Nothing was asked: somebody added these messages to the run, and the question is to be asked with them."""

    messages: tuple[ReadMessage, ...]


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The time has come for which a run waited."""

    at: str


@dataclass(frozen=True, slots=True)
class Signalled:
    """A signal has come for which a run waited: its `name`, its `data` as JSON, and the caller who sent it.

    `n` is its record in the strand `control`, None in a run that was forked since.
    """

    name: str
    data: Any
    by: str
    at: str
    n: int | None = None


Result = ToolReply | Failed
"""What a call gave."""
Event = Elapsed | Signalled
"""What ends a wait for a time or a signal."""
Stop = Cancelled | Suspended
"""The reply in place of an answer when the run goes no further, for now or for good."""
Answer = ModelReply | Result
CallReply = Answer | Stop


# ── how a loop ends ──────────────────────────────────────────────────────────────────────────────


class Outcome(Protocol):
    """What a loop returns, as far as the recorder needs it."""

    @property
    def finish_reason(self) -> FinishReason: ...
    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """What waits for a person, or for the end of a pause; empty when the run has ended."""
        ...

    @property
    def spent(self) -> Json:
        """What the run has used up, as its next attempt starts with it. Its `writes` must not happen twice."""
        ...

    def finished(self) -> Json:
        """Return the body of the `run_finished` record."""
        ...

    def answer(self, language: str = "en") -> ToolReply:
        """Return the result for the loop that asked, in its language, when this run was nested under a call."""
        ...


Loop = Generator[Effect, Any, Outcome]
