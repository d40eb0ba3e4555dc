"""Series: one Prometheus metric of what runs did, with a bound on its combinations of labels."""

from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

PREFIX: Final = "agent_core_"
OTHER: Final = "other"
"""Stands for the labels of what came when there were as many combinations as there may be."""
OF_RUN: Final = ("tenant", "workflow", "agent")
"""The labels of every metric; each may have more."""


class Series:
    """One metric. The first `most` combinations of labels are told apart; the tenant always is."""

    def __init__(self, metric: Counter | Histogram, most: int) -> None:
        self._metric, self._most = metric, most
        self._children: dict[tuple[str, ...], Any] = {}

    @classmethod
    def counter(cls, registry: CollectorRegistry, most: int, name: str, text: str, *more: str) -> "Series":
        """Counts something."""
        return cls(Counter(PREFIX + name, text, (*OF_RUN, *more), registry=registry), most)

    @classmethod
    def histogram(
        cls, registry: CollectorRegistry, most: int, name: str, text: str, *more: str, buckets: tuple[float, ...]
    ) -> "Series":
        """Sums something up, and counts it by size."""
        return cls(Histogram(PREFIX + name, text, (*OF_RUN, *more), registry=registry, buckets=buckets), most)

    def add(self, labels: tuple[str, ...], amount: float = 1) -> None:
        """Add to a counter."""
        self._child(labels).inc(amount)

    def observe(self, labels: tuple[str, ...], value: float | None) -> None:
        """Add a value to a histogram; None is none."""
        if value is not None:
            self._child(labels).observe(value)

    def _child(self, labels: tuple[str, ...]) -> Any:
        child = self._children.get(labels)
        if child is None:
            if len(self._children) >= self._most:
                labels = (labels[0], *(OTHER for _ in labels[1:]))
            child = self._children[labels] = self._metric.labels(*labels)
        return child
