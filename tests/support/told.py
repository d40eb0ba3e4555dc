"""What telemetry is told of: engines with an in-memory exporter and reader, and questions to what they have heard."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_core.models import ScriptedModel
from engine_shim import Engine
from engine_shim.store.run_store import RunStore
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.telemetry.run_metrics import RunMetrics
from engine_shim.telemetry.telemetry import Telemetry
from utools import ToolError, ToolRegistry, tool
from utools.defaults import default_registry


@dataclass
class Told:
    """One process: what it exports. `telemetry` is what its engines get."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    metrics: RunMetrics = field(default_factory=RunMetrics)
    content: bool = False

    def __post_init__(self) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(
            tracer_provider=provider, meter_provider=meters, metrics=self.metrics, content=self.content
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order of their ends."""
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        (found,) = (each for each in self.spans if each.name == name)
        return found

    def attributes(self, name: str) -> Mapping[str, Any]:
        return self.span(name).attributes or {}

    def tree(self) -> dict[str, str | None]:
        """The names of spans with those of their parents, where names are unlike."""
        return tree_of(self.spans)

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]


def tree_of(spans: Iterable[ReadableSpan]) -> dict[str, str | None]:
    found = list(spans)
    names = {each.context.span_id: each.name for each in found}
    return {each.name: names.get(each.parent.span_id, "?") if each.parent else None for each in found}


def ids_of(span: ReadableSpan) -> tuple[int, int]:
    return span.context.trace_id, span.context.span_id


@tool(effect="read")
def stock(article: str) -> dict[str, Any]:
    """How many pieces of an article there are."""
    return {"article": article, "pieces": 12}


@tool(effect="read")
def broken(article: str) -> str:
    """Fail."""
    raise ToolError("out of order: {article}", article=article)


@tool(effect="write")
def order(article: str) -> str:
    """Order an article."""
    return f"ordered {article}"


def registry_of(*tools: Any) -> ToolRegistry:
    return ToolRegistry([*default_registry().all(), stock, broken, order, *tools])


def engine_of(
    told: Told | None, replies: Sequence[str] | Callable[..., str] = (), *tools: Any, store: RunStore | None = None
) -> Engine:
    """An engine whose agents get these replies."""
    return Engine(
        registry_of(*tools),
        store=store or MemoryRunStore(),
        model=ScriptedModel(replies),
        telemetry=told.telemetry if told else None,
    )


def agent_node(**config: Any) -> dict[str, Any]:
    """A node with an agent."""
    given = {"model": "openai:gpt-4o-mini", "max_steps": 5, "allowed_tools": ["stock", "broken"], "prompt": "Go."}
    return {"id": "clerk", "tool": "agent_core", "config": {**given, **config}}


def flow_of(*nodes: Any, identity: str = "desk", **keys: Any) -> dict[str, Any]:
    return {"id": identity, "nodes": list(nodes), **keys}


def await_spans(told: Told, count: int) -> list[ReadableSpan]:
    """The spans once there are so many: a server tells the last one shortly after it has answered."""
    deadline = time.monotonic() + 30
    while len(told.spans) < count:
        assert time.monotonic() < deadline, [each.name for each in told.spans]
        time.sleep(0.01)
    return told.spans
