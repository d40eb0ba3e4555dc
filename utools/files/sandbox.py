"""Sandbox: files under one root, and nothing else: none that are hidden, and to write none that the host goes by.

Symlinks are resolved before the check; then the file is opened step by step from the root, following no link, so that
a path that is swapped in between is refused rather than followed.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath
from secrets import token_hex
from typing import BinaryIO

from utools.errors import SandboxError
from utools.files.protected_paths import is_store, why_kept

FOLLOW_NONE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not hang
DEEPEST = 64
"""Parts of a path that is written to: much deeper trees are more than many programs can walk, or delete."""
HIDDEN = "."
"""How the names begin of files that are no documents: secrets, and what other programs are set up by."""
LARGEST_APPENDED = 64 * 2**20
"""Bytes that a file may have and still be added to: it is copied, so that the addition is there whole or not at all."""


class Sandbox:
    """The files under `root`. Errors are SandboxError and name a path as it was given, never where it lies."""

    def __init__(self, root: str | os.PathLike[str] = ".") -> None:
        self._root = Path(root)

    def narrowed(self, path: str | None) -> "Sandbox":
        """The sandbox of a directory within this one; this one itself for None."""
        return self if path is None else Sandbox(self._real_root() / self._inside(path))

    def resolve(self, path: str, *, stores: bool = False) -> PurePath:
        """Where `path` leads, relative to the root, all symlinks resolved; nowhere hidden.

        To what holds what others have said it leads only where `stores` are meant.
        """
        place = self._inside(path)
        if is_store(self._real_root() / place) and not stores:
            raise SandboxError(f"{path!r} is a store of this host, and not for tools")
        if hidden := next((part for part in place.parts if part.startswith(HIDDEN)), None):
            raise SandboxError(f"{path!r} is hidden: {hidden!r} begins with a dot")
        return place

    def _inside(self, path: str) -> PurePath:
        if not path or "\0" in path:
            raise SandboxError(f"{path!r} is not a path")
        root = self._real_root()
        try:
            real = Path(os.path.realpath(root / path))
            return real.relative_to(root)
        except (ValueError, OSError):
            raise SandboxError(f"{path!r} does not lie inside the root directory of this tool") from None

    def open(self, path: str, *, stores: bool = False) -> BinaryIO:
        """Open a regular file for reading."""
        place = self.resolve(path, stores=stores)
        try:
            descriptor = self._opened(place)
        except FileNotFoundError:
            raise SandboxError(f"there is no file {path!r}") from None
        except OSError as error:
            raise SandboxError(f"{path!r} cannot be opened: {error.strerror}") from None
        if wrong := _unfit(os.fstat(descriptor)):
            os.close(descriptor)
            raise SandboxError(f"{path!r} {wrong}")
        return os.fdopen(descriptor, "rb")

    def directory(self, path: str) -> Path:
        """Where a directory lies, to run something in."""
        place = self._real_root() / self._inside(path)
        if not place.is_dir():
            raise SandboxError(f"there is no directory {path!r}")
        return place

    def write(self, path: str, data: bytes, *, append: bool = False, new: bool = False) -> None:
        """Write a regular file, whole or not at all, its directories made; `append` adds to one that may be there.

        A file that has other names (hard links) is replaced, never written through, and so is one that is a symlink's
        target only if that lies inside the root. `new`: SandboxError when there is one already.
        """
        place = self.resolve(path)
        if not place.parts:
            raise SandboxError(f"{path!r} is a directory")
        if why := why_kept(self._real_root() / place):
            raise SandboxError(f"{path!r} {why}, and is not written by tools")
        if len(place.parts) > DEEPEST:
            raise SandboxError(f"the path has {len(place.parts)} parts, and at most {DEEPEST} are made")
        try:
            with self._directory(place.parent, make=True) as here:
                _replace(here, place.name, data, append=append, new=new)
        except FileExistsError:
            raise SandboxError(f"there is a file {path!r} already") from None
        except OSError as error:
            raise SandboxError(f"{path!r} cannot be written: {error.strerror}") from None

    def files(self, directory: str) -> Iterator[str]:
        """The files below a directory, sorted, relative to the root; without hidden ones and linked directories."""
        root = self._real_root()
        place = self.resolve(directory)
        if not (root / place).is_dir():
            raise SandboxError(f"there is no directory {directory!r}")
        for parent, directories, names in os.walk(root / place):
            directories[:] = sorted(name for name in directories if not name.startswith(".") and _is_text(name))
            within = Path(parent).relative_to(root)
            shown = [name for name in sorted(names) if not name.startswith(".") and _is_text(name)]
            yield from ((within / name).as_posix() for name in shown)

    def _real_root(self) -> Path:
        return Path(os.path.realpath(self._root))

    def _opened(self, place: PurePath) -> int:
        with self._directory(place.parent) as here:
            return os.open(place.name or ".", os.O_RDONLY | FOLLOW_NONE | WITHOUT_WAITING, dir_fd=here)

    @contextmanager
    def _directory(self, place: PurePath, *, make: bool = False) -> Iterator[int]:
        """A directory's descriptor, reached from the root step by step, following no link."""
        with ExitStack() as held:
            root = self._real_root()
            if make:
                os.makedirs(root, exist_ok=True)
            here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, here)
            for step in place.parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=here)
                here = os.open(step, os.O_RDONLY | os.O_DIRECTORY | FOLLOW_NONE, dir_fd=here)
                held.callback(os.close, here)
            yield here


def _replace(here: int, name: str, data: bytes, *, append: bool, new: bool) -> None:
    """Put a file in the place of what is there: written beside it, then renamed over it, its permissions kept."""
    with ExitStack() as held:
        old = _there(here, name)
        if old is not None:
            held.enter_context(old)
            if new:
                raise FileExistsError
            if append and (wrong := _unfit(os.fstat(old.fileno()))):
                raise OSError(errno.EMLINK, f"it {wrong}")
        beside = f".{name[:64]}.{token_hex(6)}"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FOLLOW_NONE, 0o666, dir_fd=here)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if old is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(old.fileno()).st_mode) & 0o666)
                    if append:
                        _copy(old, file)
                file.write(data)
            os.rename(beside, name, src_dir_fd=here, dst_dir_fd=here)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=here)
            raise


def _copy(old: BinaryIO, file: BinaryIO) -> None:
    if os.fstat(old.fileno()).st_size > LARGEST_APPENDED:
        raise OSError(errno.EFBIG, f"it holds more than {LARGEST_APPENDED // 2**20} MiB, and is not added to")
    shutil.copyfileobj(old, file, 2**20)


def _there(here: int, name: str) -> BinaryIO | None:
    """The regular file of a name; None where there is nothing. OSError for anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | FOLLOW_NONE | WITHOUT_WAITING, dir_fd=here)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "what is there is no regular file")
    return os.fdopen(descriptor, "rb")


def _unfit(found: os.stat_result) -> str | None:
    """Why what was opened is not read: a file with another name may lie outside the root by that."""
    if stat.S_ISDIR(found.st_mode):
        return "is a directory"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    return "has other names (hard links), which may lie outside the root" if found.st_nlink > 1 else None


def _is_text(name: str) -> bool:
    """Whether a name can be told in JSON, so that it can be asked for."""
    return not any("\ud800" <= char <= "\udfff" for char in name)
