"""Patterns of a host: what it masks besides keys, such as the numbers of insurances."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from utools.lazy_pattern import lazy_compile
from utools.secrets.finds import Find
from utools.secrets.key_formats import NAMES

NAME = lazy_compile(r"[a-z][a-z0-9_]{0,63}")
SECONDS = 0.1
"""How long a pattern may take for a line. A line that takes longer is masked as a whole."""
SIZE = 2000
"""Characters of the texts with which a pattern is tried before it is taken."""
_LINE = lazy_compile(r"[^\r\n]+")


def check_patterns(patterns: Mapping[str, str]) -> dict[str, str]:
    """Return the patterns by name; ValueError for one that cannot be used."""
    return {check_name(name): check_pattern(pattern) for name, pattern in patterns.items()}


def check_name(name: str) -> str:
    """Return the name that a mark will have; ValueError for one that is taken or invalid."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a mark: use 1 to 64 of a-z, 0-9 and _, the first a letter")
    if name in NAMES:
        raise ValueError(f"{name!r} is the name of a key format; choose another")
    return name


@lru_cache(maxsize=256)
def check_pattern(pattern: str) -> str:
    """Return the pattern; ValueError for one that cannot be read, that fits an empty text, and that would take for
    ever."""
    compiled = _compile(pattern)
    if compiled.search("") or compiled.fullmatch(""):
        raise ValueError(f"the pattern {pattern!r} fits an empty text, and so every text")
    for text in _trials(pattern):
        try:
            if any(found.start() == found.end() for found in compiled.finditer(text, timeout=SECONDS)):
                raise ValueError(f"the pattern {pattern!r} fits an empty part of a text, and so every text")
        except TimeoutError:
            how = f"takes more than {SECONDS:g} s for {SIZE:,} characters; write it without nested repetition"
            raise ValueError(f"the pattern {pattern!r} {how}") from None
    return pattern


def find_patterns(text: str, patterns: Mapping[str, str]) -> Iterator[Find]:
    """Yield what fits these patterns in the lines of a text."""
    for name, pattern in patterns.items():
        compiled = _compile(pattern)
        for line in _LINE.finditer(text):
            try:
                spans = [each.span() for each in compiled.finditer(text, *line.span(), timeout=SECONDS)]
            except TimeoutError:
                spans = [line.span()]
            yield from (Find(start, end, name) for start, end in spans if start < end)


def _trials(pattern: str) -> Iterator[str]:
    """Texts for which a pattern with a repetition in a repetition does not end in useful time."""
    own = "".join(dict.fromkeys(char for char in pattern if char.isalnum()))  # a literal that is absent ends a search
    for sign in list(dict.fromkeys(f"aA0- {own}"))[:24]:
        yield f"{sign * SIZE}!{own}"
    for pair in ("a ", "0-", "A0", "a.", "0 "):
        yield f"{pair * (SIZE // 2)}!{own}"


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    import regex  # slow to load, and few hosts have patterns

    try:
        return regex.compile(pattern, regex.VERSION0)
    except regex.error as error:
        raise ValueError(f"the pattern {pattern!r} cannot be read: {error}") from None
