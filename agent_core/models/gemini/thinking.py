"""How much a model thinks, as its generation of models wants it said: by a level or by a budget of tokens. Pure."""

import re
from collections.abc import Collection

from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

CONFIG, LEVEL, BUDGET = "thinkingConfig", "thinkingLevel", "thinkingBudget"
LEVELS: dict[str, tuple[str, ...]] = {
    "none": ("MINIMAL", "LOW"),
    "low": ("LOW", "MEDIUM"),
    "medium": ("MEDIUM", "HIGH"),
    "high": ("HIGH", "MEDIUM"),
}
"""From Gemini 3 on; not every model has every level, so the nearest comes second."""
BUDGETS: dict[str, tuple[int, ...]] = {"none": (0, 128, 512), "low": (1024,), "medium": (8192,), "high": (24576,)}
"""Of Gemini 2.5, the budgets that Google's endpoint of chat completions has for these words; 128 and 512 are the least
of models that always think."""
LEAST = frozenset({0, "MINIMAL"})
_OF_BUDGETS = lazy_compile(r"gemini-2\.5\b")
_ALWAYS_THINKS = lazy_compile(r"-pro\b|gemini-3\.[78]-flash\b|gemini-4-(?:argon|carbon)\b")
"""Models without the least level, and without a budget of 0 (ai.google.dev/gemini-api/docs/thinking)."""
_NEVER_THINKS = lazy_compile(r"gemini-(?:1\b|2\.0\b)")
_NO_MINIMUM = lazy_compile(r"(?<![\w.])0(?!\w|\.\d)|MINIMAL|(?:can'?t|cannot|can not) be (?:disabled|turned off)", re.I)
_UNSUPPORTED = lazy_compile(r"not (?:be )?(?:supported|enabled|available)|unknown name|not support", re.I)
_NAMES = {LEVEL: lazy_compile(r"thinking[_ ]?level", re.I), BUDGET: lazy_compile(r"thinking[_ ]?budget", re.I)}


def choose_thinking(model: str, reasoning: str | None, left_out: Collection[str]) -> Json | None:
    """Return the thinking config for a model; None for its default. `left_out` has what it refuses: the whole config,
    one field, or one value of it."""
    name = model.rpartition("/")[2]
    if reasoning not in LEVELS or CONFIG in left_out or never_thinks(name):
        return None
    levels = [(LEVEL, level) for level in LEVELS[reasoning]]
    budgets = [(BUDGET, budget) for budget in BUDGETS[reasoning]]
    choices: list[tuple[str, str | int]] = [*budgets, *levels] if _OF_BUDGETS.match(name) else [*levels, *budgets]
    if reasoning == "none" and _ALWAYS_THINKS.search(name):
        choices = [each for each in choices if each[1] not in LEAST]
    allowed = (each for each in choices if each[0] not in left_out and f"{each[0]}={each[1]}" not in left_out)
    found = next(allowed, None)
    return None if found is None else {found[0]: found[1]}


def never_thinks(name: str) -> bool:
    """Return whether a model's name is of a generation that does not think."""
    return _NEVER_THINKS.match(name) is not None


def find_refused(thinking: Json, message: str) -> str:
    """Return the word to leave out after a refusal of this thinking config: its value, its field, or all of it."""
    ((field, value),) = thinking.items()
    is_named = _NO_MINIMUM.search(message) is not None if value in LEAST else str(value) in message
    if not is_named and _UNSUPPORTED.search(message):
        return field if _NAMES[field].search(message) else CONFIG
    return f"{field}={value}"
