"""Listing and Tally: rows of a report, of which so many are kept and the others counted. Pure."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from agent_core.protocol.clip import as_text, clip

MOST_ROWS: Final = 200
MOST_KEYS: Final = 1000
LONGEST: Final = 240
Row = TypeVar("Row")
Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Listing(Generic[Row]):
    """The first rows in the order in which they came, and how many more there were."""

    rows: list[Row] = field(default_factory=list[Row])
    left_out: int = 0

    def add(self, row: Row) -> None:
        if len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        else:
            self.left_out += 1


@dataclass(slots=True)
class Tally(Generic[Key]):
    """How often each key came, and the first run that it came with. Keys beyond the first `MOST_KEYS` are counted
    together."""

    counts: dict[Key, int] = field(default_factory=dict[Key, int])
    runs: dict[Key, str] = field(default_factory=dict[Key, str])
    others: int = 0

    def add(self, key: Key, run: str) -> None:
        if key not in self.counts and len(self.counts) == MOST_KEYS:
            self.others += 1
            return
        self.counts[key] = self.counts.get(key, 0) + 1
        self.runs.setdefault(key, run)

    def list(self, make: Callable[[Key, int, str], Row]) -> Listing[Row]:
        """Return a row for each key, the most frequent first; what is left out counts how often the others came."""
        ordered = sorted(self.counts, key=lambda key: (-self.counts[key], str(key)))
        listing = Listing([make(key, self.counts[key], self.runs[key]) for key in ordered[:MOST_ROWS]])
        listing.left_out = self.others + sum(self.counts[key] for key in ordered[MOST_ROWS:])
        return listing


def shorten(value: Any) -> str:
    """Return a text of a stranger in at most `LONGEST` characters, anything else as JSON."""
    return clip(as_text(value), LONGEST)
