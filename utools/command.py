"""A command of this machine, run without a shell: in its own directory, environment and process group, to its end."""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from utools.errors import DefinitionError, ToolError
from utools.processes import open_process

LARGEST = 65_536
"""Bytes of each output that are stored, by default."""
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
"""The variables that a command inherits: it needs them to be found, and for its language."""
GIT_GUARD = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit"}
"""So that git takes no directory that a tool may have filled for a repository, and does what its `config` says."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended: its exit code (negative: the signal that killed it), and its output."""

    exit_code: int
    stdout: str
    stderr: str
    truncated: bool


def find_program(name: str, base: Path) -> str | None:
    """Return the path of a program: one with a slash is relative to `base`, any other is found by PATH. None without
    one.

    A link is not followed: `venv/bin/python` is one, and finds its packages by the name it is called by.
    """
    return shutil.which(os.path.abspath(base / name) if os.sep in name else name)


def check_program(name: str, base: Path, owner: str) -> None:
    """DefinitionError for a program that its owner cannot start on this host."""
    if find_program(name, base) is None:
        why = "there is no such executable file" if os.sep in name else "it is not installed on this host"
        raise DefinitionError(f"{owner} starts the program {name!r}: {why}")


async def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    largest: int = LARGEST,
) -> CommandResult:
    """Run a command to its end. ToolError when it cannot be started.

    `largest` bytes of each output are stored; the rest is read and dropped, so that the command does not hang on it.
    A cancelled call ends the command, and all that it has started in its process group.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    variables = {**inherited, **GIT_GUARD, "HOME": str(cwd), **(environment or {})}
    async with AsyncExitStack() as stack:
        try:
            transport, output = await stack.enter_async_context(
                open_process(lambda: _Output(largest), *argv, cwd=cwd, env=variables)
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ToolError("the command {program!r} cannot be started: {why}", program=argv[0], why=why) from None
        _write_stdin(transport, stdin)
        await output.exited.wait()
    stdout, stderr = (output.data[fd].decode("utf-8", "replace") for fd in (1, 2))
    return CommandResult(transport.get_returncode() or 0, stdout, stderr, output.truncated)


def _write_stdin(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    pipe = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))  # that of uvloop is no instance of it
    if not pipe.is_closing():  # as when the command has ended already; uvloop would raise
        pipe.write(data)
        pipe.close()


class _Output(asyncio.SubprocessProtocol):
    """The output of a command up to a size, and its end: asyncio's own streams would wait for its pipes too."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.data, self.truncated = {1: bytearray(), 2: bytearray()}, False
        self.exited, self.closed = asyncio.Event(), asyncio.Event()
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = self._largest - len(self.data[fd])
        self.data[fd] += data[:room]
        self.truncated = self.truncated or len(data) > room

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        self.exited.set()

    async def wait_ended(self) -> None:
        """Wait until the command has ended, and its output is read to the end."""
        await self.exited.wait()
        await self.closed.wait()
