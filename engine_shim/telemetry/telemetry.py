"""Telemetry: to whom it is told what runs do."""

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine_shim.telemetry import names
from engine_shim.telemetry.content import is_wanted

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Tracer, TracerProvider

    from engine_shim.telemetry.meters import Meters
    from engine_shim.telemetry.run_metrics import RunMetrics

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
        """Return the same for the runs of a tenant."""
        return Telemetry(
            tracer_provider=self._tracers,
            meter_provider=self._meters,
            metrics=self.metrics,
            content=self._content,
            tenant=tenant,
        )

    def tracer(self) -> "Tracer | None":
        """Return the receiver of spans; None if there is none."""
        provider = self._tracers or find_provider("opentelemetry.trace", "get_tracer_provider")
        if provider is None:
            return None
        from engine_shim.telemetry.spans import make_tracer

        return self._once(provider, lambda: make_tracer(provider, _version(), names.SCOPE))

    def meters(self) -> "Meters | None":
        """Return the receiver of metrics; None if there is none."""
        provider = self._meters or find_provider("opentelemetry.metrics", "get_meter_provider")
        if provider is None:
            return None
        from engine_shim.telemetry.meters import Meters

        return self._once(provider, lambda: Meters(provider, _version()))

    @property
    def wants_content(self) -> bool:
        """Return whether spans have what was asked, answered and called."""
        return is_wanted(os.environ) if self._content is None else self._content

    def _once(self, provider: object, make: Callable[[], T]) -> T:
        """Return what is made of a provider, once for each."""
        if id(provider) not in self._made:
            self._made[id(provider)] = (provider, make())
        made: T = self._made[id(provider)][1]
        return made


def find_provider(module: str, getter: str) -> Any:
    """Return the provider that this program has set up; None where it has none, or has not even imported
    OpenTelemetry."""
    api = sys.modules.get(module)
    if api is None:
        return None
    provider = getattr(api, getter)()
    return None if type(provider).__name__.lstrip("_").startswith(STAND_INS) else provider


def _version() -> str:
    return version("agent-core")
