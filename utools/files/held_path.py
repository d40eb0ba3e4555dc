"""hold_path(): the one check of a path that a definition names, made where the file is opened."""

import os
from collections.abc import Iterable
from pathlib import Path

from utools.errors import SandboxError
from utools.files.protected_paths import is_store


def hold_path(path: Path, within: Iterable[Path], without: Iterable[Path] = ()) -> Path:
    """Return the path with all its links resolved, once it lies in one of the directories `within` and in none
    `without`.

    A store of the host lies in none. SandboxError for every other path, whether there is such a file or not.
    """
    refusal = SandboxError("{path!r} lies outside of what this definition may read", path=path.name)
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):  # a NUL, a name that is too long
        raise refusal from None
    if is_store(real) or not _is_in(real, within) or _is_in(real, without):
        raise refusal
    return real


def _is_in(real: Path, directories: Iterable[Path]) -> bool:
    return any(map(real.is_relative_to, map(os.path.realpath, directories)))
