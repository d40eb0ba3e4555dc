"""The wall clock, as records write it."""

from datetime import UTC, datetime, timedelta


def now(ago: float = 0.0) -> str:
    """Return the time so many seconds ago, ISO 8601, UTC, to the millisecond."""
    return (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
