"""The wall clock, as records write it."""

from datetime import UTC, datetime


def now() -> str:
    """Return the time, ISO 8601, UTC, to the millisecond."""
    return write_time(datetime.now(UTC))


def write_time(time: datetime) -> str:
    """Return a time in UTC as records write it."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
