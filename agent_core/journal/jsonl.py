"""The journal as a text file of one run: one line for each row, safe to append from any process."""

import errno
import fcntl
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Final

from agent_core.errors import JournalError
from agent_core.journal import jsonl_format as lines
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.record import Row, Tape, by_path
from agent_core.journal.rows_to_append import End, is_last_new, rows_to_append
from agent_core.journal.storage_errors import PATIENCE_S, explain
from utools.databases.store_address import check_file
from utools.files.protected_paths import protect_store
from utools.threads import Threads

_APPEND: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT
PAUSE_S: Final = 0.001
"""Seconds between two attempts at a lock that another process holds."""


class JsonlJournal:
    """A `Journal` of one run in one file, made at the first append and readable by its owner alone.

    A write that died half-way leaves a torn last line: reading leaves it out, the next append cuts it off. Nothing
    stays open between calls.

    Args:
        path: The file.
        patience: Seconds to wait for other writers.

    Attributes:
        path: The file.

    Example:
        ```python
        from agent_core import JsonlJournal, run_agent_sync, verify
        from agent_core.models import ScriptedModel

        config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "What is an oasis?"}
        model = ScriptedModel(['{"type":"final","answer":"A spring in the desert."}'])
        run_agent_sync(config, registry=[], model=model, journal=JsonlJournal("run.jsonl"))
        assert verify("run.jsonl").ok
        ```
    """

    threads: Threads | None = None
    """Its verbs are called in the event loop itself: they wait for no network."""
    identity: StoreIdentity | None = None
    """It is no store that others could take for another."""

    def __init__(self, path: str | os.PathLike[str], *, patience: float = PATIENCE_S) -> None:
        check_file(path, where="journal")
        self.path, self._patience = Path(path), patience
        protect_store(self.path)
        self._known = _Known(self.path)
        self._mutex = Lock()

    def load(self, run: str) -> Tape:
        """Return the rows of a run by strand; empty for an unknown run.

        Args:
            run: The run's id.
        """
        return by_path(row for of, row in self._rows() if of == run)

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        """Append all rows or none, as `Journal.append` says.

        Args:
            run: The run's id.
            rows: Rows, each for the end of its strand.

        Returns:
            Whether the last row is new.

        Raises:
            Lost: Another row is in the place of one.
            JournalError: The rows cannot be written.
        """
        if not rows:
            return False
        with self._mutex, _open_locked(self.path, _APPEND, fcntl.LOCK_EX, self._patience) as fd:
            # Whatever fails from here on, the next call reads the whole file again.
            known, self._known = self._known, _Known(self.path)
            known = known.catch_up(fd)
            if known.run not in (None, run):
                raise JournalError(f"{self.path} holds run {known.run!r}: give run {run!r} a file of its own")
            new = rows_to_append(run, rows, known.last, known.holds)
            if new:
                data = b"".join(lines.write_line(run, row) for row in new)
                _write(fd, data, known.size)
                known.add(run, new)
                known.pass_over(data)
            self._known = known
        return is_last_new(rows, new)

    def runs(self) -> list[str]:
        """Return the ids of the runs, oldest first."""
        return list(dict.fromkeys(run for run, _ in self._rows()))

    def delete(self, run: str) -> bool:
        """Delete the run, and leave an empty file, since another process may wait to write to this very one.

        Args:
            run: The run's id. It should have ended: a driver at work would begin it anew.

        Returns:
            Whether there was such a run.
        """
        if not os.path.exists(self.path):
            return False
        with self._mutex, _open_locked(self.path, os.O_RDWR, fcntl.LOCK_EX, self._patience) as fd:
            found = {of for of, _ in _whole_rows(_read(fd, 0), 1, self.path)}
            if run not in found:
                return False
            if len(found) > 1:
                raise JournalError(f"{self.path} holds several runs, which no journal wrote: verify it")
            os.ftruncate(fd, 0)
        return True

    def close(self) -> None:
        """Do nothing: nothing is open between calls."""

    def _rows(self) -> Iterator[tuple[str, Row]]:
        return _whole_rows(read_file(self.path), 1, self.path)


