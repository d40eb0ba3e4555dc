"""Calls to one MCP server: it is started when it is needed, and started anew when it has ended.

All of it runs in one event loop.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utools.errors import ToolError
from utools.lazy_pattern import lazy_compile
from utools.sources.mcp.config import McpServer
from utools.sources.mcp.connection_monitor import ConnectionMonitor, State
from utools.sources.mcp.documents import read_document
from utools.sources.mcp.failure import SHOWN, Meaning, exception_of, explain_unsound, meaning_of
from utools.sources.mcp.http_exchange import HttpExchange, record_exchange
from utools.sources.mcp.raw_results import unwrap_result
from utools.sources.mcp.session import CLOSING, McpSession
from utools.sources.pinned_source import check_unchanged
from utools.sources.tool_lock_file import Definition
from utools.words.text import Text

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

READY_PART = 0.9
"""The part of a call's time in which its server has to be ready. When all of the time is over, a call counts as in
doubt, even one that was never sent."""
UNAUTHORIZED, FAILED = 401, 400
"""HTTP statuses from the second on may be due to a session that is lost."""
NO_SESSION = lazy_compile(r"\bsession\b.{0,40}\b(not found|expired|unknown|invalid|terminated|closed)\b", re.I)
SETTLING = 1.0
"""Seconds in which a connection that the library calls closed has ended, if it is."""
Progress = Callable[[float, float | None, str | None], None]


class _UndoneError(ToolError):
    """What was asked has surely not been done: the server had ended before, or knows nothing of this session, since it
    was started anew."""


class McpConnection:
    """What a host knows of one server: the session that takes calls, and those that are still open."""

    def __init__(self, name: str, server: McpServer, *, base: Path, secret: Callable[[str], str]) -> None:
        self._name, self._server = name, server
        self._base, self._secret = base, secret
        self._session: McpSession | None = None
        self._open: set[McpSession] = set()
        self._closed = False
        self._starting = asyncio.Lock()

    async def definitions(self) -> list[Definition]:
        """Return the tools that the server offers now. ToolError if it cannot be reached."""
        return list((await self._ready_session()).definitions.values())

    async def call(
        self,
        approved: Definition,
        args: Mapping[str, Any],
        *,
        seconds: float,
        within: float | None = None,
        report: Progress,
    ) -> Any:
        """Return the result that the server sends in so many seconds, as JSON; `within` bounds the whole, with its
        start.

        ToolError if it refuses, or cannot be reached or is not ready in time, or if the tool is no longer the one that
        was approved; ConnectionResetError if it ends in mid-call, TimeoutError if it takes too long.
        """
        _check_encodable(args)
        ready_by = None if within is None else asyncio.get_running_loop().time() + within * READY_PART
        try:
            return await self._call_once(approved, dict(args), seconds, ready_by, report)
        except _UndoneError:
            return await self._call_once(approved, dict(args), seconds, ready_by, report)

    async def read(self, document: Mapping[str, Any], *, seconds: float) -> str:
        """Return what a resource ({uri}) or a prompt ({name, arguments}) of the server says, in so many seconds.

        ToolError if the server refuses or cannot be reached, or if it is no text; ConnectionError if it ends meanwhile,
        TimeoutError if it takes too long.
        """
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._read_once(document)
                except (_UndoneError, ConnectionResetError):  # reading changes nothing
                    return await self._read_once(document)
        except TimeoutError:
            raise self._too_late(seconds) from None

    async def close(self) -> None:
        """End the connection for good, and the server if it was started."""
        self._session, self._closed = None, True
        for session in self._open:
            session.leave()
        if tasks := [session.task for session in self._open]:
            await asyncio.wait(tasks, timeout=CLOSING)

    async def _call_once(
        self, approved: Definition, args: dict[str, Any], seconds: float, ready_by: float | None, report: Progress
    ) -> Any:
        session = await self._ready_session_by(ready_by)
        check_unchanged(f"mcp_servers/{self._name}", approved, session.definitions.get(approved.name))
        session.calls += 1
        try:
            async with asyncio.timeout(seconds):
                return await self._send(session, approved.name, args, report)
        except TimeoutError:
            session.doubt()  # a server that hangs answers no question either
            raise self._too_late(seconds) from None
        except asyncio.CancelledError:  # as the deadline of a call ends it
            session.doubt()
            raise
        finally:
            session.finish_call()

    async def _read_once(self, document: Mapping[str, Any]) -> str:
        from mcp.shared.exceptions import MCPError

        session = await self._ready_session()
        session.calls += 1
        with record_exchange() as exchange:
            try:
                return await read_document(session.client, document)
            except MCPError as error:
                raise await self._explain(session, error, exchange) from None
            except (RuntimeError, ValueError) as error:
                text = explain_unsound(error)
                raise ToolError("the MCP server {name} refused: {text}", name=self._name, text=text) from None
            finally:
                session.finish_call()

    def _too_late(self, seconds: float) -> TimeoutError:
        return TimeoutError(
            Text(
                "the MCP server {server} gave no answer within {seconds:g} seconds",
                server=self._name,
                seconds=seconds,
            )
        )

    async def _send(self, session: McpSession, tool: str, args: dict[str, Any], report: Progress) -> Any:
        from mcp.shared.exceptions import MCPError

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(progress, total, message)

        with record_exchange() as exchange:
            try:
                answer = await session.client.call_tool(tool, args, progress_callback=on_progress)
                return unwrap_result(answer.meta) or answer.model_dump(by_alias=True)
            except MCPError as error:
                raise await self._explain(session, error, exchange) from None
            except (RuntimeError, ValueError) as error:  # an answer that breaks the protocol, or its own schema
                text = explain_unsound(error)
                raise ToolError(
                    "the answer of the MCP server {server} is not sound: {text}", server=self._name, text=text
                ) from None

    async def _explain(self, session: McpSession, error: "MCPError", exchange: HttpExchange) -> Exception:
        """Return the exception that an error of the library stands for."""
        if not exchange.begun:
            return _UndoneError("the MCP server {name} ended before the call was sent", name=self._name, transient=True)
        if exchange.unknown_session and await _is_forgotten(session):
            text = error.message[:SHOWN]
            return _UndoneError("the MCP server {name} refused: {text}", name=self._name, text=text)
        if exchange.status == UNAUTHORIZED:  # the next session reads the secrets as they are by then
            session.forget()
        elif exchange.status >= FAILED or NO_SESSION.search(error.message):
            session.doubt()
        looks_closed = meaning_of(error, exchange.status) is Meaning.CLOSED
        closed = looks_closed and await _has_ended(session.monitor)
        found = exception_of(self._name, error, exchange, closed=closed, secrets=self._server.secret_names)
        words = session.monitor.last_words()
        return type(found)(Text("{found}{words}", found=found, words=words)) if closed else found

    async def _ready_session_by(self, ready_by: float | None) -> McpSession:
        """Return the READY session; ToolError if it is not to be had by then, since nothing has been sent."""
        try:
            async with asyncio.timeout_at(ready_by):
                return await self._ready_session()
        except TimeoutError:
            raise ToolError(
                "the MCP server {server} was not ready in the time of this call, which has not been sent",
                server=self._name,
                transient=True,
            ) from None

    async def _ready_session(self) -> McpSession:
        """Return the READY session, started if need be, with a list of tools that is not too old."""
        async with self._starting:
            if self._closed:
                raise ToolError("the MCP server {server} cannot be used: its host is closing it", server=self._name)
            session = self._session
            if session is not None and session.state is State.READY:
                await session.refresh()
            if session is not None and session.state is State.READY:
                return session
            if session is not None and session.state is State.ENDED:  # a FORGOTTEN one ends with its last call
                await session.wait_closed()
            return await self._start_session()

    async def _start_session(self) -> McpSession:
        self._session = session = McpSession(self._name, self._server, base=self._base, secret=self._secret)
        self._open.add(session)
        session.task.add_done_callback(lambda done: self._open.discard(session))
        await session.wait_ready()
        return session


async def _is_forgotten(session: McpSession) -> bool:
    """Return whether the server knows nothing of the session: then it does not answer a harmless question either.

    The status of a call alone does not tell: a server may well have carried out what it then answers with a 404.
    """
    from mcp.shared.exceptions import MCPError

    if session.state is State.FORGOTTEN:
        return True
    with record_exchange() as exchange, suppress(MCPError, RuntimeError, ValueError):
        await session.client.list_tools()
    if exchange.unknown_session:
        session.forget()
    return exchange.unknown_session or session.monitor.state is State.FORGOTTEN


async def _has_ended(monitor: ConnectionMonitor) -> bool:
    """Return whether a connection has ended, when all that was under way with it has come to rest."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLING):
            await monitor.ended.wait()
    return monitor.ended.is_set()


def _check_encodable(args: Mapping[str, Any]) -> None:
    """ToolError for what no message can hold: the library would give up the connection, with all its calls."""
    try:
        json.dumps(args, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolError("the arguments hold a lone surrogate, which is not text") from None
