"""Files that say what this host does, and are therefore written by no tool, wherever a tool's root lies.

Whatever reads them says so here: definitions, host configuration, manifests, prompts. Stores, which hold what others
have said, are not read by tools either.
"""

import os
import sys
from pathlib import Path, PurePath

IMPORTED = (".py", ".pyc", ".pth", ".so", ".pyd")
PACKAGE = ("__init__", "__main__")
INSTALLED = (".dist-info", ".egg-info")
BESIDE_A_DATABASE = ("-wal", "-shm", "-journal")
EXECUTABLE = 0o111
PROGRAM = (b"#!", b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe")

MOST_STORES = 10_000

_kept: set[str] = set()
_patterns: set[str] = set()
_stores: dict[str, None] = {}


def keep(path: str | os.PathLike[str]) -> None:
    """From now on no tool of this process writes this file, or anything below this directory."""
    _kept.add(_place(path))


def keep_all(pattern: str | os.PathLike[str]) -> None:
    """The same for all that fits a glob."""
    _patterns.add(_place(pattern))


def keep_store(path: str | os.PathLike[str]) -> None:
    """From now on no tool of this process reads or writes this journal or database; a host may have one for each run,
    and goes on keeping the latest of them."""
    _stores[_place(path)] = None
    if len(_stores) > MOST_STORES:
        _stores.pop(next(iter(_stores)), None)


def is_store(path: Path) -> bool:
    """Whether a resolved path is a journal or a database of this host."""
    return _named(path) in _stores


def why_kept(path: Path) -> str | None:
    """Why a resolved path is not written by tools; None where it may be."""
    place = PurePath(_named(path))
    named = any(str(each) in _kept for each in (place, *place.parents))
    if named or any(place.match(pattern) for pattern in tuple(_patterns)):
        return "says what this host does"
    if _is_imported(path):
        return "would stand beside Python that this host loads"
    return "is a program" if _is_program(path) else None


def _place(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path).casefold()


def _named(path: Path) -> str:
    """A path as it was kept: a database's, for what stands beside it while it is open."""
    text = str(path).casefold()
    for suffix in BESIDE_A_DATABASE:
        text = text.removesuffix(suffix)
    return text


def _is_imported(path: Path) -> bool:
    """Whether Python would find it, in this process or at its next start."""
    if any(part.casefold().endswith(INSTALLED) for part in path.parts):
        return True
    if path.suffix.casefold() not in IMPORTED:
        return False
    module = path.parent if path.stem.casefold() in PACKAGE else path
    return not _looked_through().isdisjoint((str(path.parent), str(module.parent)))


def _looked_through() -> set[str]:
    """The directories that Python is loaded from."""
    files = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    loaded = {os.path.dirname(file) for file in files if isinstance(file, str)}
    return {os.path.realpath(place) for place in (*sys.path, *loaded)}


def _is_program(path: Path) -> bool:
    """Whether it can be run. Some file systems call every file executable."""
    try:
        if not (path.is_file() and path.stat().st_mode & EXECUTABLE):
            return False
        with path.open("rb") as file:
            return file.read(4).startswith(PROGRAM)
    except OSError:  # not to be read: then nobody can tell
        return True
