"""The texts of a language, and of the rules that a recorded run follows. Pure."""

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any, Final, TypeAlias

from agent_core.rules import rules_of
from agent_core.words.earlier import English1
from agent_core.words.en import English
from agent_core.words.zh import Chinese

Words: TypeAlias = English
"""The texts of any language: another one is a class that replaces each of these."""
ENGLISH: Final = English()
CHINESE: Final = Chinese()
ENGLISH_1: Final = English1()


def words_in(language: str) -> Words:
    """The texts of a language as a new run has them; English where there are none."""
    return CHINESE if language == CHINESE.language else ENGLISH


def words_of(started: Mapping[str, Any]) -> Words:
    """The texts of a run, from its `run_started` record."""
    version, config = rules_of(started)["texts"], started["config"]
    if version == 1:
        return ENGLISH_1
    words = words_in(config["language"])
    return words_of_plans(words) if version >= 5 and config.get("mode") == "plan" else words


@cache
def words_of_plans(words: Words) -> Words:
    """The texts where a plan is asked for in place of an action."""
    changed = copy(words)
    vars(changed).update(words.in_a_plan)
    return changed
