"""The limits of a run, as its prompt tells them. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from agent_core.words.catalogue import Words

STEP_S: Final = 10
"""Seconds that a parent has left are told in steps of so many: a prompt must not depend on how fast the run was."""


def describe_limits(limits: Mapping[str, Any], words: Words, *, timeout: float | None = None) -> str:
    """Return every limit that is in force, with its number; `timeout` is the seconds that the author has set."""
    values = {name: limits.get(name) for name in words.limits}
    seconds = values.get("seconds")
    if seconds is not None and seconds != timeout:
        values["seconds"] = max(STEP_S, seconds // STEP_S * STEP_S)
    parts = [words.limits[name].format(count=value) for name, value in values.items() if value is not None]
    return words.between_limits.join(parts) or words.no_limit
