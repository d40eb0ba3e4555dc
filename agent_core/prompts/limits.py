"""The limits of a run, as its prompt tells them. Pure."""

from collections.abc import Mapping
from typing import Any

from agent_core.words.catalogue import Words


def describe_limits(limits: Mapping[str, Any], words: Words) -> str:
    """Return every limit that is in force, with its number."""
    values = {name: limits.get(name) for name in words.limits}
    parts = [words.limits[name].format(count=value) for name, value in values.items() if value is not None]
    return words.between_limits.join(parts) or words.no_limit
