"""A command of this machine, run without a shell: in its own directory, environment and process group, with an end."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from utools.errors import ToolError

LARGEST = 65_536
"""Bytes of each output that are kept, by default."""
LEFT_SECONDS = 1.0
KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
"""What a command needs of the environment to be found and to speak; nothing else of it is handed on."""
CAUTION = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit"}
"""So that git takes no directory that a tool may have filled for a repository, and does what its `config` says."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: its exit code (negative: the signal that killed it), and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    largest: int = LARGEST,
) -> Ran:
    """Run a command to its end. ToolError when it cannot be started.

    `largest` bytes of each output are kept; the rest is read and dropped, so that the command does not hang on it.
    Whoever cancels this ends the command, and all that it has started in its process group.
    """
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {**kept, **CAUTION, "HOME": str(cwd), **(environment or {})}
    loop = asyncio.get_running_loop()
    try:
        transport, heard = await loop.subprocess_exec(
            lambda: _Heard(largest), *argv, cwd=cwd, env=own, start_new_session=True
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ToolError(f"the command {argv[0]!r} cannot be started: {why}") from None
    try:
        _tell(transport, stdin)
        await heard.exited.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(transport.get_pid(), signal.SIGKILL)  # what it left behind, or all of it when it was cancelled
        with suppress(TimeoutError):  # what has fled its group may hold the pipes open for ever
            async with asyncio.timeout(LEFT_SECONDS):
                await heard.exited.wait()
                await heard.closed.wait()
        transport.close()
    told = {fd: written.decode("utf-8", "replace") for fd, written in heard.written.items()}
    return Ran(transport.get_returncode() or 0, told[1], told[2], heard.truncated)


def _tell(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(data)
        pipe.close()


class _Heard(asyncio.SubprocessProtocol):
    """What a command writes, as far as it is kept, and when it ends: asyncio's own streams wait for its pipes too."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.written, self.truncated = {1: bytearray(), 2: bytearray()}, False
        self.exited, self.closed = asyncio.Event(), asyncio.Event()
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = self._largest - len(self.written[fd])
        self.written[fd] += data[:room]
        self.truncated = self.truncated or len(data) > room

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        self.exited.set()
