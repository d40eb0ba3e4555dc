"""exporting(): sends what a command's runs tell by OTLP, where the environment names a collector."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from engine_shim.telemetry.export_failures import explain_failures, note_exports
from engine_shim.telemetry.telemetry import find_provider
from utools.error_text import describe

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
TIMEOUT: Final = "OTEL_EXPORTER_OTLP_TIMEOUT"
METRICS: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
HTTP: Final = "http/protobuf"
SERVICE: Final = "agent-core"
"""The service's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES give another one."""
TIMEOUT_S: Final = 3.0
"""How long an export may take, its retries included, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise."""
FLUSH_S: Final = 5.0
LONGEST_FLUSH_S: Final = 60.0
"""How long a command waits at its end for the collector, and at most, where an export may take longer."""
log = logging.getLogger("engine_shim")


@contextmanager
def exporting() -> Iterator[None]:
    """Export traces and metrics in this block where OTEL_EXPORTER_OTLP_ENDPOINT, or that of one of them, is set; what
    is left is sent at its end. A program that has set up providers of its own keeps them."""
    providers = _set_up(os.environ)
    try:
        yield
    finally:
        _flush(providers)


def _flush(providers: Sequence[Any]) -> None:
    """Send what is left, side by side. OpenTelemetry itself would wait for a collector that hangs."""
    seconds = _longest_flush()
    flushes = [
        Thread(target=_flush_one, args=(flush, seconds), name="telemetry-flush", daemon=True)
        for each in providers
        if (flush := getattr(each, "force_flush", None))
    ]
    for each in flushes:
        each.start()
    ends = monotonic() + seconds
    for each in flushes:
        each.join(max(0.0, ends - monotonic()))
    if any(each.is_alive() for each in flushes):
        log.warning("telemetry is not exported: the collector has not answered within %g s", seconds)


def _flush_one(flush: Callable[[float], object], seconds: float) -> None:
    try:
        flush(seconds * 1000)
    except Exception as error:  # of whichever exporter a program has set up; the command has done its work
        log.warning("telemetry is not exported: %s", describe(error))


def _longest_flush() -> float:
    """Return how long a command waits at its end: longer, if one export may take longer by the environment; but not for
    ever, since other SDKs than Python's read that number as milliseconds."""
    given = [FLUSH_S]
    for name in (
        "OTEL_EXPORTER_OTLP_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
    ):
        with suppress(ValueError):  # which OpenTelemetry tells
            given.append(float(os.environ.get(name) or 0))
    return min(max(given), LONGEST_FLUSH_S)


def _set_up(environment: Mapping[str, str]) -> list[Any]:
    """Return the providers that export; none where nothing is to be exported, or cannot be, which is logged."""
    wants_traces, wants_metrics = (
        any(environment.get(name) for name in (ENDPOINT, own)) and environment.get(f"OTEL_{kind}_EXPORTER") != "none"
        for kind, own in (("TRACES", TRACES), ("METRICS", METRICS))
    )
    if not (wants_traces or wants_metrics) or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    if not all(map(_is_installed, NEEDED)):
        log.warning("%s is set, but nothing is exported: pip install 'agent-core[telemetry]'", _first_set(environment))
        return []
    makers = {
        "TRACES": _trace_provider if wants_traces else None,
        "METRICS": _meter_provider if wants_metrics else None,
    }
    wanted = {kind: make for kind, make in makers.items() if make is not None}
    refused = {kind: name for kind in wanted if (name := _other_protocol(environment, kind))}
    for name in dict.fromkeys(refused.values()):
        log.warning("%s is %r, but only %r is exported by", name, environment[name], HTTP)
    made = [_try(make) for kind, make in wanted.items() if kind not in refused]
    note_exports()
    return [each for each in made if each is not None]


def _other_protocol(environment: Mapping[str, str], kind: str) -> str | None:
    """Return the variable that names another protocol than ours for traces, or for metrics."""
    names = (f"OTEL_EXPORTER_OTLP_{kind}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next(filter(environment.get, names), None)
    return None if name is None or environment[name] == HTTP else name


def _try(make: Callable[[], Any]) -> Any:
    """Return a provider; None, which is logged, where OpenTelemetry refuses the value of one of its variables."""
    try:
        return make()
    except ValueError as error:
        log.warning("telemetry is not exported: %s", error)
        return None


def _first_set(environment: Mapping[str, str]) -> str:
    return next(name for name in (ENDPOINT, TRACES, METRICS) if environment.get(name))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


def _trace_provider() -> Any:
    if provider := find_provider("opentelemetry.trace", "get_tracer_provider"):
        return provider
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import set_tracer_provider

    explain_failures()
    made = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_timeout("TRACES"))))
    set_tracer_provider(made)
    return made


def _meter_provider() -> Any:
    if provider := find_provider("opentelemetry.metrics", "get_meter_provider"):
        return provider
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.metrics import set_meter_provider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    explain_failures()
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_timeout("METRICS")))
    made = MeterProvider([reader], _resource(), shutdown_on_exit=False)
    set_meter_provider(made)
    return made


def _timeout(kind: str) -> float | None:
    """Return the seconds of one export; None where the environment says how many."""
    own = (TIMEOUT, f"OTEL_EXPORTER_OTLP_{kind}_TIMEOUT")
    return None if any(map(os.environ.get, own)) else TIMEOUT_S


def _resource() -> "Resource":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    return Resource.create({"service.name": SERVICE}).merge(OTELResourceDetector().detect())
