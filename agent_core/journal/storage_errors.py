"""What is wrong with a journal's file, and what to do about it."""

import errno
import sqlite3
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 10.0
"""How long a journal waits for others that have locked its file, by default."""
_FULL: Final = "make room on the disk, then resume the run"
_DENIED: Final = "let this user write to the file and its folder, or choose another file"
_ANOTHER: Final = "choose another file"
_BY_ERRNO: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.EISDIR: _ANOTHER,
}
_BY_CODE: Final = {
    sqlite3.SQLITE_BUSY: "another process writes to it; try again when that is done",
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: "see whether the disk is full or failing, then resume the run",
    sqlite3.SQLITE_READONLY: _DENIED,
    sqlite3.SQLITE_CANTOPEN: _DENIED,
    sqlite3.SQLITE_NOTADB: _ANOTHER,
    sqlite3.SQLITE_CORRUPT: "it is damaged; verify it, and go on from a copy",
}


def explain(path: Path, error: OSError | sqlite3.Error | UnicodeDecodeError, *, patience: float = PATIENCE_S) -> str:
    """Return why the journal at `path` cannot be used, and what to do. `patience` is how long it waited for a lock."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if isinstance(error, BlockingIOError) or sqlite_code(error) == sqlite3.SQLITE_BUSY:
        return f"another process has kept it locked for {patience:g} s; resume the run when that is done"
    reason, hint = _explain(path, error)
    return f"{reason}; {hint}" if hint else reason


def advise(error: OSError | sqlite3.Error, another: str) -> str:
    """Return what to do about an error; `another` is how another file is chosen."""
    code = (error.errno or 0) if isinstance(error, OSError) else sqlite_code(error)
    hint = (_BY_ERRNO if isinstance(error, OSError) else _BY_CODE).get(code, _ANOTHER)
    return hint.replace(_ANOTHER, another)


def sqlite_code(error: Exception) -> int:
    """SQLite's own primary code for an error, 0 for one of the Python module's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _explain(path: Path, error: OSError | sqlite3.Error | UnicodeDecodeError) -> tuple[str, str | None]:
    if isinstance(error, OSError):
        return error.strerror or str(error), _BY_ERRNO.get(error.errno or 0)
    if isinstance(error, UnicodeDecodeError):  # how sqlite3 reports an error about a name that is not UTF-8
        return "the file is damaged", _BY_CODE[sqlite3.SQLITE_CORRUPT]
    if path.is_dir():
        return "it is a directory", _ANOTHER
    return str(error), _BY_CODE.get(sqlite_code(error))
