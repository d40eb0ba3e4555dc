"""TenantState: how the runs of a tenant stand now, and what has failed in the background, as Prometheus metrics.

The extra `web` brings prometheus-client.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from engine_shim.telemetry.series import PREFIX

GAUGES: Final = {
    "open_runs": "Runs that are driven or wait for their turn.",
    "waiting_runs": "Runs that wait for a person, a signal or a time.",
    "paused_runs": "Runs that are paused.",
    "overdue_runs": "Waiting runs whose time came more than a minute ago.",
    "queued_runs": "Runs of this process that wait for their turn to be driven.",
    "orphaned_runs": "Unfinished runs without a driver, as this process saw last.",
    "oldest_orphan_seconds": "For how long this process has seen one of them without a driver.",
}
COUNTERS: Final = {
    "lease_renewal_failures": "Attempts of this process to renew its leases that failed.",
    "lost_leases": "Runs that another process has taken over from this one.",
    "recovery_pauses": "Runs that were paused because they had ended several servers.",
    "store_failures": "Background work of this process that failed because its store was away.",
}
OUTCOMES: Final = {
    "webhook_deliveries": "Attempts to deliver an event: delivered, postponed or given_up.",
    "trigger_times": "Scheduled times of triggers: started, skipped or failed.",
}


@dataclass(frozen=True, slots=True)
class TenantState:
    """What the tables above describe, by name; the last two count by outcome."""

    open_runs: int = 0
    waiting_runs: int = 0
    paused_runs: int = 0
    overdue_runs: int = 0
    queued_runs: int = 0
    orphaned_runs: int = 0
    oldest_orphan_seconds: float = 0.0
    lease_renewal_failures: int = 0
    lost_leases: int = 0
    recovery_pauses: int = 0
    store_failures: int = 0
    webhook_deliveries: Mapping[str, int] = field(default_factory=dict)
    trigger_times: Mapping[str, int] = field(default_factory=dict)


def list_metrics(states: Mapping[str, TenantState]) -> Iterator[Metric]:
    """Yield the metrics of the tenants by name."""
    for family, table in ((GaugeMetricFamily, GAUGES), (CounterMetricFamily, COUNTERS)):
        for name, text in table.items():
            metric = family(f"{PREFIX}{name}", text, labels=["tenant"])
            for tenant, state in states.items():
                metric.add_metric([tenant], getattr(state, name))
            yield metric
    for name, text in OUTCOMES.items():
        counter = CounterMetricFamily(f"{PREFIX}{name}", text, labels=["tenant", "outcome"])
        for tenant, state in states.items():
            for outcome, number in getattr(state, name).items():
                counter.add_metric([tenant, outcome], number)
        yield counter
