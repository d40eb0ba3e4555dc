"""Times as a person writes them on the command line: a date, a time, or an age."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import typer

_AGE: Final = re.compile(r"(\d+)([dhm])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def moment(option: str, text: str, now: datetime) -> datetime:
    """The time that `text` stands for, in UTC unless it says otherwise. BadParameter, naming it, for anything else."""
    try:
        if age := _AGE.fullmatch(text):
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        return _aware(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        told = "write a date or a time, such as 2026-01-31 or 2026-01-31T12:00, or an age, such as 7d, 12h or 30m"
        raise typer.BadParameter(f"{option} {text!r}: {told}") from None


def recorded(at: str) -> datetime | None:
    """A time as records and the index of runs hold it; None for what is none."""
    try:
        return _aware(datetime.fromisoformat(at))
    except ValueError:
        return None


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