def read_file(path: Path) -> bytes:
    """Return all bytes of a journal file, read while no process writes; empty if the file is missing."""
    if not os.path.exists(path):
        return b""
    with _open_locked(path, os.O_RDONLY, fcntl.LOCK_SH) as fd:
        return _read(fd, 0)


class _Known:
    """What a journal object knows of its file: how far it has read, and the hashes of each strand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inode = 0
        self.size = 0
        self.mark = (0, b"")
        self.lines = 0
        self.run: str | None = None
        self.hashes: dict[str, list[bytes]] = {}

    def count(self, path: str) -> int:
        return len(self.hashes.get(path, ()))

    def last(self, path: str) -> End | None:
        hashes = self.hashes.get(path)
        return (len(hashes), hashes[-1]) if hashes else None

    def holds(self, row: Row) -> bool:
        return self.hashes.get(row.path, [])[row.n : row.n + 1] == [row.hash]

    def add(self, run: str, rows: Sequence[Row]) -> None:
        self.run = run
        self.lines += len(rows)
        for row in rows:
            self.hashes.setdefault(row.path, []).append(row.hash)

    def pass_over(self, data: bytes) -> None:
        """Count the whole lines of `data`, and note the beginning of the last one: its hash proves its strand."""
        if end := data.rfind(b"\n") + 1:
            start = data.rfind(b"\n", 0, end - 1) + 1
            self.mark = (self.size + start, data[start : data.index(lines.RECORD, start)])
            self.size += end

    def is_of(self, fd: int, status: os.stat_result) -> bool:
        """Return whether this is still the known file: neither another one, nor emptied and written again."""
        at, mark = self.mark
        same = self.inode == status.st_ino and self.size <= status.st_size
        return same and os.pread(fd, len(mark), at) == mark

    def catch_up(self, fd: int) -> "_Known":
        """This, with what others have appended since; new when the path has another file by now."""
        status = os.fstat(fd)
        known = self if self.is_of(fd, status) else _Known(self.path)
        known.inode = status.st_ino
        if known.size < status.st_size:
            data = _read(fd, known.size)
            for run, row in _whole_rows(data, known.lines + 1, self.path):
                if row.n != known.count(row.path) or run != (known.run or run):
                    raise JournalError(f"line {known.lines + 1} of {self.path} is out of place: verify it")
                known.add(run, [row])
            known.pass_over(data)
        return known


def _whole_rows(data: bytes, first: int, path: Path) -> Iterator[tuple[str, Row]]:
    for line in lines.read_lines(data, first):
        if line.row is None:
            hint = "verify it, or choose another file for the run"
            raise JournalError(f"line {line.number} of {path} is no journal line: {hint}")
        yield line.run, line.row


@contextmanager
def _open_locked(path: Path, flags: int, lock: int, patience: float = PATIENCE_S) -> Generator[int, None, None]:
    try:
        fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            _lock(fd, lock, patience)
            yield fd
        finally:
            os.close(fd)
    except OSError as error:
        doing = "write to" if flags & os.O_RDWR else "read"
        raise JournalError(f"cannot {doing} journal {path}: {explain(path, error, patience=patience)}") from error


def _lock(fd: int, lock: int, patience: float) -> None:
    """Lock the file. A process that hangs with the lock must not make all others hang."""
    for _ in range(round(patience / PAUSE_S)):
        try:
            fcntl.flock(fd, lock | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            sleep(PAUSE_S)
    fcntl.flock(fd, lock | fcntl.LOCK_NB)


def _read(fd: int, offset: int) -> bytes:
    parts: list[bytes] = []
    while part := os.pread(fd, 1 << 30, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def _write(fd: int, data: bytes, size: int) -> None:
    """Put `data` after the first `size` bytes in one write, or leave exactly those."""
    if os.fstat(fd).st_size > size:
        os.ftruncate(fd, size)
    written = os.write(fd, data)
    if written < len(data):
        os.ftruncate(fd, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
