"""An MCP server as a process of ours: messages over its standard streams, and its end with all that it started.

Needs the extra `mcp`.
"""

import asyncio
import logging
import os
import signal
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from anyio import BrokenResourceError, ClosedResourceError, create_memory_object_stream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from utools.command import find_program
from utools.errors import ToolError
from utools.lazy_pattern import lazy_compile
from utools.processes import open_process
from utools.sources.mcp.connection_monitor import LINE_SHOWN, ConnectionMonitor
from utools.sources.mcp.limits import CROWDED, LONGEST, TOO_LONG, is_crowded
from utools.sources.mcp.odd_lines import find_answer, mend_surrogates
from utools.sources.mcp.streams import MonitoredReads, MonitoredWrites, mute_library_logs, unreadable_answer

log = logging.getLogger(__name__)

CHUNK = 2**16
GRACE = 2.0
"""Seconds that a server has to end after its input has ended, and then again after SIGTERM."""
LAST_READ = 0.3
"""Seconds in which the last output of a server is still read."""
POLL = 0.01
ENDS = 200
"""Bytes at either end of a line in which the id of an answer is looked for."""
ID = lazy_compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')


class _Process(SubprocessStreamProtocol):
    """A started program with its streams. It leads a process group, to which belongs what it starts itself."""

    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter  # pyright: ignore[reportIncompatibleVariableOverride]
    stdout: asyncio.StreamReader  # pyright: ignore[reportIncompatibleVariableOverride]
    stderr: asyncio.StreamReader  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self) -> None:
        super().__init__(CHUNK, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.SubprocessTransport, transport)  # that of uvloop is no instance of it
        super().connection_made(transport)

    def has_exited(self) -> bool:
        """Return whether the program has ended, even if the event loop has not been told yet."""
        if self.exited.is_set() or not hasattr(os, "waitid"):
            return self.exited.is_set()
        try:
            return os.waitid(os.P_PID, self.transport.get_pid(), os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # the loop's watcher has taken the news
            return True

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()

    async def wait_ended(self) -> None:
        """Wait until the program has ended."""
        await self.exited.wait()


@asynccontextmanager
async def open_pipes(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, monitor: ConnectionMonitor
) -> AsyncIterator[Any]:
    """Start a server, with the library's short list of variables and `env`. ToolError if there is no such program.

    At the end, the server and what it started are gone. The library's own transport leaves what a server started where
    the server itself has ended, and takes a dead server for a living one as long as anything holds its output open.
    """
    mute_library_logs()
    program, variables = _find_program(command[0], cwd), {**get_default_environment(), **env}
    async with open_process(_Process, program, *command[1:], env=variables, cwd=cwd) as (_, process):
        monitor.has_exited = process.has_exited
        incoming, reads = create_memory_object_stream[Any](0)
        writes, outgoing = create_memory_object_stream[Any](0)
        pipes = _Pipes(process, incoming, monitor)
        reading, writing = asyncio.create_task(pipes.read()), asyncio.create_task(pipes.write(outgoing))
        try:
            yield MonitoredReads(reads, monitor), MonitoredWrites(writes, monitor)
        finally:
            reads.close()
            writes.close()
            try:
                await _end_process(process)
            finally:
                process.transport.close()
                await _cancel(reading, writing)
                incoming.close()
                outgoing.close()


class _Pipes:
    """The messages of one server: a line each. `_asked` holds the ids of our requests that have no answer yet."""

    def __init__(self, process: _Process, incoming: MemoryObjectSendStream[Any], monitor: ConnectionMonitor) -> None:
        self._process, self._incoming, self._monitor = process, incoming, monitor
        self._asked: set[Any] = set()

    async def read(self) -> None:
        """Hand on what the server sends, until it has ended, or has closed its output."""
        messages = asyncio.create_task(self._read_messages())
        errors = asyncio.create_task(self._read_stderr())
        exited = asyncio.create_task(self._process.exited.wait())
        try:
            await asyncio.wait({messages, exited}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({messages, errors}, timeout=LAST_READ)
        finally:
            self._incoming.close()
            await _cancel(messages, errors, exited)

    async def write(self, outgoing: MemoryObjectReceiveStream[Any]) -> None:
        """Write each message to the server. Where that is not possible, no answer will come either."""
        try:
            async for each in outgoing:
                if isinstance(each.message, JSONRPCRequest):
                    self._asked.add(each.message.id)
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(f"{text}\n".encode())
                await self._process.stdin.drain()
        except (OSError, ValueError) as error:
            log.debug("a message to an MCP server cannot be written: %r", error)
            self._incoming.close()

    async def _read_messages(self) -> None:
        """Hand on each line that is a message. Of a line that is too long only the ends are stored. When nobody takes
        the messages any more, they are still read, so that the server does not hang."""
        line, size = bytearray(), 0
        while not self._monitor.reason and (chunk := await self._process.stdout.read(CHUNK)):
            first, *others = chunk.split(b"\n")
            line += first
            size += len(first)
            for each in others:
                message = self._parse(line) if size <= LONGEST else self._replace(line, TOO_LONG)
                if message is not None:
                    with suppress(BrokenResourceError, ClosedResourceError):
                        await self._incoming.send(message)
                line, size = bytearray(each), len(each)
                if self._monitor.reason:
                    return
            if size > LONGEST:
                line = line[:ENDS] + line[-ENDS:]

    def _parse(self, line: bytearray) -> SessionMessage | None:
        """Return the message on a line; an error in place of an answer that cannot be read; None for anything else."""
        if is_crowded(line):
            return self._replace(line, CROWDED)
        try:
            text = mend_surrogates(bytes(line)).decode("utf-8", "replace")
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValidationError as error:
            answer = find_answer(line, self._asked)
            if answer is None or not isinstance(answer.get("result", {}), dict):
                return self._replace(line, _explain(error))
            message = jsonrpc_message_adapter.validate_python(answer, by_name=False)
        self._monitor.note_unread(b"")
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            own = int(message.id) if isinstance(message.id, str) and message.id.isdecimal() else message.id
            if own not in self._asked:
                self._monitor.count_unsolicited(len(line))
            self._asked.discard(own)
        return SessionMessage(message)

    def _replace(self, line: bytearray, why: str) -> SessionMessage | None:
        """Return what is handed on instead of a line that cannot be read: an error where it is an answer, else
        nothing."""
        if (request := _find_answered(line)) in self._asked:
            self._asked.discard(request)
            return unreadable_answer(request, why)
        log.debug("a line of an MCP server's output is no message that can be read")
        self._monitor.note_unread(bytes(line[:LINE_SHOWN]))
        self._monitor.count_unsolicited(len(line))
        return None

    async def _read_stderr(self) -> None:
        """Store the end of it; a server that writes without end has to wait now and then."""
        while data := await self._process.stderr.read(CHUNK):
            self._monitor.add_stderr(data)
            await asyncio.sleep(POLL)


def _find_answered(line: bytearray) -> int | None:
    """Return the id of the request that a damaged line answers: it is looked for at both ends, as it is written."""
    ends = bytes(line[:ENDS] + b" " + line[-ENDS:])
    found = ID.search(ends) if line.lstrip().startswith(b"{") and b'"jsonrpc"' in ends else None
    return int(found[1]) if found and b'"method"' not in ends else None


def _explain(error: ValidationError) -> str:
    """Return what is wrong with an answer, without the answer."""
    first = error.errors(include_input=False, include_url=False)[0]
    return str(first["msg"]) if first["type"] == "json_invalid" else "it is no message of the protocol"


async def _end_process(process: _Process) -> None:
    """End a server as its protocol says, by the end of its input; then whatever is left of its group, by signals."""
    group = process.transport.get_pid()
    process.stdin.close()
    await _wait_until(process.exited.is_set)
    if _signal_group(group, signal.SIGTERM):
        await _wait_until(lambda: not _signal_group(group, 0))
        _signal_group(group, signal.SIGKILL)
    await _wait_until(process.exited.is_set)


async def _wait_until(condition: Callable[[], bool]) -> None:
    """Wait until it holds, but no longer than GRACE."""
    for _ in range(round(GRACE / POLL)):
        if condition():
            return
        await asyncio.sleep(POLL)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a group of processes; False if there is nothing left of it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _cancel(*tasks: "asyncio.Task[Any]") -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _find_program(name: str, cwd: Path) -> str:
    if not cwd.is_dir():
        raise ToolError("there is no directory {directory!r} to start it in", directory=str(cwd))
    found = find_program(name, cwd)
    if found is None:
        raise ToolError("there is no program {name!r}; is it installed?", name=name)
    return found
