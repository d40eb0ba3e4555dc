"""Compare-and-append, decided: which rows of an append are new, and which have lost their place."""

from collections.abc import Callable, Sequence

from agent_core.errors import Lost
from agent_core.journal.record import Row


def fresh(rows: Sequence[Row], count: Callable[[str], int], holds: Callable[[Row], bool]) -> list[Row]:
    """The rows still to be written; those that stand in their place already are left out.

    `count` tells how many rows a strand has, `holds` whether the very row stands in its place. Raises
    `Lost` when another row stands there, or when a row would leave a gap.
    """
    new: list[Row] = []
    ends: dict[str, int] = {}
    for row in rows:
        end = ends.get(row.path)
        if end is None:
            end = count(row.path)
        if row.n == end:
            new.append(row)
            end += 1
        elif row not in new and not holds(row):
            raise Lost(row.path, row.n)
        ends[row.path] = end
    return new
