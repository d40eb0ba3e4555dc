"""Totals: what many recorded runs did, in numbers, one run after another. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.journal.facts import Answered, Call, Fact, RecordedRun, RunFinished, RunStarted
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Tape
from agent_core.records import Kind
from agent_core.statuses import ListedStatus, status_of_reason

COUNTED: Final[Collection[Kind]] = {"run_started", "asked", "answered", "run_finished"}
"""The records that are counted; the others, which may be large, are not decoded."""


@dataclass(slots=True)
class ToolTotals:
    """The calls of one tool. `seconds` are those of the `answered` ones, waiting for a person not included."""

    calls: int = 0
    answered: int = 0
    failed: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class WorkflowTotals:
    """The runs of one workflow by status, and the failed ones by the kind of their error."""

    statuses: Counter[ListedStatus] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def runs(self) -> int:
        return self.statuses.total()

    @property
    def failure_rate(self) -> float | None:
        """The part of the runs that ended which failed; None when none has ended."""
        ended = self.statuses["completed"] + self.statuses["failed"]
        return self.statuses["failed"] / ended if ended else None


@dataclass(slots=True)
class ModelTotals:
    """What one model, or all together, gave. `cost` is in USD, of the `priced` ones of the `replies`."""

    replies: int = 0
    priced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def add(self, usage: Any) -> None:
        self.replies += 1
        self.input_tokens += usage["input_tokens"]
        self.output_tokens += usage["output_tokens"]
        self.cached_tokens += usage.get("cached_tokens", 0)
        self.cache_write_tokens += usage.get("cache_write_tokens", 0)
        self.reasoning_tokens += usage.get("reasoning_tokens", 0)
        if usage.get("cost") is not None:
            self.priced += 1
            self.cost += usage["cost"]


@dataclass(slots=True)
class AgentTotals:
    """The runs of one agent, and how those ended that did. `seconds` are active ones: waiting does not count."""

    runs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    models: ModelTotals = field(default_factory=ModelTotals)
    tool_calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Totals:
    """The sums over runs. An agent has its name in the catalogue, else that of its node or tool; a model that a tool
    asked is named by the tool."""

    workflows: dict[str, WorkflowTotals] = field(default_factory=dict)
    agents: dict[str, AgentTotals] = field(default_factory=dict)
    tools: dict[str, ToolTotals] = field(default_factory=dict)
    by_model: dict[str, ModelTotals] = field(default_factory=dict)
    models: ModelTotals = field(default_factory=ModelTotals)

    def add_run(self, workflow: str, status: ListedStatus, tape: Tape) -> None:
        """Count one run; `status` is that of a run whose journal does not say it, as one without an end."""
        self.add_facts(workflow, status, read_tape(tape, COUNTED))  # all is read before anything is added

    def add_facts(self, workflow: str, status: ListedStatus, facts: Iterable[Fact]) -> None:
        """Count one run by what its own strands say."""
        totals = self.workflows.setdefault(workflow, WorkflowTotals())
        error = None
        for fact in facts:
            if isinstance(fact, RunFinished) and "/" not in fact.strand:
                status, error = (status if fact.is_agent else status_of_reason(fact.reason)), fact.error
            self._add_fact(fact)
            if fact.run is not None and (agent := _agent_of(fact.run)) is not None:
                _add_to_agent(self.agents.setdefault(agent.name, AgentTotals()), fact, is_own=fact.strand == agent.path)
        totals.statuses[status] += 1
        if status == "failed":
            totals.errors[(error["kind"] if error else "unknown")] += 1

    def _add_fact(self, fact: Fact) -> None:
        if isinstance(fact, Call | Answered) and fact.run is not None and fact.run.turn is not None:
            return  # a turn reads and stores its conversation; what its agent did is in a run of its own
        match fact:
            case Answered(answer=ModelReply(usage=usage, model=model)):
                self._add_usage(model, usage)
            case Call(tool=tool):
                self.tools.setdefault(tool, ToolTotals()).calls += 1
            case Answered(asked=Call() as call, answer=ToolReply() | Failed() as answer):
                totals = self.tools[call.tool]
                totals.answered += 1
                totals.failed += not fact.succeeded
                totals.seconds += answer.seconds
                spent = answer.usage if isinstance(answer, ToolReply) else None
                if spent and call.effect != "nested":  # a nested run's replies count themselves
                    self._add_usage(f"(asked by {call.tool})", spent)
            case _:
                pass

    def _add_usage(self, model: str, usage: Any) -> None:
        for totals in (self.models, self.by_model.setdefault(model, ModelTotals())):
            totals.add(usage)


def _agent_of(run: RecordedRun) -> RecordedRun | None:
    """Return the innermost agent whose run it is, or in which it is nested."""
    if run.is_agent:
        return run
    return None if run.above is None else _agent_of(run.above)


def _add_to_agent(totals: AgentTotals, fact: Fact, *, is_own: bool) -> None:
    """Count what an agent's run, or an item of a batch in it, says; the batch has the time of its items."""
    match fact:
        case RunStarted():
            totals.runs += 1
        case RunFinished(reason=reason, is_agent=True):
            totals.reasons[reason] += 1
        case Call():
            totals.tool_calls += 1
        case Answered(answer=ModelReply(usage=usage)):
            totals.models.add(usage)
        case _:
            pass
    if is_own and isinstance(fact, Answered):
        totals.seconds += fact.answer.seconds
