"""TelemetryListener: follows one run while it is driven, and tells its operations to whatever listens."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from agent_core.effects import CallModel
from agent_core.journal.operations import Act
from agent_core.journal.path import outermost_first
from agent_core.journal.record import Row, Tape
from agent_core.records import Kind
from engine_shim.telemetry.ids import HEADER
from engine_shim.telemetry.operations import Began, Ended, Place, Source
from engine_shim.telemetry.tracker import Tracker
from utools.net.trace_headers import TRACE_HEADERS

if TYPE_CHECKING:
    from engine_shim.telemetry.meters import Meters
    from engine_shim.telemetry.run_metrics import RunMetrics
    from engine_shim.telemetry.spans import SpanTeller

log = logging.getLogger("engine_shim")
FOLLOWED: Final[Collection[Kind | None]] = {"run_started", "asked", "answered", "cancelled", "waiting", "run_finished"}
"""The records that say anything of operations; in plan mode those of decisions as well."""


class MakeSpans(Protocol):
    """Gives what tells the spans of the run whose first record has the hash `seed`."""

    def __call__(self, seed: bytes, *, is_new: bool) -> "SpanTeller": ...


class TelemetryListener:
    """Tells what is appended, once. The process that appended a row has told of it.

    A mistake in here is logged, and ends no run.
    """

    def __init__(
        self,
        source: Source,
        make_spans: MakeSpans | None,
        meters: "Meters | None" = None,
        metrics: "RunMetrics | None" = None,
    ) -> None:
        self._source, self._make_spans = source, make_spans
        self._ends = [each for each in (meters, metrics) if each is not None]
        self._tracker = Tracker()
        self._spans: SpanTeller | None = None

    def resume_from(self, tape: Tape) -> None:
        """Know a tape's operations; the spans of those that are under way are opened again, under their own ids."""
        try:
            self._tracker, self._spans = Tracker(), None
            root = next((rows[0] for path, rows in tape.items() if "/" not in path and _begins_run(rows[0])), None)
            if root is None:
                return
            self._open_spans(root, is_new=sum(map(len, tape.values())) == 1)
            for path in outermost_first(tape):
                for row in tape[path]:
                    if self._is_followed(row):
                        for _ in self._tracker.follow(row):
                            pass
            if self._spans is not None:
                for operation in self._tracker.open():
                    self._spans.begin(operation)
        except Exception:
            log.exception("telemetry of run %s failed", self._source.run)

    def __call__(self, row: Row) -> None:
        if not self._is_followed(row):
            return
        try:
            if "/" not in row.path and _begins_run(row):
                self._open_spans(row, is_new=True)
            for change in self._tracker.follow(row):
                self._tell(change)
        except Exception:
            log.exception("telemetry of run %s failed", self._source.run)

    def _tell(self, change: Began | Ended) -> None:
        if isinstance(change, Began):
            if self._spans is not None:
                self._spans.begin(change.operation)
            return
        if self._spans is not None:
            self._spans.end(change)
        for each in self._ends:
            each.end(change, self._source)

    def _is_followed(self, row: Row) -> bool:
        """Return whether a row says anything of operations; decisions do in plan mode alone."""
        return row.kind in FOLLOWED or (bool(self._tracker.planning) and row.kind == "decided")

    def _open_spans(self, root: Row, *, is_new: bool) -> None:
        if self._make_spans is not None:
            self._spans = self._make_spans(root.hash, is_new=is_new)

    @contextmanager
    def acting(self, act: Act) -> Iterator[None]:
        """Let an act's span be the current one, for the tool and for the systems that are asked."""
        place = Place(act.slot.path, act.slot.n - 1)
        span = None if self._spans is None else self._spans.span_at(place)
        if span is None or self._spans is None:
            yield
            return
        from opentelemetry import trace

        from engine_shim.telemetry.spans import traceparent_of

        if isinstance(act.effect, CallModel):
            self._spans.add_question(place, act.effect.messages)
        parent = traceparent_of(span)
        token = TRACE_HEADERS.set({HEADER: parent.write()} if parent else {})
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        finally:
            TRACE_HEADERS.reset(token)

    def ids_of(self, path: str) -> Mapping[str, str]:
        """Return the ids of a run's span."""
        context = None if self._spans is None else self._spans.context_of_run(path)
        if context is None or not context.is_valid:
            return {}
        return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _begins_run(row: Row) -> bool:
    return row.kind == "run_started"
