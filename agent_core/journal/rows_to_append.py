"""Compare-and-append: which rows of an append are new, and which came too late. Pure."""

from collections.abc import Callable, Sequence

from agent_core.errors import Lost
from agent_core.journal.record import Row, genesis, link

End = tuple[int, bytes]
"""The end of a strand: its number of rows, and the hash that the next row is chained to."""


def rows_to_append(
    run: str, rows: Sequence[Row], last: Callable[[str], End | None], holds: Callable[[Row], bool]
) -> list[Row]:
    """The rows that still have to be written, without those that are there already.

    `last` gives the end of a strand, None when it has no row; `holds` whether this very row is there. Raises `Lost`
    when another row is in a row's position, or when a row would leave a gap or break its strand's chain.
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
    """Whether the last of these rows is new."""
    return bool(new) and new[-1] is rows[-1]
