"""Totals: what many recorded runs did, in numbers, one run after another. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.journal.path import is_within, name_of
from agent_core.journal.record import Record, Row, Tape

_COUNTED = (b'{"kind":"run_started"', b'{"kind":"asked"', b'{"kind":"answered"', b'{"kind":"run_finished"')
"""How the records begin that are counted; the others, which may be large, are not decoded."""


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

    statuses: Counter[str] = field(default_factory=Counter)
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
    cost: float = 0.0

    def add(self, usage: Any) -> None:
        self.replies += 1
        self.input_tokens += usage["input_tokens"]
        self.output_tokens += usage["output_tokens"]
        if usage.get("cost") is not None:
            self.priced += 1
            self.cost += usage["cost"]


@dataclass(slots=True)
class AgentTotals:
    """The runs of one agent, and how those ended that did. `seconds` are active ones: waiting does not count."""

    runs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
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

    def add_run(self, workflow: str, status: str, tape: Tape) -> None:
        """Count one run; `status` is that of a run whose journal does not say it, as one without an end."""
        totals = self.workflows.setdefault(workflow, WorkflowTotals())
        error = None
        counted = {path: list(_pairs(rows)) for path, rows in tape.items()}  # before anything of it is added
        names = dict(_agents(counted))
        for path, pairs in counted.items():
            agent = self._agent_of(path, names)
            for record, before in pairs:
                if record["kind"] == "run_finished" and "/" not in path:
                    status, error = record.get("status", status), record.get("error")
                self._add_record(record, before)
                if agent is not None:
                    _add_to_agent(agent, record, is_own=path in names)
        totals.statuses[status] += 1
        if status == "failed":
            totals.errors[(error or {}).get("kind", "unknown")] += 1

    def _add_record(self, record: Record, before: Record | None) -> None:
        match record:
            case {"kind": "answered", "reply": "said", "usage": usage, "model": model}:
                self._add_usage(model, usage)
            case {"kind": "asked", "ask": "tool", "tool": tool}:
                self.tools.setdefault(tool, ToolTotals()).calls += 1
            case {"kind": "answered", "reply": "did" | "failed"} if before and before.get("ask") == "tool":
                totals = self.tools[before["tool"]]
                totals.answered += 1
                totals.failed += not record.get("success", False)
                totals.seconds += record["seconds"]
                if record.get("usage") and before["effect"] != "nested":  # a nested run's replies count themselves
                    self._add_usage(f"(asked by {before['tool']})", record["usage"])

    def _agent_of(self, path: str, names: Mapping[str, str]) -> AgentTotals | None:
        """The totals of the agent whose run a strand belongs to."""
        owner = max((run for run in names if is_within(path, run)), key=len, default=None)
        return None if owner is None else self.agents.setdefault(names[owner], AgentTotals())

    def _add_usage(self, model: str, usage: Any) -> None:
        for totals in (self.models, self.by_model.setdefault(model, ModelTotals())):
            totals.add(usage)


def _agents(counted: Mapping[str, Sequence[tuple[Record, Record | None]]]) -> Iterator[tuple[str, str]]:
    """The strands that are runs of agents, each with the agent's name."""
    for path, pairs in counted.items():
        started: Record = pairs[0][0] if pairs else {"kind": ""}
        if started["kind"] == "run_started" and "definition" not in started:
            yield path, started.get("agent", {}).get("name") or name_of(path)


def _add_to_agent(totals: AgentTotals, record: Record, *, is_own: bool) -> None:
    """Count a record of an agent's run, or of an item of a batch in it, whose time the batch has."""
    match record:
        case {"kind": "run_started"}:
            totals.runs += 1
        case {"kind": "run_finished", "finish_reason": reason}:
            totals.reasons[reason] += 1
        case {"kind": "asked", "ask": "tool"}:
            totals.tool_calls += 1
        case {"kind": "answered", "reply": "said", "usage": usage}:
            totals.steps += 1
            totals.tokens += usage["input_tokens"] + usage["output_tokens"]
    if is_own and record["kind"] == "answered":
        totals.seconds += record["seconds"]


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Record, Record | None]]:
    """The counted records of a strand, each with the last act that was asked before it."""
    asked: Record | None = None
    for row in rows:
        if row.data.startswith(_COUNTED):
            record = row.record()
            yield record, asked
            asked = record if record["kind"] == "asked" else asked
