"""Files that are there whole or not at all, and directories in which one process writes at a time."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

MODE = 0o644


def replace_file(path: Path, data: bytes) -> None:
    """Write a file, in place of what was there. OSError where that cannot be done."""
    name = _write_beside(path, data)
    try:
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def create_file(path: Path, data: bytes) -> None:
    """Write a file that outlives the machine. FileExistsError, with nothing changed, where there is one already."""
    name = _write_beside(path, data)
    try:
        os.link(name, path)
    finally:
        os.unlink(name)
    _sync_directory(path.parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes that lock this directory waiting."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Keep others that change a file waiting, by whatever link they reach it. It goes on without a lock where there can
    be none, as on many file systems of a network; what is wrong with the directory itself is told by who writes
    there."""
    with ExitStack() as lock:
        with suppress(OSError):
            lock.enter_context(locked(Path(os.path.realpath(path)).parent))
        yield


def _write_beside(path: Path, data: bytes) -> str:
    """Write a file under a private name, in the directory of `path`; gives its name."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}."[:100], suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, MODE)
    except BaseException:
        os.unlink(name)
        raise
    return name


def _sync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
