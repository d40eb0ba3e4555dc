"""LAYOUT: the tables of a journal's SQLite file, version by version."""

from typing import Final

from utools.sqlite_file import Layout

_ROWS: Final = """
    CREATE TABLE IF NOT EXISTS rows (
        seq INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        strand TEXT NOT NULL,
        n INTEGER NOT NULL,
        hash BLOB NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (run, strand, n)
    )"""
LAYOUT: Final = Layout("journal", ((_ROWS,),), frozenset({"rows"}), in_header=True)
"""A store of workflow runs puts its own tables into the same file."""
