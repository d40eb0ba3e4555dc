"""The wall clock, as records write it."""

from datetime import UTC, datetime


def now() -> str:
    """Return the time, ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
