"""exporting(): sends what a command's runs tell by OTLP, where the environment names a collector."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from engine_shim.telemetry.telemetry import find_provider

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
HTTP: Final = "http/protobuf"
SERVICE: Final = "agent-core"
"""The service's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES give another one."""
TIMEOUT_S: Final = 3.0
"""How long an export may take, its retries included, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise."""
FLUSH_MS: Final = 5000
"""How long a command waits at its end for the collector."""
LONGEST: Final = 200
log = logging.getLogger("engine_shim")


@contextmanager
def exporting() -> Iterator[None]:
    """Export traces and metrics in this block where OTEL_EXPORTER_OTLP_ENDPOINT, or that of one of them, is set; what
    is left is sent at its end. A program that has set up providers of its own keeps them."""
    providers = _set_up(os.environ)
    try:
        yield
    finally:
        for provider in providers:
            if flush := getattr(provider, "force_flush", None):
                flush(FLUSH_MS)


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

    made = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_timeout("TRACES"))))
    set_tracer_provider(made)
    _explain_failures()
    return made


def _meter_provider() -> Any:
    if provider := find_provider("opentelemetry.metrics", "get_meter_provider"):
        return provider
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.metrics import set_meter_provider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_timeout("METRICS")))
    made = MeterProvider([reader], _resource(), shutdown_on_exit=False)
    set_meter_provider(made)
    _explain_failures()
    return made


def _timeout(kind: str) -> float | None:
    """Return the seconds of one export; None where the environment says how many."""
    own = ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{kind}_TIMEOUT")
    return None if any(map(os.environ.get, own)) else TIMEOUT_S


class _FirstFailure(logging.Handler):
    """Says once, in one line, why nothing arrives; OpenTelemetry says it again at each attempt."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setLevel(logging.CRITICAL + 1)
        text = " ".join(record.getMessage().split())
        log.warning("telemetry is not exported: %s", text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def _explain_failures() -> None:
    exporters = logging.getLogger("opentelemetry")
    if not exporters.handlers:
        exporters.addHandler(_FirstFailure(logging.WARNING))
        exporters.propagate = False


def _resource() -> "Resource":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    return Resource.create({"service.name": SERVICE}).merge(OTELResourceDetector().detect())
