"""Two recorded runs side by side, and where they part. Pure; times, and what stems from them, are set aside."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent_core.audit.normalize import Names, changes, essence, names_of
from agent_core.audit.order import Order
from agent_core.audit.signature import parted
from agent_core.audit.stats import Tally, tally
from agent_core.effects import Json
from agent_core.journal.record import Record, Row, Tape


@dataclass(frozen=True, slots=True)
class Parting:
    """Where a strand parts: record `n`, as it stands in each run, None where a run has no such record.

    `changes` are {at, a, b} of each JSON pointer at which two records differ; a run that has nothing there has no key.
    """

    strand: str
    n: int
    a: Record | None
    b: Record | None
    changes: tuple[Json, ...]

    @property
    def only_in(self) -> str | None:
        """The run that alone has this strand, "a" or "b"; None when both have it."""
        if self.n or (self.a is not None and self.b is not None):
            return None
        return "b" if self.a is None else "a"


@dataclass(frozen=True, slots=True)
class Diff:
    """What `diff` found: `partings` in the order of the runs, the `same` strands, and what each run came to.

    A strand parts once, but twice when it began otherwise: there, and where that first told.
    """

    partings: tuple[Parting, ...]
    same: tuple[str, ...]
    a: Tally
    b: Tally

    @property
    def equal(self) -> bool:
        return not self.partings


def diff(a: tuple[str, Tape], b: tuple[str, Tape]) -> Diff:
    """Compare two runs, each by its id and its rows, strand by strand; seals are left out.

    Set aside are times, durations, hashes, the ids of the runs and those of the calls, which derive from them.
    """
    (first, own_a), (second, own_b) = [(run, parted(tape)[0]) for run, tape in (a, b)]
    names = names_of(first, own_a), names_of(second, own_b)
    paths = list(dict.fromkeys([*own_a, *own_b]))
    found = {path: list(_partings(path, own_a.get(path, []), own_b.get(path, []), names)) for path in paths}
    place = Order(own_a, own_b).place
    partings = sorted((each for some in found.values() for each in some), key=lambda each: place(each.strand, each.n))
    same = sorted((path for path in paths if not found[path]), key=lambda path: place(path, 0))
    return Diff(tuple(partings), tuple(same), tally(first, own_a), tally(second, own_b))


def _partings(path: str, a: list[Row], b: list[Row], names: tuple[Names, Names]) -> Iterator[Parting]:
    otherwise = False
    for n in range(max(len(a), len(b))):
        if n < min(len(a), len(b)) and a[n].data == b[n].data:
            continue
        here, there = (rows[n].record() if n < len(rows) else None for rows in (a, b))
        if here is None or there is None:
            yield Parting(path, n, here, there, ())
            return
        found = [each for each in changes(essence(here), essence(there), names) if not (otherwise and _follows(each))]
        if found:
            yield Parting(path, n, here, there, tuple(found))
            otherwise = here["kind"] == there["kind"] == "run_started"
            if not otherwise:
                return


def _follows(change: Json) -> bool:
    """What other words or another model bring with them, whatever is said then: not where it told."""
    at: str = change["at"]
    return at == "/model" or at.startswith("/usage/")
