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
        return now - _age(text) if _AGE.fullmatch(text) else _aware(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        told = "write a date or a time, such as 2026-01-31 or 2026-01-31T12:00, or an age, such as 7d, 12h or 30m"
        raise typer.BadParameter(f"{option} {text!r}: {told}") from None


def age(option: str, text: str) -> timedelta:
    """The age that `text` stands for. BadParameter, naming it, for anything else."""
    try:
        return _age(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{option} {text!r}: write an age, such as 30d, 12h or 30m") from None


def recorded(at: str) -> datetime | None:
    """A time as records and the index of runs hold it; None for what is none."""
    try:
        return _aware(datetime.fromisoformat(at))
    except ValueError:
        return None


def _age(text: str) -> timedelta:
    match = _AGE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
