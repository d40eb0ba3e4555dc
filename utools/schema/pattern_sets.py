"""Which characters a part of a pattern reads, and whether two parts surely read none alike. Pure.

Where they do not, Python's `re` has one way: whatever ends a repetition is told by the next character.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from re import _constants  # type: ignore[attr-defined]  # what `re` itself reads patterns by
from typing import Any, Final

FEW: Final = 512
"""Characters of a range that are looked at one by one."""
MOST_READ: Final = 100
"""Characters of a pattern that are compared with each other."""
CATEGORIES: Final[dict[Any, tuple[str, bool]]] = {
    _constants.CATEGORY_DIGIT: ("d", True),
    _constants.CATEGORY_NOT_DIGIT: ("d", False),
    _constants.CATEGORY_SPACE: ("s", True),
    _constants.CATEGORY_NOT_SPACE: ("s", False),
    _constants.CATEGORY_WORD: ("w", True),
    _constants.CATEGORY_NOT_WORD: ("w", False),
}
BELONGS: Final[dict[str, Callable[[str], bool]]] = {
    "d": str.isdecimal,
    "s": str.isspace,
    "w": lambda char: char.isalnum() or char == "_",
}
REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
OTHERWISE_READ: Final = re.IGNORECASE | re.ASCII | re.LOCALE
"""Flags under which characters are read otherwise than here."""
ALPHABETS: Final = re.ASCII | re.LOCALE | re.UNICODE
"""Flags of which one holds."""


def combine_flags(flags: int, added: int, removed: int) -> int:
    """Return the flags within a part of a pattern that adds some and removes some, as `re` combines them: an alphabet
    takes the place of the one before."""
    kept = flags & ~ALPHABETS if added & ALPHABETS else flags
    return (kept | added) & ~removed


@dataclass(frozen=True, slots=True)
class Chars:
    """Ranges of code points, and categories, each the one or all others; negated: all but these."""

    ranges: tuple[tuple[int, int], ...] = ()
    categories: tuple[tuple[str, bool], ...] = ()
    is_negated: bool = False

    def _has(self, char: str) -> bool:
        code = ord(char)
        return any(low <= code <= high for low, high in self.ranges) or any(
            BELONGS[name](char) is holds for name, holds in self.categories
        )

    def is_apart(self, other: "Chars") -> bool:
        """Return whether surely no character is in both."""
        if self.is_negated and other.is_negated:
            return False
        if other.is_negated:
            return other.is_apart(self)
        if self.is_negated:
            return all(map(self._covers_range, other.ranges)) and all(map(self._covers, other.categories))
        ranges = all(
            self._misses_range(each) and other._misses_range(one) for each in other.ranges for one in self.ranges
        )
        mixed = all(other._misses_range(one) for one in self.ranges) and all(map(self._misses_range, other.ranges))
        return ranges and mixed and all(_apart(one, each) for one in self.categories for each in other.categories)

    def _misses_range(self, bounds: tuple[int, int]) -> bool:
        low, high = bounds
        if any(low <= last and first <= high for first, last in self.ranges):
            return False
        return not self.categories or (high - low < FEW and not any(self._has(chr(n)) for n in range(low, high + 1)))

    def _covers_range(self, bounds: tuple[int, int]) -> bool:
        low, high = bounds
        if any(first <= low and high <= last for first, last in self.ranges):
            return True
        return high - low < FEW and all(self._has(chr(n)) for n in range(low, high + 1))

    def _covers(self, category: tuple[str, bool]) -> bool:
        return category in self.categories or (category == ("d", True) and ("w", True) in self.categories)


def _apart(one: tuple[str, bool], other: tuple[str, bool]) -> bool:
    (name, holds), (other_name, other_holds) = one, other
    if name == other_name:
        return holds is not other_holds
    pairs = {(name, holds), (other_name, other_holds)}
    return pairs in ({("s", True), ("d", True)}, {("s", True), ("w", True)}, {("w", False), ("d", True)})


def read_chars(op: Any, value: Any, flags: int) -> Chars | None:
    """Return the characters that a part of one character reads; None where that is not known here."""
    if flags & OTHERWISE_READ:
        return None
    if op in (_constants.LITERAL, _constants.NOT_LITERAL):
        return Chars(((value, value),), (), op is _constants.NOT_LITERAL)
    if op is _constants.ANY:
        return Chars((), (), True) if flags & re.DOTALL else Chars(((10, 10),), (), True)
    ranges, categories, is_negated = [], [], False
    for kind, each in value:
        if kind is _constants.NEGATE:
            is_negated = True
        elif kind is _constants.LITERAL:
            ranges.append((each, each))
        elif kind is _constants.RANGE:
            ranges.append((each[0], each[1]))
        elif kind is _constants.CATEGORY and each in CATEGORIES:
            categories.append(CATEGORIES[each])
        else:
            return None
    return Chars(tuple(ranges), tuple(categories), is_negated)


@dataclass(slots=True)
class _Part:
    """What a part of a pattern can begin and end with, by the numbers of its characters; whether it can be empty."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    is_empty: bool = True


