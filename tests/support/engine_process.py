"""A program of another workflow engine, with all processes that it starts."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

SECONDS = 120.0
"""How long anything may take on a busy machine."""


@contextmanager
def running(words: Sequence[str | Path], *, log: Path, cwd: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Run a program until the end of the block, in a session of its own, all of which is killed then."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            words, cwd=cwd, env={**os.environ, **env}, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(happens: Callable[[], object], log: Path) -> None:
    """Wait until something happens; the log is shown where it does not."""
    last = time.monotonic() + SECONDS
    while not happens():
        assert time.monotonic() < last, log.read_text("utf-8")
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
