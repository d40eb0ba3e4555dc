"""What a server counts of its runs, for Prometheus: all of it for the host, a tenant's own for a tenant."""

from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from agent_core.statuses import OPEN, STOPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine_shim.service.tenants import Tenant
    from engine_shim.telemetry.run_metrics import RunMetrics
    from engine_shim.telemetry.tenant_state import TenantState

OVERDUE_S: Final = 60.0
"""How late a waiting run is resumed before it counts as overdue."""


def open_metrics() -> "RunMetrics | None":
    """Return the metrics of a process; None without the extra that brings prometheus-client."""
    if find_spec("prometheus_client") is None:
        return None
    from engine_shim.telemetry.run_metrics import RunMetrics

    return RunMetrics()


def write_metrics(
    metrics: "RunMetrics", tenants: "Iterable[Tenant]", reader: str | None, store_failures: int = 0
) -> bytes:
    """Return the metrics that a reader may see, in Prometheus' text format: the host itself, None, sees those of
    all. `store_failures` are those of the server, which count for the host."""
    shown = [tenant for tenant in tenants if reader in (None, tenant.name)]
    states = {each.name or "": read_state(each, 0 if each.name else store_failures) for each in shown}
    return metrics.write(states, reader)


def read_state(tenant: "Tenant", store_failures: int) -> "TenantState":
    """Return how the runs of a tenant stand, whichever process drives them, and what this process has counted.

    Two queries, however many runs there are.
    """
    from engine_shim.telemetry.tenant_state import TenantState

    engine, runs = tenant.engine, tenant.runs
    number = tenant.store.count_statuses(engine.host, (*OPEN, *STOPPED))
    return TenantState(
        open_runs=sum(number[status] for status in OPEN),
        waiting_runs=number["waiting"],
        paused_runs=number["paused"],
        overdue_runs=len(tenant.store.list_due(engine.host, tenant.store.clock.write_now(OVERDUE_S))),
        queued_runs=engine._slots.waiting,
        orphaned_runs=len(runs.orphans),
        oldest_orphan_seconds=runs.orphans.oldest_seconds,
        lease_renewal_failures=engine._lease_keeper.failures,
        lost_leases=engine._lease_keeper.lost,
        recovery_pauses=runs.recovery.pauses,
        store_failures=store_failures,
        webhook_deliveries=_add_up(sender.outcomes for sender in tenant.senders),
        trigger_times=tenant.triggers.outcomes,
    )


def _add_up(counters: "Iterable[Counter[str]]") -> Counter[str]:
    """Return the sums; an outcome that has not happened yet stays there as 0, so that its first time is an increase."""
    total = Counter[str]()
    for counter in counters:
        total.update(counter)
    return total
