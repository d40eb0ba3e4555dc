"""Compare-and-append, decided: which rows of an append are new, and which have lost their place."""

from collections.abc import Callable, Sequence

from agent_core.errors import Lost
from agent_core.journal.record import Row, genesis, link

End = tuple[int, bytes]
"""Where a strand ends: how many rows it has, and the hash that the next one is chained to."""


def rows_to_append(
    run: str, rows: Sequence[Row], last: Callable[[str], End | None], holds: Callable[[Row], bool]
) -> list[Row]:
    """The rows still to be written; those that stand in their place already are left out.

    `last` tells where a strand ends, None when it has no row; `holds` whether the very row stands in its place.
    Raises `Lost` when another row stands there, or when a row would leave a gap or break its strand's chain.
    """
    new: list[Row] = []
    ends: dict[str, End] = {}
    for row in rows:
        count, head = ends.get(row.path) or last(row.path) or (0, genesis(run, row.path))
        if row.n == count and link(head, row.data) == row.hash:
            new.append(row)
            count, head = count + 1, row.hash
        elif row not in new and not holds(row):
            raise Lost(row.path, row.n)
        ends[row.path] = count, head
    return new


def is_last_new(rows: Sequence[Row], new: Sequence[Row]) -> bool:
    """Whether the last of these rows is a new one."""
    return bool(new) and new[-1] is rows[-1]
