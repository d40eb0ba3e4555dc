"""Two recorded runs side by side, and where they part. Times, and what follows from them, are ignored. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent_core.audit.normalize import RunNames, find_changes, normalize, run_names
from agent_core.audit.order import Order
from agent_core.audit.stats import RunStats, count_run
from agent_core.journal.record import Record, Row, Tape
from agent_core.journal.signature import split_own_strands
from agent_core.outputs import Json


@dataclass(frozen=True, slots=True)
class Parting:
    """Where a strand parts: record `n` in each run, None where a run has no such record.

    `changes` are {at, a, b} of each JSON pointer at which the two records differ; a value that is absent has no key.
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
    """The result of `diff`: `partings` in the order of the runs, the `same` strands, and the figures of each run.

    A strand parts once; a strand that began differently parts there and at the first record that follows from it.
    """

    partings: tuple[Parting, ...]
    same: tuple[str, ...]
    a: RunStats
    b: RunStats

    @property
    def equal(self) -> bool:
        return not self.partings


def diff(a: tuple[str, Tape], b: tuple[str, Tape]) -> Diff:
    """Compare two runs, each by its id and its rows, strand by strand, without their signatures.

    Times, durations, hashes, and the ids of runs and calls are ignored.
    """
    (first, own_a), (second, own_b) = [(run, split_own_strands(tape)[0]) for run, tape in (a, b)]
    names = run_names(first, own_a), run_names(second, own_b)
    paths = list(dict.fromkeys([*own_a, *own_b]))
    found = {path: list(_find_partings(path, own_a.get(path, []), own_b.get(path, []), names)) for path in paths}
    key = Order(own_a, own_b).key
    partings = sorted((each for some in found.values() for each in some), key=lambda each: key(each.strand, each.n))
    same = sorted((path for path in paths if not found[path]), key=lambda path: key(path, 0))
    return Diff(tuple(partings), tuple(same), count_run(first, own_a), count_run(second, own_b))


def _find_partings(path: str, a: list[Row], b: list[Row], names: tuple[RunNames, RunNames]) -> Iterator[Parting]:
    began_differently = False
    for n in range(max(len(a), len(b))):
        if n < min(len(a), len(b)) and a[n].data == b[n].data:
            continue
        here, there = (rows[n].record() if n < len(rows) else None for rows in (a, b))
        if here is None or there is None:
            yield Parting(path, n, here, there, ())
            return
        found = [
            each
            for each in find_changes(normalize(here), normalize(there), names)
            if not (began_differently and _is_consequence(each))
        ]
        if found:
            yield Parting(path, n, here, there, tuple(found))
            began_differently = here["kind"] == there["kind"] == "run_started"
            if not began_differently:
                return


def _is_consequence(change: Json) -> bool:
    """Return whether a change follows from another prompt or model alone, whatever the reply is."""
    at: str = change["at"]
    return at == "/model" or at.startswith("/usage/")
