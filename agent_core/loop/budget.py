"""What a run may still spend. It belongs to the logical run: a resume walks the tape and gets the same sums. Pure."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from agent_core.config import AgentConfig
from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.inherited import Inherited
from agent_core.outputs import FinishReason, Json, RunUsage, TokenParts
from agent_core.records import LimitsRecord, SpentRecord


@dataclass(frozen=True, slots=True)
class Limits:
    """None means unlimited; `seconds` are active ones."""

    steps: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    call_seconds: float | None = None


@dataclass(slots=True)
class Budget:
    """The sums so far, against the limits."""

    limits: Limits
    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    cost: float | None = None
    seconds: float = 0.0
    writes: int = 0
    estimated: bool = False
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    counts_parts: bool = True
    """Whether these three are given: not in runs from before they were counted."""

    def add_model_reply(self, reply: ModelReply | Failed) -> None:
        """Count a model's reply, or its failure."""
        self.seconds += reply.seconds
        self.requests += reply.requests
        match reply:
            case ModelReply(usage=usage):
                self.steps += 1
                self._add_tokens(usage)
            case Failed():
                pass

    def add_result(self, reply: ToolReply | Failed) -> None:
        """Count a call's result, with what a nested run spent. Seconds are counted by the batch."""
        usage = reply.usage if isinstance(reply, ToolReply) else None
        if usage:
            self.requests += usage["requests"]
            self.tool_calls += usage["tool_calls"]
            self.writes += usage.get("writes", 0)
            self._add_tokens(usage)

    def _add_tokens(self, usage: Json) -> None:
        self.input_tokens += usage["input_tokens"]
        self.output_tokens += usage["output_tokens"]
        if "cached_tokens" in usage:
            self.cached_tokens += usage["cached_tokens"]
        if "cache_write_tokens" in usage:
            self.cache_write_tokens += usage["cache_write_tokens"]
        if "reasoning_tokens" in usage:
            self.reasoning_tokens += usage["reasoning_tokens"]
        self.estimated = self.estimated or bool(usage.get("estimated"))
        if usage.get("cost") is not None:
            self.cost = (self.cost or 0.0) + usage["cost"]

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def exceeded(self) -> FinishReason | None:
        """Return the limit that forbids another call, if one does."""
        limits = self.limits
        if limits.seconds is not None and self.seconds >= limits.seconds:
            return "timeout"
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return "token_budget"
        if limits.cost is not None and (self.cost or 0.0) >= limits.cost:
            return "cost_budget"
        return None

    @property
    def is_last_step(self) -> bool:
        """Whether the step whose reply was counted last is the last one allowed."""
        return self.limits.steps is not None and self.steps >= self.limits.steps

    def last_chance(self) -> Literal["max_steps", "max_tool_calls"] | None:
        """Return the limit that leaves only the answer to give next, if one does."""
        limits = self.limits
        if limits.steps is not None and self.steps + 1 >= limits.steps:
            return "max_steps"
        return "max_tool_calls" if limits.tool_calls is not None and self.tool_calls >= limits.tool_calls else None

    def forbids(self, running: int) -> FinishReason | None:
        """Return the limit that forbids to run so many calls in this step, if one does."""
        limits = self.limits
        if limits.tool_calls is not None and self.tool_calls >= limits.tool_calls:
            return "max_tool_calls"
        if not running:
            return None
        if limits.steps is not None and self.steps >= limits.steps:
            return "max_steps"
        too_many = limits.tool_calls is not None and self.tool_calls + running > limits.tool_calls
        return self.exceeded() or ("max_tool_calls" if too_many else None)

    def within(self, single: float | None) -> float | None:
        """Return how many seconds one call may take."""
        if self.limits.seconds is None:
            return single
        left = self.limits.seconds - self.seconds
        if left < 0.0:
            left = 0.0
        return left if single is None or left < single else single

    def remaining(self) -> Inherited:
        """Return what a nested run may spend at most."""
        limits = self.limits
        return {
            "tool_calls": _left(limits.tool_calls, self.tool_calls),
            "tokens": _left(limits.tokens, self.tokens),
            "cost": _left(limits.cost, self.cost or 0.0),
            "seconds": _left(limits.seconds, self.seconds),
        }

    def spent(self) -> Json:
        """Return all sums, as the next attempt at the same run starts with them."""
        sums: SpentRecord = {
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "requests": self.requests,
            "cost": self.cost,
            "seconds": self.seconds,
            "writes": self.writes,
            "estimated": self.estimated,
        }
        return {**sums, **self._parts()}

    def usage(self) -> RunUsage:
        """Return the node's `usage` output."""
        usage: RunUsage = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.tokens,
            "requests": self.requests,
            "tool_calls": self.tool_calls,
            "cost": self.cost,
            "estimated": self.estimated,
        }
        return {**usage, **self._parts()}

    def _parts(self) -> TokenParts:
        """Return the tokens that are counted apart; nothing where none are."""
        if not self.counts_parts:
            return {}
        return {
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }


N = TypeVar("N", int, float)


def _left(limit: N | None, used: N) -> N | None:
    return None if limit is None else max(0, limit - used)


def limits_of(config: AgentConfig, inherited: Inherited) -> LimitsRecord:
    """Return a run's own limits, bound by what its parent has left. 0 and None in a config mean unlimited."""
    return {
        "steps": config.max_steps or None,
        "tool_calls": _lower(config.max_tool_calls, inherited.get("tool_calls")),
        "tokens": _lower(config.total_token_budget, inherited.get("tokens")),
        "cost": _lower(config.cost_budget, inherited.get("cost")),
        "seconds": _lower(config.timeout, inherited.get("seconds")),
        "call_seconds": config.single_call_timeout or None,
    }


def _lower(own: N | None, left: N | None) -> N | None:
    return min([x for x in (own or None, left) if x is not None], default=None)
