"""The texts of a language. Pure."""

from typing import Final, TypeAlias

from utools.words.en import English
from utools.words.zh import Chinese

Words: TypeAlias = English
"""The texts of any language: another one is a class that replaces each of these."""
ENGLISH: Final = English()
CHINESE: Final = Chinese()


def words_in(language: str) -> Words:
    """The texts of a language; English where there are none."""
    return CHINESE if language == CHINESE.language else ENGLISH
