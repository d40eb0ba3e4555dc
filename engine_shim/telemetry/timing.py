"""How long operations took, and when they ended, by what their records say."""

from datetime import datetime
from typing import Final

from engine_shim.telemetry.operations import Ended

SECOND: Final = 10**9
"""Nanoseconds, in which OpenTelemetry gives times."""


def nanoseconds_of(at: str) -> int:
    """Return a time of a record in nanoseconds since 1970."""
    return round(datetime.fromisoformat(at).timestamp() * 1000) * (SECOND // 1000)


def duration_of(ended: Ended) -> float | None:
    """Return how many seconds an operation took, waiting for persons included; None where no record says."""
    if ended.seconds is not None:
        return ended.seconds
    began = ended.operation.began
    if began is None or ended.at is None:
        return None
    return max(0, nanoseconds_of(ended.at) - nanoseconds_of(began)) / SECOND
