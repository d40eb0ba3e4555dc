"""SpanTeller: tells the operations of one run as OpenTelemetry spans."""

import time
from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import orjson
from opentelemetry import trace
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from engine_shim.telemetry.attributes import attributes_at_end, attributes_at_start, span_name
from engine_shim.telemetry.content import content_at_end, content_at_start, content_of_question
from engine_shim.telemetry.ids import TraceParent, span_id_of, trace_id_of
from engine_shim.telemetry.operations import Ended, Operation, Place, Source
from engine_shim.telemetry.timing import SECOND, duration_of, nanoseconds_of

if TYPE_CHECKING:
    from opentelemetry.context import Context

KINDS: Final = {"chat": SpanKind.CLIENT}
"""What is not internal."""
_NEXT: ContextVar[TraceParent | None] = ContextVar("agent_core_next_span", default=None)


class RunIds(RandomIdGenerator):
    """Gives the ids that are set for the next span; random ones if none are set."""

    def generate_trace_id(self) -> int:
        chosen = _NEXT.get()
        return super().generate_trace_id() if chosen is None else chosen.trace_id

    def generate_span_id(self) -> int:
        chosen = _NEXT.get()
        return super().generate_span_id() if chosen is None else chosen.span_id


class SpanTeller:
    """The spans of one run, under `parent` where a caller gave one. `seed` is the hash of the run's first record.

    The tracer of an SDK lets us choose the ids; with any other one a resumed run has a trace of its own.
    """

    def __init__(
        self, tracer: trace.Tracer, source: Source, seed: bytes, parent: TraceParent | None, *, content: bool
    ) -> None:
        self._tracer, self._source, self._seed, self._content = tracer, source, seed, content
        self._trace_id = trace_id_of(seed)
        self._root = trace.set_span_in_context(trace.NonRecordingSpan(_as_context(parent))) if parent else None
        self._spans: dict[Place, trace.Span] = {}
        self._runs: dict[str, SpanContext] = {}

    def begin(self, operation: Operation) -> None:
        """Start the span of an operation: of a run when that began, of anything else now."""
        place, parent = operation.place, operation.parent
        began = time.time_ns() if operation.began is None else nanoseconds_of(operation.began)
        attributes: dict[str, Any] = {**attributes_at_start(operation, self._source)}
        if self._content:
            attributes |= content_at_start(operation)
        token = _NEXT.set(TraceParent(self._trace_id, span_id_of(self._seed, *place)))
        try:
            span = self._tracer.start_span(
                span_name(operation),
                self._context_of(parent),
                KINDS.get(operation.kind, SpanKind.INTERNAL),
                attributes,
                start_time=began,
            )
        finally:
            _NEXT.reset(token)
        self._spans[place] = span
        if operation.kind in ("invoke_workflow", "invoke_agent"):
            self._runs[place.path] = span.get_span_context()

    def end(self, ended: Ended) -> None:
        """End the span of an operation."""
        span = self._spans.pop(ended.operation.place, None)
        if span is None or not span.is_recording():
            return
        span.set_attributes(dict(attributes_at_end(ended)))
        if self._content:
            span.set_attributes(content_at_end(ended))
        if ended.error is not None:
            described = f"{ended.error}: {ended.message}" if self._content and ended.message else ended.error
            span.set_status(Status(StatusCode.ERROR, described))
        span.end(self._end_of(span, ended))

    def span_at(self, place: Place) -> trace.Span | None:
        """Return the open span that begins at a place."""
        return self._spans.get(place)

    def add_question(self, place: Place, messages: Iterable[bytes]) -> None:
        """Add what a model is asked to its span, where content is wanted."""
        span = self._spans.get(place)
        if self._content and span is not None and span.is_recording():
            span.set_attributes(content_of_question(orjson.loads(each) for each in messages))

    def context_of_run(self, path: str) -> SpanContext | None:
        """Return the ids of the span of a run by its strand, also once it has ended."""
        return self._runs.get(path)

    def _context_of(self, parent: Place | None) -> "Context | None":
        span = None if parent is None else self._spans.get(parent)
        if span is not None:
            return trace.set_span_in_context(span)
        return self._root if self._root is not None else trace.set_span_in_context(trace.INVALID_SPAN)

    def _end_of(self, span: trace.Span, ended: Ended) -> int:
        """Return when it ended: by its duration, which is more exact than the time in a record; else now."""
        began = getattr(span, "start_time", None)
        if ended.operation.kind == "plan" or began is None:
            return time.time_ns()
        if ended.at is not None and ended.operation.is_nested:
            return max(int(began), nanoseconds_of(ended.at))
        return int(began) + round((duration_of(ended) or 0.0) * SECOND)


def make_tracer(provider: trace.TracerProvider, version: str, scope: str) -> trace.Tracer:
    """Return a tracer whose span ids we may choose, where it is that of an SDK."""
    tracer = provider.get_tracer(scope, version)
    if hasattr(tracer, "id_generator"):
        setattr(tracer, "id_generator", RunIds())  # noqa: B010 - the API does not name it
    return tracer


def traceparent_of(span: trace.Span) -> TraceParent | None:
    """Return the span as the parent of another one; None for one without ids."""
    context = span.get_span_context()
    return TraceParent(context.trace_id, context.span_id, int(context.trace_flags)) if context.is_valid else None


def _as_context(parent: TraceParent) -> SpanContext:
    return SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=TraceFlags(parent.flags & 3))
