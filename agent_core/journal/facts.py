"""Facts: what the records of a run say, typed. `reader.py` reads them from rows. Pure.

fact          record          what it says
RunStarted    run_started     a workflow or an agent begins
Question      asked           a model is asked
Call          asked           a tool is called
Batch         asked           several tools are called at once, each in a strand of its own
Answered      answered        what came of a question, a call or a batch
Decided       decided         what became of a model's reply
Waiting       waiting         a call waits for a person, a node for a time or a signal
Resolved      resolved        a person decided, or paused, resumed or cancelled the run; or what was waited for came
Cancelled     cancelled       in place of an answer
Added         message         somebody adds a message to the run
Sent          signal          somebody sends a signal to the run
Received      received        an agent reads messages that were added
RunFinished   run_finished    a workflow or an agent has ended
Sealed        sealed          the run was signed

Each fact has its strand and number, and the innermost run that it belongs to; an answer has what it answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from agent_core.effects import Failed, ModelReply, ReadMessage, ToolReply
from agent_core.journal.path import child
from agent_core.outputs import FinishReason, Json, RunError, RunUsage
from agent_core.records import AgentNote, Closing, JudgedCall, PlanStatus, RunOrigin, TurnNote, UnreadableReply
from agent_core.statuses import EndedStatus
from utools.tool import Effect as ToolEffect

SUCCESS: Final = ("final", "completed")
"""How a run ends that did what it was for: the finish reason of an agent, the status of a workflow."""


@dataclass(slots=True, eq=False)
class RecordedRun:
    """A workflow's or an agent's run. `above` is the run that it is nested in.

    `name` is the workflow's id; or the agent's name in the catalogue, else that of its node or tool. `workflow`,
    `agent` and `conversation` are the innermost ones that the run belongs to, itself included; empty without one.
    `began` is when it began, of a fork when it was forked, and never before the run above it. A workflow has a
    `definition` and `external`; an agent `config`, `messages`, `texts` and, if it is of a catalogue, a `note`; a
    workflow that is a turn of such an agent has the note `turn`. `step` is the last step that was asked for so far.
    """

    path: str
    above: "RecordedRun | None"
    loop: str
    name: str
    workflow: str
    agent: str
    conversation: str | None
    at: str
    began: str
    definition: Json
    external: Json
    config: Json
    tools: Mapping[str, Any]
    messages: Sequence[Json]
    texts: Mapping[str, str]
    note: AgentNote | None
    turn: TurnNote | None
    forked: RunOrigin | None
    from_http: bool = False
    """Whether the definition came over HTTP."""
    max_steps: int | None = None
    earlier_steps: int = 0
    """The steps of earlier attempts at the run, which count as well."""
    step: int | None = None

    @property
    def is_agent(self) -> bool:
        return self.loop == "agent"

    @property
    def is_within_agent(self) -> bool:
        """Whether the run, or one above it, is an agent's."""
        return self.is_agent or (self.above is not None and self.above.is_within_agent)


@dataclass(frozen=True, slots=True)
class _Fact:
    strand: str
    n: int
    run: RecordedRun | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunStarted(_Fact):
    """`begun` is the run, which is `run` as well."""

    begun: RecordedRun


@dataclass(frozen=True, slots=True)
class Question(_Fact):
    """A question to a model, in a step of its run. `messages` counts them, `digest` is of their content."""

    step: int
    model: str
    messages: int
    digest: str


@dataclass(frozen=True, slots=True)
class Call(_Fact):
    """A call of a tool that judge has let through."""

    id: str
    tool: str
    args: Json
    effect: ToolEffect

    @property
    def nested(self) -> str:
        """The strand of the run that is nested under the call, if there is one."""
        return child(self.strand, self.tool, self.n)


