"""Which versions ran: of this program, and of workflows. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent_core.audit.report.listing import MOST_KEYS, MOST_ROWS, Listing, shorten
from agent_core.journal.facts import Fact, RunStarted


@dataclass(frozen=True, slots=True)
class VersionSeen:
    """A version of a program or a workflow, how many runs had it, and the first of them."""

    what: str
    version: str
    runs: int
    first_seen: str
    run: str


@dataclass(slots=True)
class Versions:
    """The versions in many runs, which come newest first."""

    seen: dict[tuple[str, str], VersionSeen] = field(default_factory=dict[tuple[str, str], VersionSeen])
    others: int = 0

    def add(self, run: str, at: str, versions: Iterable[tuple[str, str]]) -> None:
        for key in dict.fromkeys(versions):
            known = self.seen.get(key)
            if known is not None:
                self.seen[key] = replace(known, runs=known.runs + 1, first_seen=at, run=run)
            elif len(self.seen) < MOST_KEYS:
                self.seen[key] = VersionSeen(*key, 1, at, run)
            else:
                self.others += 1

    def list(self) -> Listing[VersionSeen]:
        ordered = sorted(self.seen.values(), key=lambda each: (each.what, each.first_seen))
        left_out = self.others + sum(each.runs for each in ordered[MOST_ROWS:])
        return Listing(ordered[:MOST_ROWS], left_out)


def read_versions(facts: Iterable[Fact], first: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the programs and workflows of a run with their versions; `first` is its first record."""
    for name, version in first.get("versions", {}).items():
        yield shorten(name), shorten(version)
    for fact in facts:
        if isinstance(fact, RunStarted) and fact.begun.definition:
            yield f"workflow {shorten(fact.begun.name)}", shorten(fact.begun.definition.get("version", "1"))
