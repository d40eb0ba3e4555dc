"""The texts of a language, and of the rules that a recorded run follows. Pure."""

from collections.abc import Mapping
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
    if rules_of(started)["texts"] == 1:
        return ENGLISH_1
    return words_in(started["config"]["language"])
