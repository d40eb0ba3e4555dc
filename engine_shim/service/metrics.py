"""What a server counts of its runs, for Prometheus: all of it for the host, a tenant's own for a tenant."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from agent_core.statuses import OPEN
from engine_shim.store.entries import RunFilter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine_shim.service.tenants import Tenant
    from engine_shim.telemetry.run_metrics import OpenRuns, RunMetrics

WAITING: Final = "waiting"


def open_metrics() -> "RunMetrics | None":
    """Return the metrics of a server; None without the extra that brings prometheus-client."""
    if find_spec("prometheus_client") is None:
        return None
    from engine_shim.telemetry.run_metrics import RunMetrics

    return RunMetrics()


def write_metrics(metrics: "RunMetrics", tenants: "Iterable[Tenant]", reader: str | None) -> bytes:
    """Return the metrics that a reader may see, in Prometheus' text format: the host itself, None, sees those of
    all."""
    shown = [tenant for tenant in tenants if reader in (None, tenant.name)]
    return metrics.write({tenant.name or "": count_runs(tenant) for tenant in shown}, reader)


def count_runs(tenant: "Tenant") -> "OpenRuns":
    """Return how the runs of a tenant stand, whichever process drives them."""
    from engine_shim.telemetry.run_metrics import OpenRuns

    standing = RunFilter(statuses=(*OPEN, WAITING), host=tenant.engine.host)
    statuses = [entry.status for entry in tenant.store.entries(standing)]
    waiting = statuses.count(WAITING)
    return OpenRuns(len(statuses) - waiting, waiting)
