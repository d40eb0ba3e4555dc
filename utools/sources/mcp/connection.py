"""One MCP server as it is spoken to: started when it is needed, watched, and started anew when it has ended.

All of it runs in one event loop. A task of its own holds the connection open, since what opened it must close it.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utools.errors import DefinitionError, ToolError
from utools.net.outgoing_secrets import secret_headers
from utools.sources.mcp.config import McpServer
from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.failure import SHOWN, failure, looks_closed
from utools.sources.mcp.http import Sent, over_http, recorded
from utools.sources.mcp.listing import listed
from utools.sources.mcp.live import McpSession
from utools.sources.mcp.process import over_pipes
from utools.sources.mcp.secrets import redactor_for
from utools.sources.pinned_source import check_unchanged
from utools.sources.tool_lock_file import Definition

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.shared.exceptions import MCPError

WAITS = 0.9
"""The part of a call's time in which its server has to be ready. When all of it is over, a call counts as in doubt,
even one that was never sent."""
CLOSING = 10.0
SETTLES = 1.0
"""Seconds in which a connection that the library calls closed has ended, if it is."""
Progress = Callable[[float, float | None, str | None], None]


class _Forgotten(ToolError):
    """The server knows nothing of this session, since it was started anew: what was asked has not been done."""


class McpConnection:
    """What a host knows of one server. All methods belong to one event loop."""

    def __init__(self, name: str, server: McpServer, *, base: Path, secret: Callable[[str], str]) -> None:
        self.name, self.server = name, server
        self._base, self._secret = base, secret
        self._live: McpSession | None = None
        self._open: set[McpSession] = set()
        self._closed = False
        self._starting = asyncio.Lock()

    async def definitions(self) -> list[Definition]:
        """The tools that the server offers now. ToolError if it cannot be reached."""
        return list((await self._connected()).definitions.values())

    async def call(
        self,
        approved: Definition,
        args: Mapping[str, Any],
        *,
        seconds: float,
        within: float | None = None,
        progress: Progress,
    ) -> Any:
        """What the server answers in so many seconds; `within` bounds the whole, with the start of the server.

        ToolError if it refuses, or cannot be reached or is not ready in time, or if the tool is no longer the one that
        was approved; ConnectionResetError if it ends in mid-call, TimeoutError if it takes too long.
        """
        _check_text(args)
        until = None if within is None else asyncio.get_running_loop().time() + within * WAITS
        try:
            return await self._called(approved, dict(args), seconds, until, progress)
        except _Forgotten:
            return await self._called(approved, dict(args), seconds, until, progress)

    async def _called(
        self, approved: Definition, args: dict[str, Any], seconds: float, until: float | None, tell: Progress
    ) -> Any:
        live = await self._connected_until(until)
        check_unchanged(f"mcp_servers/{self.name}", approved, live.definitions.get(approved.name))
        live.calls += 1
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(live, approved.name, args, tell)
        except TimeoutError:
            raise TimeoutError(f"the MCP server {self.name} gave no answer within {seconds:g} seconds") from None
        finally:
            live.calls -= 1
            if live.forgotten and not live.calls:
                live.watch.end()

    async def close(self) -> None:
        """End the connection for good, and the server if it was started."""
        self._live, self._closed = None, True
        for live in self._open:
            live.leave()
        if keepers := [live.keeper for live in self._open if live.keeper is not None]:
            await asyncio.wait(keepers, timeout=CLOSING)

    async def _asked(self, live: McpSession, tool: str, args: dict[str, Any], tell: Progress) -> Any:
        from mcp.shared.exceptions import MCPError

        assert live.client is not None  # it is connected

        async def told(progress: float, total: float | None, message: str | None) -> None:
            tell(progress, total, message)

        with recorded() as sent:
            try:
                return await live.client.call_tool(tool, args, progress_callback=told)
            except MCPError as error:
                raise await self._why(live, error, sent) from None
            except (RuntimeError, ValueError) as error:  # an answer that breaks the protocol, or its own schema
                text = str(error)[:SHOWN]
                raise ToolError(f"the answer of the MCP server {self.name} is not sound: {text}") from None

    async def _why(self, live: McpSession, error: "MCPError", sent: Sent) -> Exception:
        """What an error of the library stands for."""
        if sent.unknown and await self._has_forgotten(live):
            return _Forgotten(f"the MCP server {self.name} refused: {error.message[:SHOWN]}")
        closed = looks_closed(error) and await _settled(live.watch)
        why = failure(self.name, error, sent, closed=closed)
        return type(why)(f"{why}{live.watch.last_words()}") if closed else why

    async def _has_forgotten(self, live: McpSession) -> bool:
        """Whether the server knows nothing of the session: then it does not answer a harmless question either.

        The status of a call alone does not tell: a server may well have carried out what it then says 404 to.
        """
        from mcp.shared.exceptions import MCPError

        if not live.forgotten and live.client is not None:
            with recorded() as sent, suppress(MCPError, RuntimeError, ValueError):
                await live.client.list_tools()
            live.forgotten = live.forgotten or sent.unknown
        return live.forgotten

    async def _connected_until(self, until: float | None) -> McpSession:
        """The open connection; ToolError if it is not to be had by then, since nothing has been sent."""
        try:
            async with asyncio.timeout_at(until):
                return await self._connected()
        except TimeoutError:
            told = "was not ready in the time of this call, which has not been sent"
            raise ToolError(f"the MCP server {self.name} {told}", transient=True) from None

    async def _connected(self) -> McpSession:
        """The open connection, opened if need be, with a list of tools that is not too old."""
        async with self._starting:
            if self._closed:
                raise ToolError(f"the MCP server {self.name} cannot be used: its host is closing it")
            live = self._live
            open_yet = live is not None and not live.watch.ended.is_set()
            if live is not None and live.forgotten:
                return await self._started()  # the old one ends with the last of its calls
            if live is not None and open_yet and live.is_old(asyncio.get_running_loop().time()):
                open_yet = await self._listed_anew(live)
            if live is not None and open_yet:
                return live
            if live is not None and live.keeper is not None:
                await asyncio.wait({live.keeper}, timeout=CLOSING)
            return await self._started()

    async def _listed_anew(self, live: McpSession) -> bool:
        """Ask an open connection for the tools; false, and the connection ended, if it does not say.

        ToolError if it does not say because it is busy with other calls.
        """
        try:
            async with asyncio.timeout(self.server.start_timeout):
                await self._list(live)
        except Exception as error:  # whatever the server made of the question
            logging.getLogger(__name__).debug("the MCP server %s does not list its tools: %r", self.name, error)
            if live.calls and isinstance(error, TimeoutError):
                told = f"did not say within {self.server.start_timeout:g} seconds which tools it has"
                raise ToolError(f"the MCP server {self.name} is busy, and {told}", transient=True) from None
            live.watch.end()
            return False
        return True

    async def _list(self, live: McpSession) -> None:
        """Ask the server which tools it has. Where it does not say, it is asked again."""
        assert live.client is not None  # it is connected
        live.stale, told = False, False
        try:
            live.definitions = await listed(live.client, self.name, redactor_for(self.server, self._secret))
            live.listed, told = asyncio.get_running_loop().time(), True
        finally:
            live.stale = live.stale or not told

    async def _started(self) -> McpSession:
        self._live = live = McpSession(ConnectionMonitor())
        live.keeper = asyncio.create_task(self._keep(live))
        self._open.add(live)
        live.keeper.add_done_callback(lambda done: self._open.discard(live))
        live.keeper.add_done_callback(lambda done: done.cancelled() or done.exception())
        ready = asyncio.create_task(live.ready.wait())
        try:
            await asyncio.wait(
                {live.keeper, ready}, timeout=self.server.start_timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if live.ready.is_set():
                return live
        finally:
            ready.cancel()
            if not live.ready.is_set():
                live.leave()
        await asyncio.wait({live.keeper}, timeout=CLOSING)
        if isinstance(live.error, DefinitionError | ToolError):
            raise ToolError(f"the MCP server {self.name} cannot be used: {live.error}")
        seconds = f"it was not ready within {self.server.start_timeout:g} seconds"
        why = seconds if live.error is None else _told(live.error)
        raise ToolError(f"the MCP server {self.name} cannot be used: {why}{live.watch.last_words()}")

    async def _keep(self, live: McpSession) -> None:
        """Hold the connection open until it ends or is to end."""
        try:
            async with self._opened(live) as client:
                live.client = client
                await self._list(live)
                live.ready.set()
                await live.watch.ended.wait()
        except Exception as error:  # the edge to the server and the library: however it ends, it has ended
            live.error = error
            logging.getLogger(__name__).debug("the MCP server %s ended: %r", self.name, error)
        finally:
            live.watch.end()
            if live.watch.why:
                logging.getLogger(__name__).warning("the MCP server %s was ended: %s", self.name, live.watch.why)

    @asynccontextmanager
    async def _opened(self, live: McpSession) -> AsyncIterator["Client"]:
        try:
            from mcp.client import Client
        except ImportError:
            raise DefinitionError("MCP servers need an extra: pip install 'agent-core[mcp]'") from None

        async def noticed(message: Any) -> None:
            live.stale = live.stale or getattr(message, "method", "") == "notifications/tools/list_changed"

        if self.server.command is not None:
            named = {name: os.environ[name] for name in self.server.env if name in os.environ}
            transport = over_pipes(self.server.command, named, self._base / (self.server.cwd or "."), live.watch)
        else:
            transport = over_http(str(self.server.url), self._headers(), live.watch)
        async with Client(transport, cache=None, message_handler=noticed) as client:
            yield client

    def _headers(self) -> dict[str, str]:
        secrets = secret_headers(self._secret, self.server.token_env, self.server.secret_headers)
        return {**{name.lower(): value for name, value in self.server.headers.items()}, **secrets}


def _check_text(args: Mapping[str, Any]) -> None:
    """ToolError for what no message can hold: the library would give up the connection, with all its calls."""
    try:
        json.dumps(args, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolError("the arguments hold a lone surrogate, which is not text") from None


async def _settled(watch: ConnectionMonitor) -> bool:
    """Whether a connection has ended, when all that was under way with it has come to rest."""
    with suppress(TimeoutError):
        await asyncio.wait_for(watch.ended.wait(), SETTLES)
    return watch.ended.is_set()


def _told(error: BaseException) -> str:
    """The first cause that says something; the library wraps them into groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    told = error.strerror if isinstance(error, OSError) else None
    return (told or str(error) or type(error).__name__)[:SHOWN]
