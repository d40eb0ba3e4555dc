"""Compare-and-append: which rows of an append are new, and which came too late. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from agent_core.errors import Lost
from agent_core.journal.record import Row, genesis, link

_CLOSES: Final = b'"closes":['
"""In a text within a record its quotes are escaped; an output may have such a key, too."""
End = tuple[int, bytes]
"""The end of a strand: its number of rows, and the hash that the next row is chained to."""


def rows_to_append(
    run: str, rows: Sequence[Row], last: Callable[[str], End | None], holds: Callable[[Row], bool]
) -> list[Row]:
    """Return the rows that still have to be written, without those that are there already.

    `last` gives the end of a strand, the number of its rows and the hash of the last one, None when it has no row;
    `holds` says whether this very row is there. Raises `Lost` when another row is in a row's position, when a row would
    leave a gap or break its strand's chain, or when it closes a strand at another end than that has.
    """
    new: list[Row] = []
    ends: dict[str, End] = {}

    def end_of(path: str) -> End:
        return ends.get(path) or last(path) or (0, genesis(run, path))

    path, count, head = None, 0, b""
    for row in rows:
        if row.path != path:
            path = row.path
            count, head = end_of(path)
        if row.n == count and link(head, row.stored or row.data) == row.hash:
            new.append(row)
            ends[row.path] = count, head = count + 1, row.hash
        elif row not in new and not holds(row):
            raise Lost(row.path, row.n)
    for row in new:  # a strand may be written together with what closes it, in any order
        if _CLOSES in row.data:
            _check_closings(row, end_of)
    return new


def _check_closings(row: Row, end_of: Callable[[str], End]) -> None:
    """Raise `Lost` where a strand that a record closes has grown since the record was made."""
    for path, head, count in row.record().get("closes", ()):
        if end_of(path) != (count, bytes.fromhex(head)):
            raise Lost(path, count)


def paths_of_ends(rows: Sequence[Row]) -> set[str]:
    """Return the strands whose ends decide whether these rows are appended."""
    closing = [row.record().get("closes", ()) for row in rows if _CLOSES in row.data]
    return {row.path for row in rows} | {path for closes in closing for path, _, _ in closes}


def is_last_new(rows: Sequence[Row], new: Sequence[Row]) -> bool:
    """Return whether the last of these rows is new."""
    return bool(new) and new[-1] is rows[-1]
