"""Sandbox: the files below one root, without hidden ones; protected paths are not written.

Symlinks are resolved before the check. Then the file is opened step by step from the root, following no link: a path
that is swapped in between is refused rather than followed.
"""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath
from secrets import token_hex
from typing import BinaryIO

from utools.errors import SandboxError
from utools.files.protected_paths import is_store, write_refusal
from utools.words.text import Text

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not hang
DEEPEST = 64
"""Parts of a path that is written: many programs can neither walk nor delete much deeper trees."""
HIDDEN = "."
"""How names of hidden files begin: secrets, and the configuration of other programs."""
LARGEST_APPENDED = 64 * 2**20
"""Bytes of a file that may be appended to: it is copied, so that the addition is there whole or not at all."""


class Sandbox:
    """The files below `root`. Errors are SandboxError and name a path as it was given, never the absolute path."""

    def __init__(self, root: str | os.PathLike[str] = ".") -> None:
        self._root = Path(root)

    def subdirectory(self, path: str | None) -> "Sandbox":
        """Return the sandbox of a directory below this one, which no symlink leads to; this sandbox itself for None."""
        return self if path is None else Sandbox(self._real_root() / self._without_links(path))

    def resolve(self, path: str, *, stores: bool = False) -> PurePath:
        """`path` relative to the root, with all symlinks resolved.

        SandboxError if it is hidden, or a store of the host, unless the caller asks for `stores`.
        """
        inside = self._inside(path)
        if is_store(self._real_root() / inside) and not stores:
            raise SandboxError("{path!r} is a store of this host, and not for tools", path=path)
        if hidden := next((part for part in inside.parts if part.startswith(HIDDEN)), None):
            raise SandboxError("{path!r} is hidden: {hidden!r} begins with a dot", path=path, hidden=hidden)
        return inside

    def _without_links(self, path: str) -> PurePath:
        """`path` relative to the root. An author's directory is where it is written, so that a host can bind it."""
        inside = self._inside(path)
        if inside != PurePath(os.path.normpath(path)) and not os.path.isabs(path):
            raise SandboxError("a symlink leads to the directory {path!r}; name the directory itself", path=path)
        return inside

    def _inside(self, path: str) -> PurePath:
        if not path or "\0" in path:
            raise SandboxError("{path!r} is not a path", path=path)
        root = self._real_root()
        try:
            real = Path(os.path.realpath(root / path))
            return real.relative_to(root)
        except (ValueError, OSError):
            raise SandboxError("{path!r} does not lie inside the root directory of this tool", path=path) from None

    def open(self, path: str, *, stores: bool = False) -> BinaryIO:
        """Open a regular file for reading."""
        inside = self.resolve(path, stores=stores)
        try:
            descriptor = self._open(inside)
        except FileNotFoundError:
            raise SandboxError("there is no file {path!r}", path=path) from None
        except OSError as error:
            raise SandboxError("{path!r} cannot be opened: {reason}", path=path, reason=error.strerror) from None
        if flaw := _flaw(os.fstat(descriptor)):
            os.close(descriptor)
            raise SandboxError("{path!r} {flaw}", path=path, flaw=flaw)
        return os.fdopen(descriptor, "rb")

    def directory(self, path: str) -> Path:
        """Return the absolute path of a directory, to run something in; no symlink leads to it."""
        directory = self._real_root() / self._without_links(path)
        if not directory.is_dir():
            raise SandboxError("there is no directory {path!r}", path=path)
        return directory

    def write(self, path: str, data: bytes, *, append: bool = False, new: bool = False) -> None:
        """Write a regular file, whole or not at all, and make its directories; `append` adds to an existing file.

        A file with other names (hard links) is replaced, never written through. The target of a symlink is written
        only if it is inside the root. `new`: SandboxError if the file exists.
        """
        inside = self.resolve(path)
        if not inside.parts:
            raise SandboxError("{path!r} is a directory", path=path)
        if refusal := write_refusal(self._real_root() / inside):
            raise SandboxError("{path!r} {refusal}, and is not written by tools", path=path, refusal=refusal)
        if len(inside.parts) > DEEPEST:
            raise SandboxError(
                "the path has {count} parts, and at most {most} are made", count=len(inside.parts), most=DEEPEST
            )
        try:
            with self._directory(inside.parent, make=True) as parent:
                _replace(parent, inside.name, data, append=append, new=new)
        except FileExistsError:
            raise SandboxError("there is a file {path!r} already", path=path) from None
        except OSError as error:
            raise SandboxError("{path!r} cannot be written: {reason}", path=path, reason=error.strerror) from None

    def files(self, directory: str) -> Iterator[str]:
        """Yield the files below a directory, sorted, relative to the root, without hidden files and linked
        directories."""
        root = self._real_root()
        inside = self.resolve(directory)
        if not (root / inside).is_dir():
            raise SandboxError("there is no directory {directory!r}", directory=directory)
        for parent, directories, names in os.walk(root / inside):
            directories[:] = sorted(name for name in directories if not name.startswith(".") and _is_text(name))
            parent_inside = Path(parent).relative_to(root)
            shown = [name for name in sorted(names) if not name.startswith(".") and _is_text(name)]
            yield from ((parent_inside / name).as_posix() for name in shown)

    def _real_root(self) -> Path:
        return Path(os.path.realpath(self._root))

    def _open(self, inside: PurePath) -> int:
        with self._directory(inside.parent) as parent:
            return os.open(inside.name or ".", os.O_RDONLY | NO_FOLLOW | NO_WAIT, dir_fd=parent)

    @contextmanager
    def _directory(self, inside: PurePath, *, make: bool = False) -> Iterator[int]:
        """The descriptor of a directory, opened from the root step by step, following no link."""
        with ExitStack() as descriptors:
            root = self._real_root()
            if make:
                os.makedirs(root, exist_ok=True)
            here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            descriptors.callback(os.close, here)
            for step in inside.parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=here)
                here = os.open(step, os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW, dir_fd=here)
                descriptors.callback(os.close, here)
            yield here


