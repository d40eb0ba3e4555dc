"""The texts of a language, and of the rules that a recorded run follows. Pure."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from agent_core.rules import rules_of
from agent_core.words.earlier import English1
from agent_core.words.en import English
from utools.words.catalogue import TRANSLATED, read_language, replace_texts

Words: TypeAlias = English
"""The texts of any language."""
ENGLISH: Final = English()
ENGLISH_1: Final = English1()


@cache
def words_in(language: str) -> Words:
    """Return the texts of a language as a new run has them; English where there are none."""
    if language not in TRANSLATED:
        return ENGLISH
    shared, own = read_language("utools.words", language)["words"], read_language("agent_core.words", language)
    return replace_texts(ENGLISH, {**shared, **own, "language": language})


def words_of(started: Mapping[str, Any]) -> Words:
    """Return the texts of a run, from its `run_started` record."""
    version, config = rules_of(started)["texts"], started["config"]
    if version == 1:
        return ENGLISH_1
    words = words_in(config["language"])
    return words_of_plans(words) if version >= 5 and config.get("mode") == "plan" else words


@cache
def words_of_plans(words: Words) -> Words:
    """Return the texts where a plan is asked for in place of an action."""
    return replace_texts(words, words.in_a_plan)


@cache
def words_of_arguments(words: Words) -> Words:
    """Return the texts for the arguments of a native call, which are sent again by a call."""
    return replace_texts(words, words.of_arguments)


@cache
def words_of_answers(words: Words) -> Words:
    """Return the texts for an answer that is the JSON of its schema alone."""
    return replace_texts(words, words.of_answers)
