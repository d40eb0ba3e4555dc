"""How much a model thinks, in the words of each vendor's endpoint for chat completions. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_core.models.endpoint.answer import Refusal
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

Level = str
"""none, low, medium or high."""
BUDGETS: Final = {"low": 2_048, "medium": 8_192, "high": 16_384}
"""Tokens of thought, where a vendor has no words for the levels."""
REASONING: Final = "reasoning"
"""The word for thinking that an endpoint refuses to be told of."""
_OF_THINKING: Final = lazy_compile(r"reasoning(?:_effort|\.effort)?|enable_thinking|thinking(?:_budget|_config)?", re.I)
_NOT_BESIDE_BUDGET: Final = ("temperature", "top_p")
_FIELDS: Final = ("reasoning_effort", "reasoning", "enable_thinking", "thinking_budget", "thinking")


def write_effort(level: Level) -> Json:
    return {"reasoning_effort": level}


def write_routed_effort(level: Level) -> Json:
    return {"reasoning": {"effort": level}}


def write_switch(level: Level) -> Json:
    """Qwen's: thinking is on or off, with a budget."""
    if level == "none":
        return {"enable_thinking": False}
    return {"enable_thinking": True, "thinking_budget": BUDGETS[level]}


def write_kind(level: Level) -> Json:
    """DeepSeek's: thinking is on or off."""
    return {"thinking": {"type": "disabled" if level == "none" else "enabled"}}


def write_budget(level: Level) -> Json:
    """Anthropic's: thinking with a budget; without it there is none."""
    return {} if level == "none" else {"thinking": {"type": "enabled", "budget_tokens": BUDGETS[level]}}


WRITERS: Final[Mapping[str, Callable[[Level], Json]]] = {
    "effort": write_effort,
    "routed effort": write_routed_effort,
    "switch": write_switch,
    "kind": write_kind,
    "budget": write_budget,
}
"""By the endpoint's manner, which is one of its capabilities."""


def write_reasoning(level: Any, manner: str) -> Json:
    """Return the fields that say how much a model thinks; nothing where that is its vendor's to say."""
    return {} if level is None else WRITERS[manner](level)


def settle_budget(sent: Json, limit: str) -> Json:
    """Return the options as Anthropic takes them beside a budget of thoughts: without sampling, and with a `limit` of
    the reply that is larger."""
    thinking = sent.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if type(budget) is not int:
        return sent
    settled = {name: value for name, value in sent.items() if name not in _NOT_BESIDE_BUDGET}
    given = settled.get(limit)
    return {**settled, limit: given + budget} if type(given) is int and given <= budget else settled


def is_reasoning_refused(sent: Mapping[str, Any], refusal: Refusal) -> bool:
    """Return whether a refusal is about the fields that say how much the model thinks."""
    if not any(name in sent for name in _FIELDS):
        return False
    return refusal.param in _FIELDS or _OF_THINKING.search(refusal.message) is not None
