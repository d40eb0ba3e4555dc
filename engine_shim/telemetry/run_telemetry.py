"""RunTelemetry: the observers of the runs of one store, and the spans of callers that these lie under."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent_core.run.row_listener import ActListener
from engine_shim.telemetry.ids import TraceParent, read_traceparent
from engine_shim.telemetry.operations import Source
from engine_shim.telemetry.telemetry import Telemetry
from engine_shim.telemetry.telemetry_listener import TelemetryListener

if TYPE_CHECKING:
    from engine_shim.telemetry.spans import SpanTeller


class TraceStore(Protocol):
    """Where it is kept, for as long as a run is, which span a run lies under."""

    def save_trace(self, run: str, traceparent: str) -> None:
        """Keep the parent of a run's spans; the first one stays."""
        ...

    def trace(self, run: str) -> str | None:
        """Return the parent of a run's spans; None if none was given."""
        ...


@dataclass(frozen=True, slots=True)
class RunTelemetry:
    """The telemetry of the runs of one store, on a host with this default provider of models."""

    telemetry: Telemetry
    store: TraceStore
    default_provider: str = "openai"

    def observe(self, run: str) -> ActListener | None:
        """Return what follows a run while it is driven; None, at no cost, without telemetry.

        The store is read for the run's parent, which may wait for a network.
        """
        tracer, meters, metrics = self.telemetry.tracer(), self.telemetry.meters(), self.telemetry.metrics
        if tracer is None and meters is None and metrics is None:
            return None
        source = Source(run, self.telemetry.tenant, self.default_provider)
        if tracer is None:
            return TelemetryListener(source, None, meters, metrics)
        kept = read_traceparent(self.store.trace(run))

        def make_spans(seed: bytes, *, is_new: bool) -> "SpanTeller":
            from engine_shim.telemetry.spans import SpanTeller

            parent = kept or (self._take_current(run) if is_new else None)
            return SpanTeller(tracer, source, seed, parent, content=self.telemetry.wants_content)

        return TelemetryListener(source, make_spans, meters, metrics)

    def keep_parent(self, run: str, header: str | None) -> None:
        """Keep what the spans of a new run lie under: the program's current span, else what a caller's header names.

        An invalid header is none.
        """
        if self.telemetry.tracer() is not None and (parent := _current_span() or read_traceparent(header)):
            self.store.save_trace(run, parent.write())

    def _take_current(self, run: str) -> TraceParent | None:
        """Return the program's current span, kept as the parent of a new run that has none."""
        if (current := _current_span()) is not None:
            self.store.save_trace(run, current.write())
        return current


def _current_span() -> TraceParent | None:
    from opentelemetry import trace

    from engine_shim.telemetry.spans import traceparent_of

    return traceparent_of(trace.get_current_span())