class _Follow:
    """The characters of a pattern in order, and for each those that may come next (Glushkov 1961)."""

    def __init__(self) -> None:
        self.chars: list[Chars] = []
        self.next: list[list[int]] = []

    def add(self, items: Sequence[Any], flags: int) -> _Part | None:
        """Return a sequence; None where something in it is not known here."""
        whole = _Part()
        for op, value in items:
            part = self._add_item(op, value, flags)
            if part is None:
                return None
            for place in whole.last:
                self.next[place] += part.first
            whole.first += part.first if whole.is_empty else []
            whole.last = [*whole.last, *part.last] if part.is_empty else part.last
            whole.is_empty = whole.is_empty and part.is_empty
        return whole

    def _add_item(self, op: Any, value: Any, flags: int) -> _Part | None:
        if op in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN):
            chars = read_chars(op, value, flags)
            if chars is None or len(self.chars) >= MOST_READ:
                return None
            self.chars.append(chars)
            self.next.append([])
            return _Part([len(self.chars) - 1], [len(self.chars) - 1], False)
        if op in REPEATS:
            least, most, body = value
            part = self.add(list(body), flags)
            if part is not None and part.is_empty and (least, most) != (1, 1):
                return None  # nothing is read in more ways than one
            if part is not None and int(most) > 1:
                for place in part.last:
                    self.next[place] += part.first
            return part if part is None else _Part(part.first, part.last, part.is_empty or least == 0)
        if op is _constants.SUBPATTERN:
            return self.add(list(value[3]), combine_flags(flags, value[1], value[2]))
        if op is _constants.BRANCH:
            parts = [self.add(list(each), flags) for each in value[1]]
            known = [each for each in parts if each is not None]
            is_known = len(known) == len(parts) and sum(each.is_empty for each in known) <= 1
            return _join(known) if is_known else None
        return _Part() if op is _constants.AT else None


def _join(parts: Sequence[_Part]) -> _Part:
    first = [place for each in parts for place in each.first]
    return _Part(first, [place for each in parts for place in each.last], any(each.is_empty for each in parts))


def has_one_way(items: Sequence[Any], flags: int) -> bool:
    """Return whether each next character tells surely where in the sequence it is read: there is one way through it."""
    follow = _Follow()
    whole = follow.add(items, flags)
    if whole is None:
        return False
    return all(_are_apart(follow.chars, places) for places in (whole.first, *follow.next))


def _are_apart(chars: Sequence[Chars], places: Sequence[int]) -> bool:
    """Return whether no two of the places read the same. One that is named twice is reached in two ways."""
    return all(chars[one].is_apart(chars[other]) for one, other in combinations(places, 2))