@dataclass(frozen=True, slots=True)
class Batch(_Fact):
    """Calls of these tools at once."""

    tools: list[str]


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """All calls of a batch have ended; it took as long as the longest."""

    at: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered(_Fact):
    """What came of an act. `asked` is None for a nested run that could not begin."""

    asked: "Question | Call | Batch | None"
    answer: ModelReply | ToolReply | Failed | BatchAnswer
    closes: Sequence[Closing] = ()

    @property
    def succeeded(self) -> bool:
        """Whether there is a reply, or a result of success."""
        answer = self.answer
        return answer.success if isinstance(answer, ToolReply) else not isinstance(answer, Failed)

    @property
    def begins_wait(self) -> bool:
        """Whether the answer says for what its node waits now."""
        if not isinstance(self.asked, Call) or self.run is None or self.run.is_agent:
            return False
        return bool(self.run.tools.get(self.asked.tool, {}).get("awaits"))

    @property
    def error(self) -> str | None:
        """What was said of a failure."""
        match self.answer:
            case ToolReply(success=False) as result:
                return result.error
            case Failed() as failure:
                return failure.message
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Decided(_Fact):
    """What became of a reply: it was `final`, `unreadable`, or had `calls`, perhaps stopped by a `limit`.

    In plan mode it was a `plan`, perhaps `refused`; for each step of that, `plan_step` says how far it has come.
    `edited`: a person has decided about the calls. `stripped` names what was taken off the reply.
    """

    step: int
    thought: str | None
    stripped: Sequence[str]
    calls: Sequence[JudgedCall]
    limit: str | None
    unreadable: UnreadableReply | None
    is_final: bool
    is_edited: bool
    plan: list[Json] | None
    refused: UnreadableReply | None
    plan_step: PlanStatus | None


@dataclass(frozen=True, slots=True)
class Waiting(_Fact):
    """A call, or the calls of a batch, wait for a person. One in doubt took `seconds` so far.

    A node that waits for an event has a time, `until`, the name of a `signal`, or both.
    """

    reason: FinishReason
    tool: str | None
    args: Json
    origins: Mapping[str, str] | None
    tools: Sequence[str]
    message: str
    seconds: float | None
    until: str | None = None
    signal: str | None = None

    @property
    def is_for_person(self) -> bool:
        """Whether a person has to decide."""
        return self.reason != "awaiting_event"


@dataclass(frozen=True, slots=True)
class Resolved(_Fact):
    """What a person decided. The end of a batch of decisions `closes` its strands, and has no `by` and `at`.

    `elapsed` and `signalled` end the wait of a node: the latter has the `signal`, its `data`, and as `sent` its record
    in the strand `control`.
    """

    decision: str
    by: str
    at: str
    message: str
    args: Json | None
    closes: Sequence[Closing]
    signal: str | None = None
    data: Any = None
    sent: int | None = None


@dataclass(frozen=True, slots=True)
class Cancelled(_Fact):
    """An act, or a wait, that was cancelled."""

    at: str
    closes: Sequence[Closing] = ()


@dataclass(frozen=True, slots=True)
class Added(_Fact):
    """A message that somebody added to the run."""

    role: Literal["user", "assistant"]
    content: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class Sent(_Fact):
    """A signal that somebody sent to the run."""

    name: str
    data: Any
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class Received(_Fact):
    """Messages that an agent reads before its next question."""

    messages: Sequence[ReadMessage]


@dataclass(frozen=True, slots=True)
class RunFinished(_Fact):
    """How a run ended. `reason` is an agent's finish reason, or a workflow's status; `answer` and `usage` are an
    agent's."""

    reason: FinishReason | EndedStatus
    error: RunError | None
    at: str
    answer: Any
    usage: RunUsage | None

    @property
    def is_agent(self) -> bool:
        return self.usage is not None

    @property
    def succeeded(self) -> bool:
        return self.reason in SUCCESS

    @property
    def failure(self) -> tuple[str, str | None] | None:
        """The kind of a failure and what was said of it: of a workflow that of its error, of an agent its reason."""
        if self.succeeded:
            return None
        error: Json = {**self.error} if self.error else {}
        return error.get("kind", self.reason) if self.reason == "failed" else self.reason, error.get("message")


@dataclass(frozen=True, slots=True)
class Sealed(_Fact):
    """The run was signed by the key `kid` as it was then."""

    head: str
    count: int
    kid: str


Act = Question | Call | Batch
Fact = (
    RunStarted | Question | Call | Batch | Answered | Decided | Waiting | Resolved | Cancelled | Added | Sent | Received
    | RunFinished | Sealed
)  # fmt: skip
