"""Protected paths: files that configure this host, which no tool writes, and its stores, which no tool reads either.

Whatever reads definitions, host configuration, manifests or prompts protects them here. A store holds what others
have written, such as a journal or a database.
"""

import os
import sys
from pathlib import Path, PurePath
from unicodedata import normalize

from utools.words.text import Text

PYTHON_SUFFIXES = (".py", ".pyc", ".pth", ".so", ".pyd")
PACKAGE_STEMS = ("__init__", "__main__")
INSTALLED = (".dist-info", ".egg-info")
DATABASE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Of the files that lie beside a database while it is open."""
EXECUTABLE = 0o111
PROGRAM_HEADS = (b"#!", b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe")

MOST_STORES = 10_000

_paths: dict[str, str] = {}
_globs: set[str] = set()
_stores: dict[str, None] = {}


def protect(path: str | os.PathLike[str]) -> None:
    """From now on no tool of this process writes this file, or anything below this directory."""
    if "\0" not in os.fspath(path):  # no file has such a name
        _paths[_normalize(path)] = os.path.realpath(path)


def protected_files() -> list[str]:
    """Return the files among what `protect` was given: what this process has read so far of its host and its
    definitions."""
    return [path for path in _paths.values() if os.path.isfile(path)]


def protect_glob(pattern: str | os.PathLike[str]) -> None:
    """The same for every path that fits a glob."""
    _globs.add(_normalize(pattern))


def protect_name(name: str) -> None:
    """The same for every file of this name."""
    _globs.add(_fold(name))


def protect_store(path: str | os.PathLike[str]) -> None:
    """From now on no tool of this process reads or writes this journal or database.

    A host may have one for each run; the latest ones stay protected.
    """
    _stores[_normalize(path)] = None
    if len(_stores) > MOST_STORES:
        _stores.pop(next(iter(_stores)), None)


def is_store(path: Path) -> bool:
    """Return whether a resolved path is a journal or a database of this host."""
    return _registered_name(path) in _stores


def write_refusal(path: Path) -> Text | None:
    """Return why tools do not write a resolved path; None if they may."""
    name = PurePath(_registered_name(path))
    is_protected = any(str(each) in _paths for each in (name, *name.parents))
    if is_protected or any(name.match(pattern) for pattern in tuple(_globs)):
        return Text("says what this host does")
    if _is_imported(path):
        return Text("would stand beside Python that this host loads")
    return Text("is a program") if _is_program(path) else None


def _normalize(path: str | os.PathLike[str]) -> str:
    return normalize("NFC", os.path.realpath(path).casefold())  # as _fold, whose call each run would pay for


def _fold(path: str) -> str:
    """Return a path as some file systems compare it, such as macOS: without case, however its accents are made."""
    return normalize("NFC", path.casefold())


def _registered_name(path: Path) -> str:
    """Return a resolved path as it is registered; a file beside an open database counts as the database."""
    text = normalize("NFC", str(path).casefold())  # as _fold
    for suffix in DATABASE_SUFFIXES:
        text = text.removesuffix(suffix)
    return text


def _is_imported(path: Path) -> bool:
    """Return whether Python would find it, in this process or at its next start."""
    if any(part.casefold().endswith(INSTALLED) for part in path.parts):
        return True
    if path.suffix.casefold() not in PYTHON_SUFFIXES:
        return False
    module = path.parent if path.stem.casefold() in PACKAGE_STEMS else path
    return not _import_directories().isdisjoint((_fold(str(path.parent)), _fold(str(module.parent))))


def _import_directories() -> set[str]:
    """Return the directories from which Python loads modules, or has loaded some, as they are compared."""
    files = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    loaded = {os.path.dirname(file) for file in files if isinstance(file, str)}
    return {_normalize(directory) for directory in (*sys.path, *loaded)}


def _is_program(path: Path) -> bool:
    """Return whether it can be run. The mode alone does not tell: some file systems call every file executable."""
    try:
        if not (path.is_file() and path.stat().st_mode & EXECUTABLE):
            return False
        with path.open("rb") as file:
            return file.read(4).startswith(PROGRAM_HEADS)
    except OSError:  # it cannot be read, so it may be one
        return True
