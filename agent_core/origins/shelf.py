"""Many sources, looked through at once: most values stand in none, and that is seen without opening each. Pure."""

from collections.abc import Iterator

from agent_core.origins.kinds import Probe
from agent_core.origins.source import BETWEEN, Source

A_SHELF = 16
"""Sources whose texts are joined to one."""


class Shelves:
    """Sources in order of time."""

    def __init__(self) -> None:
        self._shelves: list[_Shelf] = []

    def __iter__(self) -> Iterator[Source]:
        return (source for shelf in self._shelves for source in shelf.sources)

    def add(self, source: Source) -> None:
        """Put a source behind the others."""
        if not self._shelves or len(self._shelves[-1].sources) == A_SHELF:
            self._shelves.append(_Shelf())
        self._shelves[-1].add(source)

    def that_may_hold(self, probe: Probe) -> Iterator[Source]:
        """Yield the sources that a value may stand in."""
        hint, figures = probe.hint, probe.figures
        for shelf in self._shelves:
            if hint is not None and hint not in shelf.rough():
                continue
            if figures is not None and figures not in shelf.figures():
                continue
            for source in shelf.sources:
                if hint is not None and (hint not in source.rough or hint not in source.folded):
                    continue
                if figures is None or figures in source.figures:
                    yield source


class _Shelf:
    """A few sources, and their texts as one."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self._rough, self._rough_count = "", 0
        self._figures, self._figures_count = "", 0

    def add(self, source: Source) -> None:
        self.sources.append(source)

    def rough(self) -> str:
        if self._rough_count < len(self.sources):
            new = [source.rough for source in self.sources[self._rough_count :]]
            self._rough, self._rough_count = BETWEEN.join([self._rough, *new]), len(self.sources)
        return self._rough

    def figures(self) -> str:
        if self._figures_count < len(self.sources):
            new = [source.figures for source in self.sources[self._figures_count :]]
            self._figures, self._figures_count = " ".join([self._figures, *new]), len(self.sources)
        return self._figures
