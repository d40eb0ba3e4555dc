"""The order of the records of two runs, so that what happened first comes first. Pure."""

from agent_core.journal.path import is_below, name_of, parse_segment, root_of, segments
from agent_core.journal.record import Tape
from agent_core.journal.started import loop_of

SortKey = tuple[int, ...]


class Order:
    """The common order of two tapes: a strand comes after the record that asked for it, a visit when it was due."""

    def __init__(self, a: Tape, b: Tape) -> None:
        self._tapes = (a, b)
        self._roots = list(dict.fromkeys(root_of(path) for tape in (a, b) for path in sorted(tape)))
        self._visits: dict[str, list[str]] = {}

    def key(self, path: str, n: int) -> SortKey:
        """Sorts record `n` of a strand among all others."""
        parent, _, last = path.rpartition("/")
        if not parent:
            return (self._roots.index(path), n)
        if any(_is_flow(tape, parent) for tape in self._tapes):
            return (*self.key(parent, 0), self._rank(parent, last), n)
        segment = parse_segment(last)
        return (*self.key(parent, segment.number), segment.item, n)

    def _rank(self, parent: str, segment: str) -> int:
        if parent not in self._visits:
            first, second = (_visits_in_order(tape, parent) for tape in self._tapes)
            self._visits[parent] = _merge(first, second)
        return self._visits[parent].index(segment)


def _is_flow(tape: Tape, path: str) -> bool:
    return path in tape and loop_of(tape[path][0]) == "flow"


def _visits_in_order(tape: Tape, root: str) -> list[str]:
    """Return the segments of a workflow's visits: in the order that its end tells, else by their first time."""
    if root not in tape:
        return []
    path_of_run: list[str] = tape[root][-1].record().get("path", [])
    found = {segments(path, root)[0] for path in tape if is_below(path, root)}

    def due(segment: str) -> tuple[int, str, int]:
        _, visit, attempt = parse_segment(segment)
        turns = [index for index, name in enumerate(path_of_run) if name == name_of(segment)]
        turn = turns[visit - 1] if 0 < visit <= len(turns) else len(path_of_run)
        return turn, _first_time(tape, f"{root}/{segment}"), attempt

    return sorted(sorted(found), key=due)


def _first_time(tape: Tape, path: str) -> str:
    records = (row.record() for row in tape.get(path, ()))
    return next((record["at"] for record in records if "at" in record), "~")


def _merge(first: list[str], second: list[str]) -> list[str]:
    """Return the first order, with each element that only the second has before its successor there."""
    merged, at = list(first), len(first)
    for segment in reversed(second):
        if segment in merged:
            at = merged.index(segment)
        else:
            merged.insert(at, segment)
    return merged
