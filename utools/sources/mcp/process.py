"""An MCP server as a process of ours: its messages over its standard streams, and its end, with all that it started."""

import asyncio
import logging
import os
import re
import shutil
import signal
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from utools.errors import ToolError
from utools.sources.mcp.connection_monitor import ConnectionMonitor, Watched, WatchedWrites, quiet, unreadable
from utools.sources.mcp.limits import CROWDED, LONGEST, TOO_LONG, crowded

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

CHUNK = 2**16
GRACE = 2.0
"""Seconds that a server has to end when its input has, and then again when it is asked to."""
LAST_READ = 0.3
"""Seconds in which what a server wrote at its end is still read."""
POLL = 0.01
ENDS = 200
"""Bytes at either end of a line in which the id of an answer is looked for."""
ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')


class _Process(SubprocessStreamProtocol):
    """A started program with its streams. It leads a group, to which belongs what it starts itself."""

    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self) -> None:
        super().__init__(CHUNK, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        super().connection_made(transport)

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


@asynccontextmanager
async def over_pipes(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, watch: ConnectionMonitor
) -> AsyncIterator[Any]:
    """Start a server, with the library's short list of variables and these. ToolError if there is no such program.

    At the end, it and what it started are gone. The library's own way leaves what a server started, where the server
    itself has ended; and it takes a server that has died for one that lives as long as anything holds its output.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    quiet()
    program, variables = _program(command[0], cwd), {**get_default_environment(), **env}
    _, process = await asyncio.get_running_loop().subprocess_exec(
        _Process, program, *command[1:], env=variables, cwd=cwd, start_new_session=True
    )
    arriving, reads = anyio.create_memory_object_stream[Any](0)
    writes, leaving = anyio.create_memory_object_stream[Any](0)
    asked: set[Any] = set()
    listening = asyncio.create_task(_listened(process, arriving, watch, asked))
    telling = asyncio.create_task(_told(process, leaving, arriving, asked))
    try:
        yield Watched(reads, watch), WatchedWrites(writes, watch)
    finally:
        reads.close()
        writes.close()
        try:
            await _ended(process)
        finally:
            process.transport.close()
            await _left(listening, telling)
            arriving.close()
            leaving.close()


async def _listened(
    process: _Process, arriving: "MemoryObjectSendStream[Any]", watch: ConnectionMonitor, asked: set[Any]
) -> None:
    """Hand on what the server says, until it has ended, or has closed its output."""
    said = asyncio.create_task(_messages(process.stdout, arriving, watch, asked))
    errors = asyncio.create_task(_errors(process.stderr, watch))
    exited = asyncio.create_task(process.exited.wait())
    try:
        await asyncio.wait({said, exited}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({said, errors}, timeout=LAST_READ)
    finally:
        arriving.close()
        await _left(said, errors, exited)


async def _messages(
    stdout: asyncio.StreamReader, arriving: "MemoryObjectSendStream[Any]", watch: ConnectionMonitor, asked: set[Any]
) -> None:
    """Hand on each line that is a message. Of one that is too long only the ends are kept. When nobody takes them any
    more, the server can still get rid of them."""
    from anyio import BrokenResourceError, ClosedResourceError

    line, size = bytearray(), 0
    while not watch.why and (chunk := await stdout.read(CHUNK)):
        first, *others = chunk.split(b"\n")
        line += first
        size += len(first)
        for each in others:
            message = _message(line, watch, asked) if size <= LONGEST else _instead(line, TOO_LONG, watch, asked)
            if message is not None:
                with suppress(BrokenResourceError, ClosedResourceError):
                    await arriving.send(message)
            line, size = bytearray(each), len(each)
            if watch.why:
                return
        if size > LONGEST:
            line = line[:ENDS] + line[-ENDS:]


def _message(line: bytearray, watch: ConnectionMonitor, asked: set[Any]) -> "SessionMessage | None":
    """The message that a line holds, an error in place of an answer that cannot be read; None for anything else."""
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

    if crowded(line):
        return _instead(line, CROWDED, watch, asked)
    try:
        message = jsonrpc_message_adapter.validate_json(line.decode("utf-8", "replace"), by_name=False)
    except ValidationError as error:
        return _instead(line, _fault(error), watch, asked)
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        if message.id not in asked:
            watch.said(len(line))
        asked.discard(message.id)
    return SessionMessage(message)


def _instead(line: bytearray, why: str, watch: ConnectionMonitor, asked: set[Any]) -> "SessionMessage | None":
    """What is handed on instead of a line that cannot be read: an error where it is an answer, else nothing."""
    if (request := _answered(line)) in asked:
        asked.discard(request)
        return unreadable(request, why)
    logging.getLogger(__name__).debug("a line of an MCP server's output is no message that can be read")
    watch.said(len(line))
    return None


def _answered(line: bytearray) -> int | None:
    """The request that a line answers which is no sound message: the id stands at one end of it, as it is written."""
    ends = bytes(line[:ENDS] + b" " + line[-ENDS:])
    found = ID.search(ends) if line.lstrip().startswith(b"{") and b'"jsonrpc"' in ends else None
    return int(found[1]) if found and b'"method"' not in ends else None


def _fault(error: ValidationError) -> str:
    """What is wrong with an answer, without the answer."""
    first = error.errors(include_input=False, include_url=False)[0]
    return str(first["msg"]) if first["type"] == "json_invalid" else "it is no message of the protocol"


async def _errors(stderr: asyncio.StreamReader, watch: ConnectionMonitor) -> None:
    """Keep the end of it; a server that writes without end has to wait now and then."""
    while data := await stderr.read(CHUNK):
        watch.wrote(data)
        await asyncio.sleep(POLL)


async def _told(
    process: _Process,
    leaving: "MemoryObjectReceiveStream[Any]",
    arriving: "MemoryObjectSendStream[Any]",
    asked: set[Any],
) -> None:
    """Write each message to the server. Where that is not possible, no answer will come either."""
    from mcp_types import JSONRPCRequest

    try:
        async for each in leaving:
            if isinstance(each.message, JSONRPCRequest):
                asked.add(each.message.id)
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(f"{text}\n".encode())
            await process.stdin.drain()
    except (OSError, ValueError) as error:
        logging.getLogger(__name__).debug("an MCP server cannot be told anything: %r", error)
        arriving.close()


async def _ended(process: _Process) -> None:
    """End a server as its protocol says, by the end of its input; then whatever is left of its group, by signals."""
    group = process.transport.get_pid()
    process.stdin.close()
    await _until(process.exited.is_set)
    if _signalled(group, signal.SIGTERM):
        await _until(lambda: not _signalled(group, 0))
        _signalled(group, signal.SIGKILL)
    await _until(process.exited.is_set)


async def _until(true: Callable[[], bool]) -> None:
    """Wait until it is true, but no longer than GRACE."""
    for _ in range(round(GRACE / POLL)):
        if true():
            return
        await asyncio.sleep(POLL)


def _signalled(group: int, number: int) -> bool:
    """Send a signal to a group of processes; false if there is nothing left of it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _left(*tasks: "asyncio.Task[Any]") -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _program(name: str, cwd: Path) -> str:
    """Where a program lies: one with a slash beside the host's configuration, any other where PATH says.

    A link is not followed: `venv/bin/python` is one, and finds its packages by the name it is called by.
    """
    if not cwd.is_dir():
        raise ToolError(f"there is no directory {str(cwd)!r} to start it in")
    found = shutil.which(os.path.abspath(cwd / name) if os.sep in name else name)
    if found is None:
        raise ToolError(f"there is no program {name!r}; is it installed?")
    return found
