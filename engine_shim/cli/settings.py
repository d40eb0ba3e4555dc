"""read_settings(): the values of --set and its like."""

from collections.abc import Sequence
from typing import Any

import typer

from utools.json_text import parse_json

LISTS = frozenset({"allowed_tools", "deny_tools", "examples", "fallback_models", "stop", "trusted_text"})
"""Keys of an agent that hold lists."""


def read_settings(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Values by key, of `key=value` words, each once. A value that is not JSON is a text, or the one text of a list."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"{option} {pair!r}: write key=value")
        if key in settings:
            raise typer.BadParameter(f"{option} {key} is given twice")
        try:
            settings[key] = parse_json(value)
        except ValueError:
            settings[key] = [value] if key in LISTS else value
    return settings
