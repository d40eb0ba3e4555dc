"""cost_of(): how many ways Python's `re` may try for each character of a text, at most. Pure.

The bound is a polynomial in the length of the text. Each repetition whose number is not fixed may end at any place: it
multiplies the ways by the length, unless the next character tells where it ends. A repetition within a repetition, or
of what can be read in two ways, has no other bound.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]  # what `re` itself reads patterns by
from typing import Any, Final

from utools.schema.pattern_sets import combine_flags, has_one_way

SLOW_TOO: Final = "may take for ever with some texts"
ENDLESS: Final = 10**9
REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
ATOMIC: Final = (_constants.POSSESSIVE_REPEAT,)
AHEAD: Final = (_constants.ASSERT, _constants.ASSERT_NOT)
BEGINNINGS: Final = (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING)


@dataclass(frozen=True, slots=True)
class Cost:
    """`factor` times the length of the text to the power of `degree`, in steps."""

    degree: int = 0
    factor: int = 1

    def ways(self, length: int) -> int:
        """Return the steps for each character of a text of this length."""
        return self.factor if self.degree <= 1 else min(self.factor * length ** (self.degree - 1), ENDLESS)

    def is_linear(self, most: int) -> bool:
        """Return whether the steps for each character are bounded, whatever the length."""
        return self.degree <= 1 and self.factor <= most


UNBOUNDED: Final = Cost(64, ENDLESS)
"""Of a pattern that has no such bound."""


@lru_cache(1024)
def cost_of(pattern: str, *, is_search: bool) -> Cost:
    """Return the bound for a search, or for a match of the whole text."""
    tree = _parser.parse(pattern)
    items, flags = list(tree), tree.state.flags
    found = _of_sequence(items, flags)
    is_bound = bool(items) and _is_beginning(items[0]) and not flags & re.MULTILINE
    return Cost(found.degree + 1, found.factor) if is_search and not is_bound else found


def _is_beginning(item: Any) -> bool:
    return item[0] is _constants.AT and item[1] in BEGINNINGS


def _of_sequence(items: Sequence[Any], flags: int) -> Cost:
    """Return the cost: what follows a repetition is tried for each of its ends, unless the next character tells which.
    What is looked at ahead has one end."""
    running, highest, factor = 0, 0, 1
    for index, (op, value) in enumerate(items):
        found = _of_item(op, value, flags)
        ends = found.degree
        if op in REPEATS and found != Cost() and has_one_way(_until_read(items, index), flags):
            found, ends = Cost(1), 0
        factor = min(factor * found.factor, ENDLESS)
        highest = max(highest, running + found.degree)
        if op not in (*AHEAD, *ATOMIC, _constants.ATOMIC_GROUP):
            running += ends
    return UNBOUNDED if factor >= ENDLESS else Cost(max(highest, running), factor)


def _until_read(items: Sequence[Any], index: int) -> list[Any]:
    """Return a part with what comes behind it, up to what surely reads something."""
    end = index + 1
    while end < len(items) and _may_be_empty(*items[end]):
        end += 1
    return list(items[index : end + 1])


def _may_be_empty(op: Any, value: Any) -> bool:
    if op in (*REPEATS, *ATOMIC):
        return bool(value[0] == 0) or all(_may_be_empty(*each) for each in value[2])
    if op is _constants.SUBPATTERN:
        return all(_may_be_empty(*each) for each in value[3])
    return op not in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)


def _of_item(op: Any, value: Any, flags: int) -> Cost:
    if op in REPEATS or op in ATOMIC:
        least, most, body = value
        return _of_repeat(least, most, body, flags)
    if op is _constants.SUBPATTERN:
        return _of_sequence(list(value[3]), combine_flags(flags, value[1], value[2]))
    if op is _constants.ATOMIC_GROUP:
        return _of_sequence(list(value), flags)
    if op in AHEAD:
        return _of_sequence(list(value[1]), flags)
    if op is _constants.BRANCH:
        branches = [_of_sequence(list(each), flags) for each in value[1]]
        return Cost(max(each.degree for each in branches), min(sum(each.factor for each in branches), ENDLESS))
    if op is _constants.GROUPREF_EXISTS:
        return UNBOUNDED
    return Cost(1) if op is _constants.GROUPREF else Cost()


def _of_repeat(least: int, most: int, body: Any, flags: int) -> Cost:
    inner = _of_sequence(list(body), flags)
    if most <= 1:
        return Cost(inner.degree, inner.factor * (1 if least == most else 2))
    if inner != Cost():
        return UNBOUNDED
    if int(body.getwidth()[0]) == 0:
        return UNBOUNDED  # it may be read as often as one likes
    return Cost() if least == most else Cost(1)
