"""Files that say what this host does, and are therefore written by no tool, wherever a tool's root lies.

Whatever reads them says so here: definitions, host configuration, manifests, prompts. Stores, which hold what others
have said, are not read by tools either.
"""

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

IMPORTED = (".py", ".pyc", ".pth", ".so", ".pyd")
BESIDE_A_DATABASE = ("-wal", "-shm", "-journal")
EXECUTABLE = 0o111

_kept: set[str] = set()
_patterns: set[str] = set()
_stores: set[str] = set()


def keep(path: str | os.PathLike[str], *, store: bool = False) -> None:
    """From now on no tool of this process writes this file, anything below this directory, or what fits this glob.

    A `store` is not read either.
    """
    place = os.path.realpath(path).casefold()
    _kept.add(place)
    if store:
        _stores.add(place)
    if any(char in place for char in "*?["):
        _patterns.add(place)


def is_store(path: Path) -> bool:
    """Whether a resolved path is a journal or a database of this host."""
    return _named(path) in _stores


def why_kept(path: Path) -> str | None:
    """Why a resolved path is not written by tools; None where it may be."""
    text = _named(path)
    named = any(str(place) in _kept for place in (text, *PurePath(text).parents))
    if named or any(fnmatchcase(text, pattern) for pattern in _patterns):
        return "says what this host does"
    if path.suffix.casefold() in IMPORTED and str(path.parent) in _looked_through():
        return "would stand beside Python that this host loads"
    try:
        executable = path.is_file() and path.stat().st_mode & EXECUTABLE
    except OSError:
        return None
    return "is a program" if executable else None


def _named(path: Path) -> str:
    """A path as it was kept: a database's, for what stands beside it while it is open."""
    text = str(path).casefold()
    for suffix in BESIDE_A_DATABASE:
        text = text.removesuffix(suffix)
    return text


def _looked_through() -> set[str]:
    """The directories that Python is loaded from, in this process or at its next start."""
    files = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    loaded = {os.path.dirname(file) for file in files if isinstance(file, str)}
    return {os.path.realpath(place) for place in (*sys.path, *loaded)}
