"""The parts of a node's output as types: what callers read, records hold, and the API describes."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

Json = dict[str, Any]
JsonValue = dict[str, Any] | list[Any] | str | int | float | bool | None
"""A value of JSON, to be taken apart."""
Placed = tuple[str, Json]
"""A message, with the place in the config that it was read from."""
FinishReason = Literal[
    "final", "max_steps", "max_tool_calls", "token_budget", "cost_budget", "timeout", "cancelled",
    "protocol_error", "invalid_action", "policy_denied", "tool_error", "model_error", "content_filter",
    "awaiting_approval", "awaiting_event", "in_doubt", "paused",
]  # fmt: skip
"""Why a run ended, or rests; only `final` is a success."""


class TokenParts(TypedDict, total=False):
    """Tokens that are counted apart: those that a vendor read from its cache and wrote to it are among the input, those
    of the model's thoughts among the output. Runs from before these were counted lack all three."""

    cached_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class RunUsage(TokenParts):
    """What a run has used. `cost` is in the currency of the price list, None without a price; `estimated` says that a
    vendor did not count the tokens."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    requests: int
    tool_calls: int
    cost: float | None
    estimated: bool


class RunError(TypedDict):
    """Why a run has no answer: its finish reason as `kind`, and what a person can do about it. Of a workflow, `where`
    names the node, or the place in the definition."""

    kind: str
    message: str
    where: NotRequired[str]


"""Why a run ended, or rests; only `final` is a success."""


class TraceAction(TypedDict):
    """A call as the trace shows it."""

    tool: str
    args: Json


class TraceStep(TypedDict):
    """One model reply, or one call of it, shortened. `timestamp` is in ISO 8601; `origins` says where the values of the
    arguments come from, by JSON pointer."""

    step: int
    action: TraceAction | None
    observation: str | None
    elapsed_ms: float
    thought: str | None
    timestamp: str
    error: str | None
    cached: bool
    origins: NotRequired[dict[str, str]]


class UsedTool(TypedDict):
    """How often a tool was called, and for how long in all."""

    count: int
    total_ms: float


class WaitingCall(TypedDict):
    """A call that waits for a person: decide on it at its `strand` and number `n`. `message` says why it waits,
    `origins` where the values of its arguments come from, by JSON pointer.

    With the reason `awaiting_event` it is a node that waits for a time, `until`, for a `signal`, or for both.
    """

    strand: str
    n: int
    tool: str
    args: Json
    reason: FinishReason
    message: NotRequired[str]
    origins: NotRequired[dict[str, str]]
    until: NotRequired[str]
    signal: NotRequired[str]


class JournalEnd(TypedDict):
    """Where the records of a run end: the strand, the hash of its last record, and how many records there are."""

    strand: str
    head: str
    count: int


class PolicyDecision(TypedDict):
    """What was decided about a call, and what is `now`, under the policy.

    `counterfactual`: the run would not have come that far. `why` names the rule that made the difference, with its key
    and value; None where there is none.
    """

    strand: str
    n: int
    tool: str
    recorded: str
    now: str
    counterfactual: bool
    why: str | None
