"""Times and ages as a person writes them on the command line."""

from datetime import UTC, datetime, timedelta
from typing import Final

import typer

from utools.lazy_pattern import lazy_compile

_AGE: Final = lazy_compile(r"(\d+)([dhm])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def read_since(text: str | None) -> datetime | None:
    """Return the time that --since means, in UTC unless it says otherwise; None without one. BadParameter for another
    text."""
    if text is None:
        return None
    try:
        return datetime.now(UTC) - _parse_age(text) if _AGE.fullmatch(text) else _in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        message = "write a date or a time, such as 2026-01-31 or 2026-01-31T12:00, or an age, such as 7d, 12h or 30m"
        raise typer.BadParameter(f"--since {text!r}: {message}") from None


def read_age(text: str) -> timedelta:
    """Return the age that --older-than means. BadParameter for another text."""
    try:
        return _parse_age(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"--older-than {text!r}: write an age, such as 30d, 12h or 30m") from None


def _parse_age(text: str) -> timedelta:
    match = _AGE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _in_utc(at: datetime) -> datetime:
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
