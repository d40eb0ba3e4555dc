"""Lines: where a value stands in a text, of which only the lines that may hold it are read. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import accumulate

from agent_core.origins.amounts import COUNTED, LONGEST_NUMBER
from agent_core.origins.dates import Date
from agent_core.origins.kinds import READERS, Kind, Probe
from utools.lazy_pattern import lazy_compile

_FIGURE = lazy_compile(r"\d")
_GAPS = "[.,'’ \u00a0\u202f]"
"""What may part the figures of a number."""
A_LINE = 100
"""How many more characters could be read in the time that a line takes by itself."""
Values = dict[object, list[int]]
"""Where each value of a kind begins, by its canonical form."""


class Lines:
    """A text whose values are read a line at a time: none reaches across the end of one, nor does what tells it.
    `small` is the text in small letters."""

    def __init__(self, text: str, small: str) -> None:
        self._text, self._small = text, small
        self._starts = [*accumulate([len(line) + 1 for line in text.split("\n")], initial=0)]
        self._found: dict[tuple[Kind, int | None], Values] = {}

    def find(self, probe: Probe) -> Iterator[int]:
        """Yield where a value begins that is read out of texts."""
        lines = self._list_candidates(probe)
        if (probe.kind, None) in self._found or self._is_most(lines):
            lines = [None]
        for form in probe.forms():
            for line in lines:
                start = 0 if line is None else self._starts[line]
                yield from (start + at for at in self._read(probe.kind, line).get(form, ()))

    def _list_candidates(self, probe: Probe) -> Sequence[int | None]:
        """Return the numbers of the lines that a value may stand in; None stands for all of the text."""
        if isinstance(probe.wanted, Decimal):
            figures = _compile_number(probe.wanted)
            return sorted({*(self._find_figures(figures) if figures else ()), *self._counted})
        if isinstance(probe.wanted, Date):
            return [*self._find_figures(_compile_figures(str(probe.wanted.day)))]
        return [None] if probe.hint is None else [*self._find_hint(probe.hint)]

    def _is_most(self, lines: Sequence[int | None]) -> bool:
        """Return whether it is quicker to read all of the text."""
        starts = self._starts
        return sum([starts[each + 1] - starts[each] + A_LINE for each in lines if each is not None]) > len(self._text)

    def _find_figures(self, figures: re.Pattern[str]) -> Iterator[int]:
        end = 0
        while found := figures.search(self._in_ascii, end):
            line = bisect_right(self._starts, found.start()) - 1
            yield line
            end = self._starts[line + 1] - 1

    def _find_hint(self, hint: str) -> Iterator[int]:
        at = self._small.find(hint)
        while at >= 0:
            line = bisect_right(self._starts, at) - 1
            yield line
            at = self._small.find(hint, self._starts[line + 1] - 1)

    def _read(self, kind: Kind, line: int | None) -> Values:
        found = self._found.get((kind, line))
        if found is None:
            found = self._found[kind, line] = {}
            for start, value in READERS[kind](self._text if line is None else self._cut_line(line)):
                found.setdefault(value, []).append(start)
        return found

    def _cut_line(self, line: int) -> str:
        return self._text[self._starts[line] : self._starts[line + 1] - 1]

    @cached_property
    def _in_ascii(self) -> str:
        """The text with the figures 0 to 9 in place of those of other scripts."""
        return self._text if self._text.isascii() else _FIGURE.sub(lambda found: str(int(found[0])), self._text)

    @cached_property
    def _counted(self) -> set[int]:
        """The lines in which a number may have other figures than it shows, as two dozen has."""
        return {bisect_right(self._starts, found.start()) - 1 for found in COUNTED.finditer(self._text)}


@lru_cache(1024)
def _compile_number(number: Decimal) -> re.Pattern[str] | None:
    """Return what is in a text that shows the figures of a number; None for more figures than are read as one."""
    whole, _, fraction = format(number.copy_abs(), "f").partition(".")
    fraction = fraction.rstrip("0")
    if not number.is_finite() or len(whole) + len(fraction) > LONGEST_NUMBER:
        return None
    return _compile_figures(whole, f"[.,]{fraction}0*" if fraction else "(?:[.,]0+)?")


@lru_cache(1024)
def _compile_figures(figures: str, after: str = "") -> re.Pattern[str]:
    """Return what finds figures, perhaps in groups, that are not a part of more figures. What begins with a figure is
    found faster than what looks behind first."""
    grouped = f"{_GAPS}?".join(figures[1:])
    return re.compile(f"{figures[0]}(?<![1-9]{figures[0]}){f'{_GAPS}?{grouped}' if grouped else ''}{after}(?![0-9])")
