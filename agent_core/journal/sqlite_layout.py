"""LAYOUT: the tables of a journal's SQLite file, version by version."""

from typing import Final

from utools.databases.sqlite_file import Layout

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
_IDENTITY: Final = "CREATE TABLE IF NOT EXISTS store_identity (store TEXT NOT NULL, tenant TEXT)"
_COPIES: Final = """CREATE TABLE IF NOT EXISTS store_copies (
    store TEXT PRIMARY KEY, at TEXT NOT NULL, kid TEXT, mac TEXT) WITHOUT ROWID"""
_NAMED: Final = """INSERT INTO store_identity
    SELECT lower(hex(randomblob(16))), NULL WHERE NOT EXISTS (SELECT 1 FROM store_identity)"""
LAYOUT: Final = Layout("journal", ((_ROWS,),), frozenset({"rows"}), extra=(_IDENTITY, _COPIES, _NAMED), in_header=True)
"""A store of workflow runs puts its own tables into the same file."""
