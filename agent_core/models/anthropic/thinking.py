"""How much a model thinks, in the forms that models of different years take. Pure."""

from collections.abc import Set
from typing import Any, NamedTuple

from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384}
"""Tokens of manual thinking, at most half of the reply's."""
MIN_BUDGET = 1_024
FIRST_ADAPTIVE, FIRST_BY_DEFAULT = (4, 6), (5, 0)
"""The first versions that decide by themselves how much they think, and that think without being asked to."""
OFF = ("disabled", "between_tools")
ALL = "thinking"
"""The word for thinking that is left out whatever its form."""
_VERSION = lazy_compile(r"claude.*?(?<![\d.])(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])")


class Thinking(NamedTuple):
    """The fields of a request; None for one that is not sent."""

    thinking: Json | None = None
    effort: str | None = None


def choose_thinking(model: str, level: Any, left_out: Set[str], limit: int) -> Thinking:
    """Return how the model is asked to think, in the first form that is not left out; `limit` is that of the reply.

    Models that cannot be kept from thinking think as little as they can.
    """
    if level == "none":
        return _choose_off(model, left_out)
    if level not in BUDGETS or ALL in left_out:
        return Thinking()
    version = read_version(model)
    is_adaptive = version is not None and version >= FIRST_ADAPTIVE
    for form in ("adaptive", "enabled") if is_adaptive else ("enabled", "adaptive"):
        if word(form) not in left_out and form == "adaptive":
            return Thinking({"type": form}, None if "effort" in left_out else level)
        if word(form) not in left_out:
            return Thinking({"type": form, "budget_tokens": max(MIN_BUDGET, min(BUDGETS[level], limit // 2))})
    return Thinking()


def word(form: str) -> str:
    """Return the word by which a form that is refused is remembered."""
    return f"{ALL}.{form}"


def is_on(thinking: Any) -> bool:
    return isinstance(thinking, dict) and thinking.get("type") in ("adaptive", "enabled")


def read_version(model: str) -> tuple[int, int] | None:
    """Return the version in a model's name: `claude-opus-4-6` and `claude-4.6-opus` are (4, 6); None without one."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def _choose_off(model: str, left_out: Set[str]) -> Thinking:
    version = read_version(model)
    if ALL in left_out or (version is not None and version < FIRST_BY_DEFAULT):
        return Thinking()
    for form in OFF:
        if word(form) not in left_out:
            return Thinking({"type": form})
    return Thinking(effort=None if "effort" in left_out else "low")
