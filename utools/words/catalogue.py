"""The texts of a language: the English ones stand in a class, those of another language in a file beside it. Pure."""

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from utools.words.en import English

Words: TypeAlias = English
"""The texts of any language."""
W = TypeVar("W", bound=English)
ENGLISH: Final = English()
TRANSLATED: Final = ("zh",)
"""The languages that have a file in each room of texts; a model of any other one reads English."""


@cache
def read_language(room: str, language: str) -> Any:
    """Return what the file of a language holds in a room of texts, a package such as `utools.words`."""
    from importlib.resources import files  # not needed where everything is English

    import orjson

    return orjson.loads(files(room).joinpath(f"{language}.json").read_bytes())


def replace_texts(words: W, texts: Mapping[str, Any]) -> W:
    """Return texts with some of them in other words, by name."""
    changed = copy(words)
    vars(changed).update(texts)
    return changed


@cache
def words_in(language: str) -> Words:
    """Return the texts of a language; English where there are none."""
    if language not in TRANSLATED:
        return ENGLISH
    return replace_texts(ENGLISH, {**read_language("utools.words", language)["words"], "language": language})
