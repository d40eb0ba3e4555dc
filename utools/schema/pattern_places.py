"""Places: a pattern as the places in it that a text may have led to, all followed at once. Pure.

A single character of the pattern, and what holds at a position such as `^` or `\\b`, is left to `re`, so that classes,
flags and line ends are read as it reads them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]  # what `re` itself reads patterns by
from typing import Any, Final

from utools.schema.pattern_sets import combine_flags

MOST_PLACES: Final = 2000
MOST_KEPT: Final = 10_000
"""Sets and steps that are remembered; then all are forgotten."""
CHARACTERS: Final = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
AHEAD: Final = (_constants.ASSERT, _constants.ASSERT_NOT)
Holds = Callable[[str], Callable[[int], bool]]
"""For a text, whether something holds at a position of it."""


class Unsupported(Exception):
    """A pattern that cannot be followed in this way."""


Sets = frozenset[int]


class _Memory:
    """The sets of places that texts have led to, by number, and what leads from each to which. Threads may share it."""

    def __init__(self) -> None:
        self._numbers, self._next = dict[Sets, int](), count()
        self.sets: dict[int, Sets] = {}
        self.closed: dict[tuple[int, tuple[bool, ...]], int] = {}
        self.moves: dict[tuple[int, str], int] = {}

    def number(self, places: Sets) -> int:
        """Return the number of a set."""
        found = self._numbers.get(places)
        if found is None:
            new = next(self._next)
            self.sets[new] = places  # before anybody can be given its number
            found = self._numbers.setdefault(places, new)
        return found

    @property
    def is_full(self) -> bool:
        return len(self.sets) + len(self.moves) > MOST_KEPT


@dataclass(slots=True)
class Places:
    """Places by number: `on` are those behind a character, `free` those that nothing has to be read for, `if_holds`
    those behind something that has to hold at the position. A text has matched where it leads to `end`."""

    is_backward: bool = False
    on: list[list[tuple[re.Pattern[str], int]]] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    if_holds: list[list[tuple[int, int]]] = field(default_factory=list)
    conditions: list[Holds] = field(default_factory=list)
    start: int = 0
    end: int = 0
    _memory: _Memory = field(default_factory=_Memory)

    def add(self) -> int:
        """Return one more place. Unsupported where there are too many."""
        if len(self.on) >= MOST_PLACES:
            raise Unsupported(f"it has more than {MOST_PLACES:,} places; let it repeat less")
        self.on.append([])
        self.free.append([])
        self.if_holds.append([])
        return len(self.on) - 1

    def lead_to_end(self, text: str, *, is_whole: bool) -> bool:
        """Return whether the text matches as a whole, or some part of it."""
        if is_whole:
            *_, (_, has_ended) = self._follow(text, everywhere=False)
            return has_ended
        return any(has_ended for _, has_ended in self._follow(text, everywhere=True))

    def find_positions(self, text: str) -> list[bool]:
        """For each position, whether a match ends there, wherever it begins; a backward one begins behind it."""
        found = [False] * (len(text) + 1)
        for position, has_ended in self._follow(text, everywhere=True):
            found[position] = has_ended
        return found

    def _follow(self, text: str, *, everywhere: bool) -> Iterator[tuple[int, bool]]:
        """Yield each position, in the order in which it is come to, and whether the text has led to the end there;
        `everywhere` a match may begin."""
        conditions = [each(text) for each in self.conditions]
        order = range(len(text), -1, -1) if self.is_backward else range(len(text) + 1)
        memory, begin = self._memory, frozenset({self.start})
        current = memory.number(begin)
        for position in order:
            closed = self._close(memory, current, tuple(each(position) for each in conditions))
            places = memory.sets[closed]
            yield position, self.end in places
            if position == order[-1]:
                return
            if memory.is_full:
                self._memory = memory = _Memory()
                closed = memory.number(places)
            current = self._move(memory, closed, text[position - self.is_backward])
            if everywhere:
                current = memory.number(memory.sets[current] | begin)

    def _close(self, memory: _Memory, number: int, context: tuple[bool, ...]) -> int:
        """Return the places with all that they lead to where nothing is read."""
        closed = memory.closed.get((number, context))
        if closed is None:
            waiting, found = list(memory.sets[number]), set(memory.sets[number])
            while waiting:
                place = waiting.pop()
                held = (target for at, target in self.if_holds[place] if context[at])
                for target in (*self.free[place], *held):
                    if target not in found:
                        found.add(target)
                        waiting.append(target)
            closed = memory.closed[number, context] = memory.number(frozenset(found))
        return closed

    def _move(self, memory: _Memory, number: int, char: str) -> int:
        """Return where a character leads to."""
        found = memory.moves.get((number, char))
        if found is None:
            steps = (step for place in memory.sets[number] for step in self.on[place])
            targets = frozenset(target for reads, target in steps if reads.fullmatch(char))
            found = memory.moves[number, char] = memory.number(targets)
        return found


def find_places(pattern: str) -> Places:
    """Return the places of a pattern. Unsupported for one that refers back, and for one that is too large."""
    tree = _parser.parse(pattern)
    return _build(list(tree), tree.state.flags, is_backward=False)


def _build(items: Sequence[Any], flags: int, *, is_backward: bool) -> Places:
    places = Places(is_backward)
    places.start = places.add()
    places.end = _Builder(places).add_sequence(items, flags, places.start)
    return places


@dataclass(frozen=True, slots=True)
class _Builder:
    """Adds parts of a pattern behind a place; each gives the place that is behind the part."""

    places: Places

    def add_sequence(self, items: Sequence[Any], flags: int, begin: int) -> int:
        for op, value in reversed(items) if self.places.is_backward else items:
            begin = self._add(op, value, flags, begin)
        return begin

    def _add(self, op: Any, value: Any, flags: int, begin: int) -> int:
        if op in CHARACTERS:
            end = self.places.add()
            self.places.on[begin].append((_compile(op, value, flags), end))
            return end
        if op in REPEATS:
            least, most, body = value
            return self._add_repeat(least, most, list(body), flags, begin)
        if op is _constants.SUBPATTERN:
            _, added, removed, body = value
            return self.add_sequence(list(body), combine_flags(flags, added, removed), begin)
        if op is _constants.BRANCH:
            end = self.places.add()
            for branch in value[1]:
                self.places.free[self.add_sequence(list(branch), flags, begin)].append(end)
            return end
        if op is _constants.AT:
            return self._add_condition(_at_position(_compile(op, value, flags)), begin)
        if op in AHEAD:
            return self._add_condition(_look(op, value, flags), begin)
        raise Unsupported("it has a backreference, or an atomic or possessive part; write it without")

    def _add_repeat(self, least: int, most: Any, items: list[Any], flags: int, begin: int) -> int:
        for _ in range(least):
            begin = self.add_sequence(items, flags, begin)
        if most is _constants.MAXREPEAT:
            loop, end = self.places.add(), self.places.add()
            self.places.free[begin].append(loop)
            self.places.free[self.add_sequence(items, flags, loop)].append(loop)
            self.places.free[loop].append(end)
            return end
        end = self.places.add()
        for _ in range(int(most) - least):
            self.places.free[begin].append(end)
            begin = self.add_sequence(items, flags, begin)
        self.places.free[begin].append(end)
        return end

    def _add_condition(self, holds: Holds, begin: int) -> int:
        end = self.places.add()
        self.places.if_holds[begin].append((len(self.places.conditions), end))
        self.places.conditions.append(holds)
        return end


def _compile(op: Any, value: Any, flags: int) -> re.Pattern[str]:
    """Return a part of a pattern by itself."""
    state = _parser.State()
    state.flags = flags
    found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, [(op, value)]))
    return found


def _at_position(compiled: re.Pattern[str]) -> Holds:
    return lambda text: lambda position: compiled.match(text, position) is not None


def _look(op: Any, value: Any, flags: int) -> Holds:
    """Return what is ahead of a position is read from the text's end towards it; what is behind it, from the
    beginning."""
    direction, body = value
    places, is_wanted = _build(list(body), flags, is_backward=direction > 0), op is _constants.ASSERT

    def holds(text: str) -> Callable[[int], bool]:
        found = places.find_positions(text)
        return lambda position: found[position] is is_wanted

    return holds
