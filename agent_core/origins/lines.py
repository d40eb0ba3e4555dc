"""Lines: where a value stands in a text, of which only the lines that may hold it are read. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from agent_core.origins.amounts import COUNTED
from agent_core.origins.kinds import READERS, Kind, Probe
from utools.lazy_pattern import lazy_compile

_NO_FIGURES = lazy_compile(r"[^\d\n]+")
Values = dict[object, list[int]]
"""Where each value of a kind begins, by its canonical form."""


class Lines:
    """A text whose values are read a line at a time: none reaches across the end of one, nor does what tells it.
    `small` is the text in small letters."""

    def __init__(self, text: str, small: str) -> None:
        self._text, self._small = text, small
        self._lines = text.split("\n")
        self._starts = [*accumulate([len(line) + 1 for line in self._lines], initial=0)][:-1]
        self._found: dict[tuple[Kind, int | None], Values] = {}

    def find(self, probe: Probe) -> Iterator[int]:
        """Yield where a value begins that is read out of texts."""
        numbers = self._that_may_hold(probe)
        for form in probe.forms():
            for number in numbers:
                start = self._starts[number] if number is not None else 0
                yield from (start + at for at in self._read(probe.kind, number).get(form, ()))

    def _that_may_hold(self, probe: Probe) -> Sequence[int | None]:
        """Return the numbers of the lines that a value may stand in; None stands for all of the text."""
        if probe.figures is not None:
            found = self._with_figures(probe.figures)
            return sorted({*found, *self._counted}) if probe.kind == "number" else [*found]
        return [None] if probe.hint is None else [*self._with_hint(probe.hint)]

    def _with_figures(self, figures: str) -> Iterator[int]:
        number, at, end = 0, self._figures.find(figures), 0
        while at >= 0:
            number, end = number + self._figures.count("\n", end, at), at
            yield number
            following = self._figures.find("\n", at)
            at = self._figures.find(figures, following) if following >= 0 else -1

    def _with_hint(self, hint: str) -> Iterator[int]:
        at = self._small.find(hint)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            at = self._small.find(hint, self._starts[number] + len(self._lines[number]))

    def _read(self, kind: Kind, number: int | None) -> Values:
        found = self._found.get((kind, number))
        if found is None:
            found = self._found[kind, number] = {}
            for start, value in READERS[kind](self._text if number is None else self._lines[number]):
                found.setdefault(value, []).append(start)
        return found

    @cached_property
    def _figures(self) -> str:
        """The figures of each line."""
        figures = _NO_FIGURES.sub("", self._text)
        return figures if figures.isascii() else "".join(each if each == "\n" else str(int(each)) for each in figures)

    @cached_property
    def _counted(self) -> set[int]:
        """The lines in which a number may have other figures than it shows, as two dozen has."""
        return {bisect_right(self._starts, found.start()) - 1 for found in COUNTED.finditer(self._text)}
