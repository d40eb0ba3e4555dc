"""What the vendors' documents say of their models, by name: whether they think, see pictures, and are cached. Pure.

A name that is not listed is not known: newer models as a rule can what their predecessors could, and are asked.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

FIRST_THINKING_CLAUDE: Final = (3, 7)


class Abilities(NamedTuple):
    """None is unknown. `caching`: what a question shares with the one before is read from a cache, for less."""

    reasoning: bool | None = None
    vision: bool | None = None
    caching: bool | None = None


_SEES: Final[Mapping[str, tuple[str, str]]] = {
    "openai": (
        r"gpt-4o|gpt-4\.|gpt-4-turbo|gpt-[5-9]|o1(?!-mini)|o[34]",
        r"gpt-3\.5|gpt-35|gpt-4(?!o|\.|-turbo)|o\d-mini$",
    ),
    "gemini": (r"gemini-", r"gemma-(?:1|2)\b"),
    "anthropic": (r"claude-", r"claude-(?:2|instant)"),
    "qwen": (r"qwen.*-vl|qvq|qwen.*-omni", r"qwen-(?:turbo|plus|max)|qwq"),
    "deepseek": (r"(?!)", r"deepseek-(?:chat|reasoner)"),
}
"""By provider: the names of models that see pictures, and of models that do not; the second outweighs the first."""
_CACHED: Final[Mapping[str, tuple[str, str]]] = {
    "openai": (r"gpt-4o|gpt-4\.1|gpt-[5-9]|o[1-9]", r"gpt-3\.5|gpt-35|gpt-4(?!o|\.)"),
    "gemini": (r"gemini-(?:2\.5|[3-9])", r"gemini-1\.0"),
    "anthropic": (r"claude-(?:3|4|5|opus|sonnet|haiku|fable)", r"claude-(?:2|instant)"),
    "deepseek": (r"deepseek-", r"(?!)"),
    "qwen": (r"qwen-(?:turbo|plus|max|flash)|qwen3", r"(?!)"),
}


def find_abilities(provider: str, model: str, api: str) -> Abilities:
    """Return what is known of a vendor's model. Anthropic's endpoint for chat completions neither caches, nor keeps
    thoughts."""
    name = model.removeprefix("models/").lower()
    caching = False if (provider, api) == ("anthropic", "chat") else _find(_CACHED, provider, name)
    return Abilities(_thinks(provider, name), _find(_SEES, provider, name), caching)


def _find(table: Mapping[str, tuple[str, str]], provider: str, name: str) -> bool | None:
    has, has_not = table.get(provider, ("(?!)", "(?!)"))
    if re.match(has_not, name):
        return False
    return True if re.match(has, name) else None


def _thinks(provider: str, name: str) -> bool | None:
    """Return whether a model thinks, by the rules of its vendor: those of the others are not imported."""
    match provider:
        case "openai":
            from agent_core.models.openai.responses.reasoning import find_family

            family = find_family(name)
            return None if family is None else family != "plain"
        case "anthropic":
            from agent_core.models.anthropic.thinking import read_version

            version = read_version(name)
            return None if version is None else version >= FIRST_THINKING_CLAUDE
        case "gemini":
            from agent_core.models.gemini.thinking import never_thinks

            return False if never_thinks(name) else True if name.startswith("gemini-") else None
        case _:
            return None
