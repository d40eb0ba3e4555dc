"""Where the records of two runs stand in the course of things, so that what happened first comes first. Pure."""

import re
from typing import Final

from agent_core.journal.record import Tape, name_of

_ITEM: Final = re.compile(r"(\d+)\.(\d+)")
_NESTED: Final = re.compile(r".*\.(\d+)(?:~(\d+))?")
Place = tuple[int, ...]


class Order:
    """The common order of two tapes: a strand stands behind the record that asked for it, a visit where it was due."""

    def __init__(self, a: Tape, b: Tape) -> None:
        self._tapes = (a, b)
        self._roots = list(dict.fromkeys(path.partition("/")[0] for tape in (a, b) for path in sorted(tape)))
        self._visits: dict[str, list[str]] = {}

    def place(self, path: str, n: int) -> Place:
        """Sorts the record `n` of a strand among all others."""
        parent, slash, last = path.rpartition("/")
        if not slash:
            return (self._roots.index(path), n)
        if any(_is_flow(tape, parent) for tape in self._tapes):
            return (*self.place(parent, 0), self._rank(parent, last), n)
        asked, index = _asked(last)
        return (*self.place(parent, asked), index, n)

    def _rank(self, parent: str, segment: str) -> int:
        if parent not in self._visits:
            first, second = (_visits(tape, parent) for tape in self._tapes)
            self._visits[parent] = _merged(first, second)
        return self._visits[parent].index(segment)


def _is_flow(tape: Tape, path: str) -> bool:
    return path in tape and tape[path][0].record().get("loop") == "flow"


def _asked(segment: str) -> tuple[int, int]:
    """The record that asked for a strand, or the number of a visit; then which of its items or attempts it is."""
    match = _ITEM.fullmatch(segment) or _NESTED.fullmatch(segment)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def _visits(tape: Tape, root: str) -> list[str]:
    """The visits of a workflow: as its end tells their order, else by the first time that each of them tells."""
    if root not in tape:
        return []
    ended: list[str] = tape[root][-1].record().get("path", [])
    found = {path[len(root) + 1 :].partition("/")[0] for path in tape if path.startswith(f"{root}/")}

    def due(segment: str) -> tuple[int, str, int]:
        visit, attempt = _asked(segment)
        turns = [at for at, name in enumerate(ended) if name == name_of(segment)]
        turn = turns[visit - 1] if 0 < visit <= len(turns) else len(ended)
        return turn, _first_time(tape, f"{root}/{segment}"), attempt

    return sorted(sorted(found), key=due)


def _first_time(tape: Tape, path: str) -> str:
    records = (row.record() for row in tape.get(path, ()))
    return next((record["at"] for record in records if "at" in record), "~")


def _merged(first: list[str], second: list[str]) -> list[str]:
    """The first order, with what only the second has before what comes next there."""
    merged, at = list(first), len(first)
    for segment in reversed(second):
        if segment in merged:
            at = merged.index(segment)
        else:
            merged.insert(at, segment)
    return merged
