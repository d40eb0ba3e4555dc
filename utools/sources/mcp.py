"""The tools of MCP servers, named `mcp.<server>.<tool>`, as their operator approved them."""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from utools.errors import DefinitionError, ToolError
from utools.schema import ConfigSchema
from utools.sources.approved import Approved, Change, Definition, changes
from utools.sources.background import Background
from utools.sources.mcp_config import McpServer
from utools.sources.mcp_connection import CLOSING, McpConnection
from utools.sources.mcp_result import result_of
from utools.tool import Args, Execute, Tool, ToolContext, ToolResult

__all__ = ["Change", "McpServer", "McpServers"]

NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
NO_CODE = re.compile(r"[^A-Za-z0-9_.:\-]")


class McpServers:
    """The MCP servers of one host. Threads and event loops may share it; its connections live in a thread of their own.

    A server is started when one of its tools is called, and when nobody has approved its tools yet: then what it
    offers is approved, and written to the `lock` file. From then on its tools are what stands there.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        lock: Path,
        base: Path = Path(),
        secret: Callable[[str], str] | None = None,
    ) -> None:
        for name in servers:
            if not NAME.fullmatch(name):
                told = "a server's name is 1 to 40 letters (A-Z, a-z), digits, or any of _ -"
                raise DefinitionError(told, where="mcp_servers", value=name)
        self._servers = dict(servers)
        self._approved = Approved(lock)
        self._base, self._secret = base, secret or ToolContext().secret
        self._connections: dict[str, McpConnection] = {}
        self._background = Background(self._closed, seconds=CLOSING)

    def tools(self) -> list[Tool]:
        """The approved tools; of a server that nobody has looked at yet, all that it offers now.

        DefinitionError for a server that cannot be asked.
        """
        unseen = [name for name in self._servers if self._approved.of(name) is None]
        if unseen:
            self._approved.write(self._offered(unseen))
        return [tool for name in self._servers for tool in self._tools_of(name)]

    def changes(self, *names: str) -> list[Change]:
        """What approving these servers, or all, would change."""
        offered = self._offered(names or self._servers)
        return [each for name, now in offered.items() for each in changes(name, self._approved.of(name) or [], now)]

    def approve(self, *names: str) -> list[Change]:
        """Approve what these servers, or all, offer now; returns what that changed."""
        offered = self._offered(names or self._servers)
        found = [each for name, now in offered.items() for each in changes(name, self._approved.of(name) or [], now)]
        self._approved.write(offered)
        return found

    def close(self) -> None:
        """End all connections, and the servers that were started. They start again when they are needed."""
        self._background.close()

    def _offered(self, names: Sequence[str] | Mapping[str, Any]) -> dict[str, list[Definition]]:
        for name in names:
            if name not in self._servers:
                there = ", ".join(self._servers) or "none"
                raise DefinitionError(f"there is no such server; there are {there}", where="mcp_servers", value=name)
        asked = {name: self._background.submit(self._connection(name)) for name in names}
        found: dict[str, list[Definition]] = {}
        for name, answer in asked.items():
            try:
                offered = answer.result()
            except (ToolError, DefinitionError) as error:
                raise DefinitionError(str(error), where=f"mcp_servers/{name}") from None
            found[name] = [sound for each in offered if (sound := _sound(name, each)) is not None]
        return found

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

    def _tools_of(self, name: str) -> list[Tool]:
        server = self._servers[name]
        codes: dict[str, str] = {}
        tools: list[Tool] = []
        for each in self._approved.of(name) or []:
            if not any(fnmatchcase(each.name, glob) for glob in server.tools):
                continue
            code = f"mcp.{name}.{NO_CODE.sub('_', each.name)}"[:128]
            if code in codes:
                told = f"two of its tools would be called {code}: {codes[code]!r} and {each.name!r}"
                raise DefinitionError(f"{told}; leave one out by `tools`", where=f"mcp_servers/{name}")
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
            seconds = min(server.timeout, context.deadline_s or server.timeout)
            loop = asyncio.get_running_loop()

            def progress(done: float, total: float | None, message: str | None) -> None:
                fraction = min(1.0, max(0.0, done / total)) if total else None
                with suppress(RuntimeError):  # the caller's loop is gone
                    loop.call_soon_threadsafe(partial(context.progress, message or "", fraction))

            async def call() -> Any:
                return await self._of(name).call(approved, args, seconds=seconds, progress=progress)

            return result_of(await self._background.run(call()))

        return execute


def _sound(server: str, offered: Definition) -> Definition | None:
    """A definition that can be used: without an output schema that cannot, and None if its own schema cannot."""
    log = logging.getLogger(__name__)
    try:
        ConfigSchema(offered.input_schema, foreign=True, where="schema")
    except DefinitionError as error:
        log.warning("the tool %s of the MCP server %s is left out: %s", offered.name, server, error)
        return None
    try:
        ConfigSchema(offered.output_schema or {}, foreign=True, where="output_schema")
    except DefinitionError as error:
        log.warning("the output of %s of the MCP server %s is not checked: %s", offered.name, server, error)
        return offered.model_copy(update={"output_schema": None})
    return offered
