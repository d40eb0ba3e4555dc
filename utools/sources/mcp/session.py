"""One connection to an MCP server, from its start to its end, with the tools that the server offers over it."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from utools.errors import DefinitionError, ToolError
from utools.net.outgoing_secrets import secret_headers
from utools.net.proxies import note_unused
from utools.sources.mcp.config import McpServer
from utools.sources.mcp.connection_monitor import ConnectionMonitor, State
from utools.sources.mcp.failure import SHOWN, explain_start, explain_unsound
from utools.sources.mcp.http_exchange import HttpExchange, record_exchange
from utools.sources.mcp.listing import list_definitions
from utools.sources.mcp.secrets import redactor_for, redactor_of
from utools.sources.tool_lock_file import Definition
from utools.words.text import Text, error_words, text_of

if TYPE_CHECKING:
    from mcp.client import Client

log = logging.getLogger(__name__)

LISTING, LISTING_PART, LISTING_LEAST = 10.0, 1 / 3, 1.0
"""Seconds in which a server that is up says which tools it has, or that part of its `start_timeout` if it is longer:
together for calls that end before it answers, with so many seconds for each at least. A call has 30 seconds by default,
in which a server that hangs is found out and started anew."""
CLOSING = 10.0
"""Seconds in which a connection is closed."""
LISTING_AGE = 300.0
"""Seconds after which an idle server is asked again which tools it has; one that reports a change is asked at once."""


class McpSession:
    """One connection, which begins to open when it is made.

    A task of its own opens and closes it, since the library wants both in the same task.
    `definitions` are the tools that the server offers, `calls` how many calls are under way.
    """

    def __init__(self, name: str, server: McpServer, *, base: Path, secret: Callable[[str], str]) -> None:
        self.monitor = ConnectionMonitor(redactor_of(server.env).redact_truncated_text)
        self.definitions: dict[str, Definition] = {}
        self.calls = 0
        self._name, self._server, self._base, self._secret = name, server, base, secret
        self._listed_at: float | None = None
        self._waited = 0.0
        self._exchange = HttpExchange()
        self._opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def state(self) -> State:
        return self.monitor.state

    @property
    def client(self) -> "Client":
        """The library's client, once the session has been READY."""
        return self._opened.result()

    async def wait_ready(self) -> None:
        """Wait until the session is READY. ToolError that says why it is not to be had."""
        seconds = self._server.start_timeout
        try:
            either: set[asyncio.Future[Any]] = {self.task, self._opened}
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if self._opened.done():
                return
        finally:
            if not self._opened.done():
                self.leave()
        await self.wait_closed()
        error = self.task.exception() if self.task.done() and not self.task.cancelled() else None
        why = (
            Text("it was not ready within {seconds:g} seconds", seconds=seconds)
            if error is None
            else self._explain(error)
        )
        words = "" if isinstance(error, DefinitionError | ToolError) else self.monitor.last_words()
        if self._exchange.unsent:
            words = note_unused(str(self._server.url))
        if unset := self._server.unset:
            words = Text("{words}; of its `env` the host has no {names}", words=words, names=", ".join(unset))
        raise ToolError("the MCP server {server} cannot be used: {why}{words}", server=self._name, why=why, words=words)

    async def wait_closed(self) -> None:
        await asyncio.wait({self.task}, timeout=CLOSING)

    def leave(self) -> None:
        """End the session, whether it is READY yet or not. A start is cancelled once only: a second time would cut
        short the end of the server."""
        if not self._opened.done() and not self.task.cancelling():
            self.task.cancel()
        self.monitor.end()

    def doubt(self) -> None:
        """List the tools before the next call: a session that does not answer is not used any more."""
        self._listed_at = None

    def forget(self) -> None:
        """Send no new call over a session that the server knows, or accepts, no longer."""
        if self.state is State.READY:
            self.monitor.move(State.FORGOTTEN)

    def finish_call(self) -> None:
        """One call less is under way. The last call of a FORGOTTEN session ends it."""
        self.calls -= 1
        if self.state is State.FORGOTTEN and not self.calls:
            self.monitor.end()

    async def refresh(self) -> None:
        """List the tools again if the list is old. A session whose server does not answer is ended.

        ToolError if the server does not answer because it is busy with calls.
        """
        now = asyncio.get_running_loop().time()
        if not needs_listing(self._listed_at, self.calls, now):
            return
        seconds = min(self._server.start_timeout, max(LISTING, self._server.start_timeout * LISTING_PART))
        try:
            async with asyncio.timeout(max(seconds - self._waited, LISTING_LEAST)):
                await self._list(self.client)
            self._waited = 0.0
        except asyncio.CancelledError:
            self._waited += asyncio.get_running_loop().time() - now
            raise
        except Exception as error:  # whatever the server made of the question
            self._waited = 0.0
            log.debug("the MCP server %s does not list its tools: %r", self._name, error)
            if self.calls and isinstance(error, TimeoutError):
                raise ToolError(
                    "the MCP server {server} is busy, and did not say within {seconds:g} seconds which tools it has",
                    server=self._name,
                    seconds=seconds,
                    transient=True,
                ) from None
            self.forget()
            if not self.calls:
                self.monitor.end()

    async def _list(self, client: "Client") -> None:
        """Ask which tools there are. A change that is reported meanwhile, or a failure, leaves the list old."""
        now = asyncio.get_running_loop().time()
        self._listed_at = now
        try:
            self.definitions = await list_definitions(client, self._name, redactor_for(self._server, self._secret))
        except BaseException:
            self._listed_at = None
            raise

    async def _run(self) -> None:
        """Open the connection, and close it when it has ended or is to end."""
        try:
            with record_exchange() as self._exchange:
                await self._stay_open()
        except Exception as error:  # the edge to the server and the library: however it ends, it has ended
            log.debug("the MCP server %s ended: %r", self._name, error)
            raise
        finally:
            self.monitor.end()
            if self.monitor.reason:
                log.warning("the MCP server %s was ended: %s", self._name, self.monitor.reason)

    async def _stay_open(self) -> None:
        async with self._open() as client:
            await self._list(client)
            if self.state is State.ENDED:
                raise ConnectionResetError(Text("it ended while it was starting"))
            self.monitor.move(State.READY)
            self._opened.set_result(client)
            await self.monitor.ended.wait()

    def _explain(self, error: BaseException) -> str:
        """Return the first cause that says something; the library wraps them into groups."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ValidationError):
            return Text("its answer breaks the protocol: {fault}", fault=explain_unsound(error))
        if self._exchange.posts:
            from mcp.shared.exceptions import MCPError

            if isinstance(error, MCPError):
                return explain_start(error, self._exchange.status, self._server.secret_names)
        if (said := text_of(error)) is not None and len(said) <= SHOWN:
            return said
        text = error.strerror if isinstance(error, OSError) else None
        return (text or error_words(error))[:SHOWN]

    @asynccontextmanager
    async def _open(self) -> AsyncIterator["Client"]:
        try:
            from mcp.client import Client
        except ImportError:
            raise DefinitionError("MCP servers need an extra: pip install 'agent-core[mcp]'") from None
        from utools.sources.mcp.http import open_http  # these two need the extra as well
        from utools.sources.mcp.process import open_pipes

        async def on_message(message: object) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                self._listed_at = None

        server = self._server
        if server.command is not None:
            variables = {name: os.environ[name] for name in server.env if name in os.environ}
            transport = open_pipes(server.command, variables, self._base / (server.cwd or "."), self.monitor)
        else:
            secrets = secret_headers(self._secret, server.token_env, server.secret_headers)
            headers = {**{name.lower(): value for name, value in server.headers.items()}, **secrets}
            transport = open_http(str(server.url), headers, self.monitor)
        async with Client(transport, cache=None, message_handler=on_message) as client:
            yield client


def needs_listing(listed_at: float | None, calls: int, now: float) -> bool:
    """Return whether a server is to be asked for its tools again: the list is known to be old (`listed_at` is None), or
    has become so while the server is idle. One that is at work may be too busy to answer."""
    return listed_at is None or (not calls and now - listed_at > LISTING_AGE)
