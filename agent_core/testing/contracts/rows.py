"""Rows that are chained, as a run writes them; for what a journal is tried with."""

from collections.abc import Sequence

from agent_core.journal.record import Record, Row, chain_row, genesis


def chain(path: str, *records: Record, run: str = "r1") -> list[Row]:
    """Return a strand of these records."""
    rows: list[Row] = []
    for n, record in enumerate(records):
        rows.append(chain_row(path, n, rows[-1].hash if rows else genesis(run, path), record))
    return rows


def numbered(path: str, count: int, *, by: str = "", run: str = "r1") -> list[Row]:
    """Return a strand of so many records; those `by` another are other ones."""
    return chain(path, *({"kind": "asked", "i": i, "by": by} for i in range(count)), run=run)


def closing_row(*strands: Sequence[Row]) -> Row:
    """Return the record that closes strands."""
    closes = [[rows[-1].path, rows[-1].hash.hex(), len(rows)] for rows in strands]
    return chain("agent", {"kind": "run_finished", "closes": closes})[0]


def check_chained(path: str, rows: Sequence[Row]) -> None:
    """AssertionError for rows that are not chained to each other from the beginning of their strand."""
    previous = genesis("r1", path)
    for n, row in enumerate(rows):
        assert row == chain_row(path, n, previous, row.record())
        previous = row.hash
