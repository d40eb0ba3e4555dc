"""Patterns matched in time that grows with the text alone, as Python's `re` reads them. Pure.

`re` tries one way after another, and a pattern like `(a+)+$` has more ways than anybody can wait for. So it is asked
only where the ways are few: a bound by the pattern and the length of the text says when. Otherwise all ways are
followed at once (Thompson 1968), and the sets of places that a text leads to are remembered. Whether a text matches is
the same by both, and it is all that a schema asks.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from utools.schema.pattern_cost import SLOW_TOO, Cost, cost_of
from utools.schema.pattern_places import Places, Unsupported, find_places
from utools.schema.shape import walk

MOST_WAYS: Final = 64
"""For each character of a text, the steps that `re` may take."""
KEPT: Final = 1024


class LinearPattern:
    """A pattern that Python reads."""

    def __init__(self, pattern: str) -> None:
        self._compiled = re.compile(pattern)
        self._search, self._whole = cost_of(pattern, is_search=True), cost_of(pattern, is_search=False)
        self._places: Places | None = None
        self.flaw: str | None = None
        if not (self._search.is_linear(MOST_WAYS) and self._whole.is_linear(MOST_WAYS)):
            try:
                self._places = find_places(pattern)
            except Unsupported as error:
                self.flaw = str(error)

    def search(self, text: str) -> bool:
        """Return whether a part of the text matches."""
        return self._matches(text, self._search, self._compiled.search, is_whole=False)

    def fullmatch(self, text: str) -> bool:
        """Return whether the whole text matches."""
        return self._matches(text, self._whole, self._compiled.fullmatch, is_whole=True)

    def _matches(self, text: str, cost: Cost, match: Callable[[str], object], *, is_whole: bool) -> bool:
        if self._places is None or cost.ways(len(text)) <= MOST_WAYS:
            return match(text) is not None
        return self._places.lead_to_end(text, is_whole=is_whole)


@lru_cache(KEPT)
def linear(pattern: str) -> LinearPattern:
    """Return the pattern. `re.error` for one that Python cannot read."""
    return LinearPattern(pattern)


def explain_slow(pattern: str) -> str | None:
    """Return why no schema that is loaded may have a pattern: its time has no bound. None for an allowed one."""
    try:
        flaw = linear(pattern).flaw
    except (re.error, RecursionError, OverflowError):
        return None  # told elsewhere
    return None if flaw is None else f"the pattern {pattern!r} {SLOW_TOO}: {flaw}"


def is_linear(pattern: str) -> bool:
    """Return whether a schema that is loaded may have the pattern, which Python reads."""
    return explain_slow(pattern) is None


def find_slow_pattern(schema: dict[str, Any]) -> tuple[str, str] | None:
    """Return the place of the first pattern in a sound schema that it may not have, as a JSON pointer, and why."""
    for pointer, each in walk(schema):
        names = each.get("patternProperties") or {}
        named = [(f"{pointer}/patternProperties", name) for name in names]
        if isinstance(each.get("pattern"), str):
            named.append((f"{pointer}/pattern", each["pattern"]))
        for where, pattern in named:
            if (why := explain_slow(pattern)) is not None:
                return where, why
    return None
