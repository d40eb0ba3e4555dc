"""probe(): whether an SQLite file of ours can be opened and written, without a change to it."""

import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final

from utools.databases.sqlite_file import Layout, LayoutError, address, is_writable, version_of

PATIENCE_S: Final = 2.0
ROOM: Final = 1 << 20
"""Bytes without which a disk is full: a store has files of its own beside its file."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What is known of a file. `fault` says why it cannot be opened, `locked` why it cannot be written just now,
    `is_full` whether its disk has no room for what is written."""

    path: Path
    size: int | None = None
    version: int | None = None
    can_write: bool = False
    fault: str | None = None
    locked: str | None = None
    is_full: bool = False

    @property
    def exists(self) -> bool:
        return self.size is not None

    @property
    def facts(self) -> dict[str, Any]:
        return {"path": str(self.path), "bytes": self.size, "layout": self.version, "writable": self.can_write}


def probe(path: Path, layout: Layout, *, patience: float = PATIENCE_S) -> Probe:
    """Return what is there at the path; of a file that is not there, whether it can be made."""
    try:
        found = path.stat()
    except FileNotFoundError:
        above = next(each for each in path.absolute().parents if each.exists())
        return Probe(path, can_write=os.access(above, os.W_OK))
    except OSError as error:
        return Probe(path, fault=error.strerror)
    if stat.S_ISDIR(found.st_mode):
        return Probe(path, fault="it is a directory")
    size = found.st_size
    can_write = is_writable(path)
    try:
        with closing(_open(path, patience, "ro")) as db:
            version = version_of(db, path, layout)
        locked = _lock(path, patience) if can_write else None
        is_full = disk_usage(path.resolve().parent).free < ROOM
        return Probe(path, size, version, can_write and locked is None, locked=locked, is_full=is_full)
    except LayoutError as error:
        return Probe(path, size, can_write=can_write, fault=str(error).removeprefix(f"{path} "))
    except sqlite3.Error as error:
        return Probe(path, size, can_write=can_write, fault=str(error))


def select(path: Path, query: str) -> list[Any]:
    """Return what a query finds in a file that exists."""
    with closing(_open(path, PATIENCE_S, "ro")) as db:
        return db.execute(query).fetchall()


def _open(path: Path, patience: float, mode: str) -> sqlite3.Connection:
    where = address(path, new=False)
    where += f"{'&' if '?' in where else '?'}mode={mode}"
    return sqlite3.connect(where, uri=True, timeout=patience, isolation_level=None)


def _lock(path: Path, patience: float) -> str | None:
    """Take the lock of a writer, and give it back; why that failed."""
    try:
        with closing(_open(path, patience, "rw")) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return str(error)
    return None
