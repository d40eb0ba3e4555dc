"""RunMetrics: what runs did, as Prometheus metrics, each series with the tenant whose run it was.

The extra `web` brings prometheus-client.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from agent_core.effects import ToolReply
from agent_core.journal.facts import Answered, Fact, RunFinished
from agent_core.outputs import Json
from agent_core.statuses import status_of_reason
from engine_shim.telemetry.operations import Ended, Source
from engine_shim.telemetry.series import Series
from engine_shim.telemetry.tenant_state import TenantState, list_metrics
from engine_shim.telemetry.timing import duration_of

MAX_SERIES: Final = 1000
"""Combinations of labels that each metric has."""
CALL_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
RUN_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
STEP_BUCKETS: Final = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
TOKEN_KINDS: Final = ("input", "output")
TOKEN_PARTS: Final = ("cached", "cache_write", "reasoning")
SUCCESS: Final = "success"


class RunMetrics:
    """The metrics of one process, its memory and descriptors among them. Event loops and threads may share it."""

    content_type: Final = CONTENT_TYPE_LATEST

    def __init__(self, *, most: int = MAX_SERIES) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._runs = Series.counter(registry, most, "runs", "Runs that ended, nested ones not among them.", "status")
        self._run_seconds = Series.histogram(
            registry, most, "run_duration_seconds", "From the beginning of a run to its end.", buckets=RUN_BUCKETS
        )
        self._agents = Series.counter(
            registry, most, "agent_runs", "Runs of agents that ended, nested ones too.", "finish_reason"
        )
        self._agent_seconds = Series.histogram(
            registry, most, "agent_duration_seconds", "From the beginning of an agent to its end.", buckets=RUN_BUCKETS
        )
        self._steps = Series.histogram(registry, most, "agent_steps", "Steps of an agent's run.", buckets=STEP_BUCKETS)
        self._questions = Series.counter(registry, most, "model_calls", "Questions to models.", "model", "outcome")
        self._step_seconds = Series.histogram(
            registry, most, "step_duration_seconds", "A step: a question to its reply.", "model", buckets=CALL_BUCKETS
        )
        self._tokens = Series.counter(registry, most, "tokens", "Tokens that models read and wrote.", "model", "type")
        self._token_parts = Series.counter(
            registry, most, "token_parts", "Those from a cache, to one, and of thoughts.", "model", "type"
        )
        self._calls = Series.counter(registry, most, "tool_calls", "Calls of tools.", "tool", "outcome")
        self._call_seconds = Series.histogram(
            registry, most, "tool_duration_seconds", "From a call to its result.", "tool", buckets=CALL_BUCKETS
        )

    def end(self, ended: Ended, source: Source) -> None:
        """Count an operation that has ended."""
        operation, fact, seconds = ended.operation, ended.fact, duration_of(ended)
        labels, outcome = (source.tenant, operation.workflow, operation.agent), ended.error or SUCCESS
        match operation.kind, fact:
            case "chat", _:
                model = ended.reply.model if ended.reply else operation.name
                self._questions.add((*labels, model, outcome))
                self._step_seconds.observe((*labels, model), seconds)
                self._add_tokens((*labels, model), ended.reply.usage if ended.reply else None)
            case "execute_tool", _:
                self._calls.add((*labels, operation.name, outcome))
                self._call_seconds.observe((*labels, operation.name), seconds)
                if not operation.is_nested:  # a nested run's own questions are counted
                    self._add_tokens((*labels, ""), _usage_of(fact))
            case "invoke_agent", RunFinished(reason=reason):
                self._agents.add((*labels, reason))
                self._agent_seconds.observe(labels, seconds)
                self._steps.observe(labels, ended.steps)
            case _:
                pass
        if operation.parent is None and isinstance(fact, RunFinished) and operation.kind != "plan":
            self._runs.add((*labels, status_of_reason(fact.reason)))
            self._run_seconds.observe(labels, seconds)

    def _add_tokens(self, labels: tuple[str, ...], usage: Mapping[str, int] | None) -> None:
        for kinds, series in ((TOKEN_KINDS, self._tokens), (TOKEN_PARTS, self._token_parts)):
            for kind in kinds if usage else ():
                if tokens := (usage or {}).get(f"{kind}_tokens"):
                    series.add((*labels, kind), tokens)

    def write(self, states: Mapping[str, TenantState], tenant: str | None = None) -> bytes:
        """Return all metrics in Prometheus' text format, or those of one tenant, with the states of tenants by name."""
        return generate_latest(_View(self.registry, states, tenant))


def _usage_of(fact: Fact) -> Json | None:
    """Return what a tool has spent on models."""
    return fact.answer.usage if isinstance(fact, Answered) and isinstance(fact.answer, ToolReply) else None


@dataclass(frozen=True, slots=True)
class _View:
    """What one reader sees of the metrics."""

    registry: CollectorRegistry
    states: Mapping[str, TenantState]
    tenant: str | None

    def collect(self) -> Iterator[Metric]:
        for metric in (*self.registry.collect(), *list_metrics(self.states)):
            shown = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            shown.samples = [each for each in metric.samples if self._shows(each.labels)]
            yield shown

    def _shows(self, labels: Mapping[str, str]) -> bool:
        return self.tenant is None or labels.get("tenant") == self.tenant
