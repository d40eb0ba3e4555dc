"""serve_stdio(): the server over standard streams, until its client closes them or the process is told to end."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, BinaryIO, Final, cast

import anyio
from mcp.server.stdio import stdio_server

from engine_shim.mcp_server.server import build_server
from engine_shim.service.service import Service
from utools.lazy_pattern import lazy_compile

AHEAD: Final = 64
"""Lines that are read before others have been taken."""
GRACE_S: Final = 1.0
"""How long what is under way may take to end: a client waits two seconds before it kills its server."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


HALF: Final = lazy_compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""An escaped backslash or a whole character of two escapes, which stay; else, as group 1, half of one."""


class Lines:
    """The lines of a stream, read by a thread for which nothing has to wait: neither a task nor the process's end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._loop = stream, asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(AHEAD)
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        with suppress(OSError, RuntimeError):  # the loop is closed
            for line in self._stream:
                for message in split_batch(replace_halves(line.decode("utf-8", "replace"))):
                    self._put(message)
            self._put(None)

    def _put(self, line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


def replace_halves(line: str) -> str:
    """Return a line of JSON with a mark in place of each half of a character, as bytes that are none have it: clients
    cut texts within one, and the library passes a message with it over, so that its call would wait for ever."""
    return HALF.sub(lambda found: found[0] if found[1] is None else r"\ufffd", line) if r"\u" in line else line


def split_batch(line: str) -> list[str]:
    """Return the messages of a line, each as a line: clients of 2025-03-26 may send several as one list, which the
    library would pass over as well."""
    if not line.lstrip().startswith("["):
        return [line]
    try:
        return [json.dumps(message) + "\n" for message in json.loads(line)]
    except (ValueError, RecursionError):
        return [line]


async def serve_stdio(service: Service, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve the client at these streams. Nothing else may write to `stdout`."""
    service.grace = GRACE_S
    async with service.running():
        serving = asyncio.create_task(_serve(service, stdin, stdout))
        with _cancelled_by_signals(serving), suppress(asyncio.CancelledError):
            await serving


async def _serve(service: Service, stdin: BinaryIO, stdout: BinaryIO) -> None:
    server = build_server(service)
    out = anyio.wrap_file(TextIOWrapper(stdout, encoding="utf-8", newline="\n"))
    try:
        async with stdio_server(cast(Any, Lines(stdin)), out) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client is gone


@contextmanager
def _cancelled_by_signals(task: "asyncio.Task[None]") -> Iterator[None]:
    """Let SIGINT and SIGTERM cancel a task, where the platform can do it."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):
        for each in SIGNALS:
            loop.add_signal_handler(each, task.cancel)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for each in SIGNALS:
                loop.remove_signal_handler(each)


def take_stdin() -> BinaryIO:
    """Return the process's stdin under another descriptor: what tools and children read from theirs is empty."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return open(own, "rb")
