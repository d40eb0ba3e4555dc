"""The limits of a run, as its prompt tells them. Pure."""

from collections.abc import Mapping
from typing import Any

UNITS = {
    "steps": {"en": "{:d} replies", "zh": "{:d} 次回复"},
    "tool_calls": {"en": "{:d} calls", "zh": "{:d} 次调用"},
    "seconds": {"en": "{:.0f} seconds", "zh": "{:.0f} 秒"},
    "tokens": {"en": "{:d} tokens", "zh": "{:d} 个 token"},
    "cost": {"en": "{:g} USD", "zh": "{:g} 美元"},
}
BETWEEN = {"en": ", ", "zh": "、"}
NONE = {"en": "no limit", "zh": "无限制"}


def describe_limits(limits: Mapping[str, Any], language: str) -> str:
    """Every limit that is in force, with its number."""
    values = {name: limits.get(name) for name in UNITS}
    parts = [UNITS[name][language].format(value) for name, value in values.items() if value is not None]
    return BETWEEN[language].join(parts) or NONE[language]