def _replace(parent: int, name: str, data: bytes, *, append: bool, new: bool) -> None:
    """Write a new file beside the old one and rename it over that, with the same permissions. What others add to it
    meanwhile is kept, and of those who write it as `new` one does."""
    if append or new:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(parent, fcntl.LOCK_EX)  # until the directory is closed
    with ExitStack() as files:
        old = _existing(parent, name)
        if old is not None:
            files.enter_context(old)
            if new:
                raise FileExistsError
            if append and (flaw := _flaw(os.fstat(old.fileno()))):
                raise OSError(errno.EMLINK, Text("it {flaw}", flaw=flaw))
        temporary = f".{name[:64]}.{token_hex(6)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o666, dir_fd=parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if old is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(old.fileno()).st_mode) & 0o666)
                    if append:
                        _copy(old, file)
                file.write(data)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)
            raise


def _copy(old: BinaryIO, file: BinaryIO) -> None:
    if os.fstat(old.fileno()).st_size > LARGEST_APPENDED:
        mib = LARGEST_APPENDED // 2**20
        raise OSError(errno.EFBIG, Text("it holds more than {mib} MiB, and is not added to", mib=mib))
    shutil.copyfileobj(old, file, 2**20)


def _existing(parent: int, name: str) -> BinaryIO | None:
    """Return the regular file with this name; None if there is none. OSError for anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | NO_FOLLOW | NO_WAIT, dir_fd=parent)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, Text("what is there is no regular file"))
    return os.fdopen(descriptor, "rb")


def _flaw(status: os.stat_result) -> Text | None:
    """Return why an opened file is not read; by another name (hard link) it may be outside the root."""
    if stat.S_ISDIR(status.st_mode):
        return Text("is a directory")
    if not stat.S_ISREG(status.st_mode):
        return Text("is not a regular file")
    return Text("has other names (hard links), which may lie outside the root") if status.st_nlink > 1 else None


def _is_text(name: str) -> bool:
    """Return whether a name can be written in JSON, so that a caller can ask for it."""
    return not any("\ud800" <= char <= "\udfff" for char in name)
