"""Telemetry: to whom what runs do is told, and RunTelemetry: the observers of the runs of one store."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from agent_core.run.observer import Observer
from engine_shim.telemetry import names
from engine_shim.telemetry.content import is_wanted
from engine_shim.telemetry.ids import TraceParent, read_traceparent
from engine_shim.telemetry.operations import Source
from engine_shim.telemetry.run_observer import RunObserver

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

    from engine_shim.telemetry.meters import Meters
    from engine_shim.telemetry.run_metrics import RunMetrics
    from engine_shim.telemetry.spans import SpanTeller

T = TypeVar("T")
STAND_INS: Final = ("Proxy", "NoOp")
"""How the classes begin that stand in for a provider until the program sets one up."""


class Telemetry:
    """Tells spans to a tracer provider, metrics to a meter provider, and counts for Prometheus in `metrics`.

    Without a provider it is the program's own, once that has set one up (`opentelemetry.trace.set_tracer_provider`);
    until then nothing is told. Content is told where OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says so, unless
    `content` does. `tenant` is whose the runs are.
    """

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        metrics: "RunMetrics | None" = None,
        content: bool | None = None,
        tenant: str = "",
    ) -> None:
        self.metrics, self.tenant = metrics, tenant
        self._tracers, self._meters, self._content = tracer_provider, meter_provider, content
        self._made: dict[int, Any] = {}

    def of_tenant(self, tenant: str) -> "Telemetry":
        """The same for the runs of a tenant."""
        return Telemetry(
            tracer_provider=self._tracers,
            meter_provider=self._meters,
            metrics=self.metrics,
            content=self._content,
            tenant=tenant,
        )

    def tracer(self) -> "Tracer | None":
        """What spans are told to; None where nobody wants them."""
        provider = self._tracers or find_provider("opentelemetry.trace", "get_tracer_provider")
        if provider is None:
            return None
        from engine_shim.telemetry.spans import make_tracer

        return self._once(provider, lambda: make_tracer(provider, _version(), names.SCOPE))

    def meters(self) -> "Meters | None":
        """What metrics are told to; None where nobody wants them."""
        provider = self._meters or find_provider("opentelemetry.metrics", "get_meter_provider")
        if provider is None:
            return None
        from engine_shim.telemetry.meters import Meters

        return self._once(provider, lambda: Meters(provider, _version()))

    @property
    def wants_content(self) -> bool:
        return is_wanted(os.environ) if self._content is None else self._content

    def _once(self, provider: object, make: Callable[[], T]) -> T:
        """What is made of a provider, once for each."""
        if id(provider) not in self._made:
            self._made[id(provider)] = (provider, make())
        made: T = self._made[id(provider)][1]
        return made


class TraceStore(Protocol):
    """Where it is kept, for as long as a run is, which span a run lies under."""

    def save_trace(self, run: str, traceparent: str) -> None:
        """Keep the parent of a run's spans; the first one stays."""
        ...

    def trace(self, run: str) -> str | None:
        """The parent of a run's spans; None where nobody gave one."""
        ...


@dataclass(frozen=True, slots=True)
class RunTelemetry:
    """The telemetry of the runs of one store, on a host with this default provider of models."""

    telemetry: Telemetry
    store: TraceStore
    default_provider: str = "openai"

    def observe(self, run: str) -> Observer | None:
        """What follows a run while it is driven; None, at no cost, where nobody wants to know."""
        tracer, meters, metrics = self.telemetry.tracer(), self.telemetry.meters(), self.telemetry.metrics
        if tracer is None and meters is None and metrics is None:
            return None
        source = Source(run, self.telemetry.tenant, self.default_provider)
        if tracer is None:
            return RunObserver(source, None, meters, metrics)

        def make_spans(seed: bytes, *, is_new: bool) -> "SpanTeller":
            from engine_shim.telemetry.spans import SpanTeller

            parent = self._parent_of(run, is_new=is_new)
            return SpanTeller(tracer, source, seed, parent, content=self.telemetry.wants_content)

        return RunObserver(source, make_spans, meters, metrics)

    def keep_parent(self, run: str, header: str | None) -> None:
        """Keep what the spans of a new run lie under: the program's current span, else what a caller's header names.

        An invalid header is none.
        """
        if self.telemetry.tracer() is not None and (parent := _current_span() or read_traceparent(header)):
            self.store.save_trace(run, parent.write())

    def _parent_of(self, run: str, *, is_new: bool) -> TraceParent | None:
        kept = read_traceparent(self.store.trace(run))
        if kept is None and is_new and (kept := _current_span()):
            self.store.save_trace(run, kept.write())
        return kept


def _current_span() -> TraceParent | None:
    from opentelemetry import trace

    from engine_shim.telemetry.spans import traceparent_of

    return traceparent_of(trace.get_current_span())


def find_provider(module: str, getter: str) -> Any:
    """The provider that this program has set up; None where it has none, or has not even imported OpenTelemetry."""
    api = sys.modules.get(module)
    if api is None:
        return None
    provider = getattr(api, getter)()
    return None if type(provider).__name__.lstrip("_").startswith(STAND_INS) else provider


def _version() -> str:
    return version("agent-core")
