"""Sandbox: files under one root, and nothing else.

Symlinks are resolved before the check; then the file is opened step by step from the root, following no link, so that
a path that is swapped in between is refused rather than followed.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import BinaryIO

from utools.errors import SandboxError

FOLLOW_NONE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not hang
STEPWISE = os.open in os.supports_dir_fd


class Sandbox:
    """The files under `root`. Errors are SandboxError and name a path as it was given, never where it lies."""

    def __init__(self, root: str | os.PathLike[str] = ".") -> None:
        self._root = Path(root)

    def narrowed(self, path: str | None) -> "Sandbox":
        """The sandbox of a directory within this one; this one itself for None."""
        return self if path is None else Sandbox(self._real_root() / self.resolve(path))

    def resolve(self, path: str) -> PurePath:
        """Where `path` leads, relative to the root, all symlinks resolved."""
        if not path or "\0" in path:
            raise SandboxError(f"{path!r} is not a path")
        root = self._real_root()
        try:
            real = Path(os.path.realpath(root / path))
            return real.relative_to(root)
        except (ValueError, OSError):
            raise SandboxError(f"{path!r} does not lie inside the root directory of this tool") from None

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        place = self.resolve(path)
        try:
            descriptor = self._opened(place)
        except FileNotFoundError:
            raise SandboxError(f"there is no file {path!r}") from None
        except OSError as error:
            raise SandboxError(f"{path!r} cannot be opened: {error.strerror}") from None
        kind = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(kind):
            os.close(descriptor)
            raise SandboxError(f"{path!r} is {'a directory' if stat.S_ISDIR(kind) else 'not a regular file'}")
        return os.fdopen(descriptor, "rb")

    def files(self, directory: str) -> Iterator[str]:
        """The files below a directory, sorted, relative to the root; without hidden ones and linked directories."""
        root = self._real_root()
        place = self.resolve(directory)
        if not (root / place).is_dir():
            raise SandboxError(f"there is no directory {directory!r}")
        for parent, directories, names in os.walk(root / place):
            directories[:] = sorted(name for name in directories if not name.startswith("."))
            within = Path(parent).relative_to(root)
            yield from ((within / name).as_posix() for name in sorted(names) if not name.startswith("."))

    def _real_root(self) -> Path:
        return Path(os.path.realpath(self._root))

    def _opened(self, place: PurePath) -> int:
        root = self._real_root()
        if not STEPWISE:
            return os.open(root / place, os.O_RDONLY | FOLLOW_NONE | WITHOUT_WAITING)
        with ExitStack() as held:
            here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, here)
            for step in place.parts[:-1]:
                here = os.open(step, os.O_RDONLY | os.O_DIRECTORY | FOLLOW_NONE, dir_fd=here)
                held.callback(os.close, here)
            last = place.parts[-1] if place.parts else "."
            return os.open(last, os.O_RDONLY | FOLLOW_NONE | WITHOUT_WAITING, dir_fd=here)
