"""The tools of MCP servers, named `mcp.<server>.<tool>`, as their operator approved them."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from utools.errors import DefinitionError, ToolError
from utools.sources.loop_thread import LoopThread
from utools.sources.mcp.config import McpServer
from utools.sources.mcp.connection import CLOSING, McpConnection
from utools.sources.mcp.result import result_of
from utools.sources.mcp.secrets import redactor_of
from utools.sources.pinned_source import PinnedSource
from utools.sources.tool_lock_file import Change, Definition
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult

__all__ = ["Change", "McpServer", "McpServers"]

NO_CODE = re.compile(r"[^A-Za-z0-9_.:\-]")


class McpServers(PinnedSource):
    """The MCP servers of one host. Threads and event loops may share it; its connections live in a thread of their own.

    A server is started when one of its tools is called, or when nobody has approved its tools yet.
    """

    where = "mcp_servers"

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        lock: Path,
        base: Path = Path(),
        secret: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(servers, lock)
        self._servers = dict(servers)
        self._base, self._secret = base, secret or ToolContext().secret
        self._connections: dict[str, McpConnection] = {}
        self._background = LoopThread(self._closed, seconds=CLOSING)

    def tools(self) -> list[Tool]:
        """The approved tools. DefinitionError for a new server that cannot be asked."""
        return [tool for name, approved in self.approved().items() for tool in self._tools_of(name, approved)]

    def offered(self, names: Sequence[str]) -> dict[str, list[Definition]]:
        """What these servers offer now; each is started, if need be, and stays."""
        asked = {name: self._background.submit(self._connection(name)) for name in names}
        found: dict[str, list[Definition]] = {}
        for name, answer in asked.items():
            try:
                found[name] = answer.result()
            except (ToolError, DefinitionError) as error:
                told = redactor_of(self._servers[name].env).text(str(error))
                raise DefinitionError(told, where=f"{self.where}/{name}") from None
        return found

    def close(self) -> None:
        """End all connections, and the servers that were started. They start again when they are needed."""
        self._background.close()

    async def _connection(self, name: str) -> list[Definition]:
        return await self._of(name).definitions()

    def _of(self, name: str) -> McpConnection:
        """The connection of a server; made in the loop that it belongs to."""
        if name not in self._connections:
            server = self._servers[name]
            self._connections[name] = McpConnection(name, server, base=self._base, secret=self._secret)
        return self._connections[name]

    async def _closed(self) -> None:
        connections, self._connections = self._connections, {}
        await asyncio.gather(*(each.close() for each in connections.values()), return_exceptions=True)

    def _tools_of(self, name: str, approved: Sequence[Definition]) -> list[Tool]:
        server = self._servers[name]
        codes: dict[str, str] = {}
        tools: list[Tool] = []
        for each in approved:
            if not any(fnmatchcase(each.name, glob) for glob in server.tools):
                continue
            code = f"mcp.{name}.{NO_CODE.sub('_', each.name)}"[:128]
            if code in codes:
                told = f"two of its tools would be called {code}: {codes[code]!r} and {each.name!r}"
                raise DefinitionError(f"{told}; leave one out by `tools`", where=f"{self.where}/{name}")
            codes[code] = each.name
            tools.append(self._tool(code, name, server, each))
        return tools

    def _tool(self, code: str, name: str, server: McpServer, approved: Definition) -> Tool:
        trusted = server.trust_annotations
        return Tool(
            code=code,
            description=approved.description,
            config_schema=approved.input_schema,
            output_schema=approved.output_schema,
            execute=self._execute(name, server, approved),
            effect="read" if trusted and approved.read_only else "write",
            idempotent=trusted and approved.idempotent,
            foreign=True,
            fingerprint=approved.fingerprint,
        )

    def _execute(self, name: str, server: McpServer, approved: Definition) -> Execute:
        async def execute(args: Args, context: ToolContext) -> ToolResult:
            within = context.deadline_s
            seconds = min(server.timeout, within or server.timeout)
            loop, clean = asyncio.get_running_loop(), redactor_of(server.env)

            def progress(done: float, total: float | None, message: str | None) -> None:
                fraction = min(1.0, max(0.0, done / total)) if total else None
                with suppress(RuntimeError):  # the caller's loop is gone
                    loop.call_soon_threadsafe(partial(context.progress, clean.text(message or ""), fraction))

            async def call() -> ToolResult:
                """A large answer is read there too, so that the caller's loop does not wait for it."""
                connection = self._of(name)
                answer = await connection.call(approved, args, seconds=seconds, within=within, progress=progress)
                result = result_of(answer)
                error = None if result.error is None else clean.text(result.error)
                return replace(result, output=clean.value(result.output), error=error)

            return await self._background.run(call())

        return execute
