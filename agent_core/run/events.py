"""Event: what happened in a run, a type for each kind. Every event names the strand, the record and the node.

event              what happened
step_started       a model is asked
thought_delta      a piece of a thought was written; no record has it, and `thought` has all of it
answer_delta       a piece of an answer was written; no record has it, and it is provisional until the reply is read
answer_discarded   what was shown of an answer does not count
thought            what a model thought before it acted
action             a call is made: one of an agent in a step, or that of a workflow's plain node
tool_progress      a tool's own word while it runs; no record has it
observation        what a call gave, as the model sees it; or that what a node waited for has come
repair             a reply, a call or a plan was refused, and the model is told why
plan               a model made a plan
plan_step          how far a step of a plan has come
waiting            a call waits for a person, or a node for a time or a signal
finished           a workflow or an agent has ended

A stream of events has a last one, `result`: what the run gives its caller.
"""

from typing import Any, Generic, Literal, NotRequired, final

from typing_extensions import TypedDict, TypeVar

from agent_core.outputs import FinishReason, Json, RunError, RunUsage


class Place(TypedDict):
    """Where it happened: the strand, the number of the record, and the node or tool that the strand is of."""

    strand: str
    n: int
    node: str


class StepStarted(Place):
    event: Literal["step_started"]
    step: int
    model: str


class ThoughtDelta(Place):
    event: Literal["thought_delta"]
    text: str


class AnswerDelta(Place):
    event: Literal["answer_delta"]
    text: str


class AnswerDiscarded(Place):
    event: Literal["answer_discarded"]


class Thought(Place):
    event: Literal["thought"]
    step: int
    text: str


class Action(Place):
    """A call of an agent, in a step of its run."""

    event: Literal["action"]
    step: int
    id: str
    tool: str
    args: Json


class NodeAction(Place):
    """The call of a workflow's plain node."""

    event: Literal["action"]
    tool: str
    args: Json


class ToolProgress(Place):
    """`fraction` is the part that is done, from 0 to 1, None where the tool does not say."""

    event: Literal["tool_progress"]
    text: str
    fraction: float | None


class Observation(Place):
    """`text` is cut to what the model sees of its `characters`; `seconds` is how long the call took."""

    event: Literal["observation"]
    success: bool
    text: str
    seconds: float
    characters: int


class Repair(Place):
    """`kind` says what was wrong: a finish reason, or how a reply could not be read."""

    event: Literal["repair"]
    step: int
    kind: str
    message: str


class Plan(Place):
    """`steps` are {step, description, tool, parameters, …} each."""

    event: Literal["plan"]
    step: int
    steps: list[Json]


class PlanStep(Place):
    """`plan_step` is the number of the step in the plan; `message` says why it failed, or was skipped."""

    event: Literal["plan_step"]
    step: int
    plan_step: int
    status: Literal["running", "done", "failed", "skipped"]
    message: NotRequired[str]


class Waiting(Place):
    event: Literal["waiting"]
    reason: FinishReason
    tool: str
    args: Json
    message: NotRequired[str]
    until: NotRequired[str]
    signal: NotRequired[str]


@final
class AgentFinished(Place):
    event: Literal["finished"]
    finish_reason: FinishReason
    final_answer: Any
    error: RunError | None
    usage: RunUsage


@final
class WorkflowFinished(Place):
    event: Literal["finished"]
    status: Literal["completed", "failed", "cancelled"]
    error: RunError | None


Event = (
    StepStarted | ThoughtDelta | AnswerDelta | AnswerDiscarded | Thought | Action | NodeAction | ToolProgress
    | Observation | Repair | Plan | PlanStep | Waiting | AgentFinished | WorkflowFinished
)  # fmt: skip
"""What `on_event` is called with: a JSON object, one of these, told apart by its `event`.

Two values of it have two types each: an `action` of an agent has a `step`, that of a plain node has none; `finished` of
an agent has a `finish_reason`, that of a workflow a `status`.
"""

Given = TypeVar("Given", default=Any)


class StreamResult(TypedDict, Generic[Given]):
    """The last event of a stream: what the call would have given that the stream is of."""

    event: Literal["result"]
    result: Given
