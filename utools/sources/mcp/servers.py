"""The tools of MCP servers, named `mcp.<server>.<tool>`, as their operator approved them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from utools.command import check_program
from utools.errors import DefinitionError, ResultError, ToolError
from utools.forks import renew_in_forks
from utools.left_out import LeftOut
from utools.sources.loop_thread import LoopThread
from utools.sources.mcp.config import McpServer
from utools.sources.mcp.connection import McpConnection
from utools.sources.mcp.result import read_result
from utools.sources.mcp.secrets import redactor_of
from utools.sources.mcp.session import CLOSING
from utools.sources.pinned_source import PinnedSource, UsableTool
from utools.sources.tool_codes import assign_codes, plain_form
from utools.sources.tool_lock_file import Change, Definition
from utools.tool import Args, Check, Execute, Tool, ToolContext, ToolResult
from utools.tool_lookup import ReadDocument
from utools.words.text import Text, error_words, translate

__all__ = ["Change", "McpServer", "McpServers"]


class McpServers(PinnedSource):
    """The MCP servers of one host. Threads and event loops may share it; its connections live in a thread of their own.

    A server is started when one of its tools is called, or when its tools are not approved yet.
    """

    where, prefix = "mcp_servers", "mcp."

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
        renew_in_forks(self)
        self._thread = LoopThread(self._close_connections, seconds=CLOSING)

    def readers(self) -> dict[str, ReadDocument]:
        """Return what reads the resources and prompts of each server, which is started if need be."""
        return {name: partial(self._read_document, name) for name in self._servers}

    async def _read_document(self, name: str, document: Mapping[str, Any]) -> str:
        async def read() -> str:
            text = await self._connection(name).read(document, seconds=self._servers[name].timeout)
            return redactor_of(self._servers[name].env).text(text)

        return await self._thread.run(read())

    def offered(self, names: Sequence[str]) -> dict[str, list[Definition] | DefinitionError]:
        """Return what these servers offer now; each is started, if need be, and continues running."""
        listings = {name: self._thread.submit(self._list_tools(name)) for name in names}
        return {name: self._listed(name, listing) for name, listing in listings.items()}

    def _listed(self, name: str, listing: "Future[list[Definition]]") -> list[Definition] | DefinitionError:
        try:
            return listing.result()
        except (ToolError, DefinitionError) as error:
            text = redactor_of(self._servers[name].env).text(error_words(error))
            return DefinitionError(text, where=f"{self.where}/{name}")

    def close(self) -> None:
        """End all connections, and the servers that were started. They start again when they are needed."""
        self._thread.close()

    async def _list_tools(self, name: str) -> list[Definition]:
        return await self._connection(name).definitions()

    def _connection(self, name: str) -> McpConnection:
        """Return the connection of a server; made in the loop that it belongs to."""
        if name not in self._connections:
            server = self._servers[name]
            self._connections[name] = McpConnection(name, server, base=self._base, secret=self._secret)
        return self._connections[name]

    def begin_anew(self) -> object:
        """Forget the connections of the parent, whose servers are its own."""
        connections, self._connections = self._connections, {}
        return connections

    async def _close_connections(self) -> None:
        connections, self._connections = self._connections, {}
        await asyncio.gather(*(each.close() for each in connections.values()), return_exceptions=True)

    def takes(self, name: str, offered: Definition) -> bool:
        return _matches(offered, self._servers[name].tools)

    def make_tools(self, name: str, usable: Sequence[UsableTool]) -> Iterator[Tool | LeftOut]:
        server, where = self._servers[name], f"{self.where}/{name}"
        taken = {each.definition.name: each for each in usable}
        _check_globs(server.read_only, [each.definition for each in taken.values()], f"{where}/read_only")
        codes = assign_codes(f"{self.prefix}{name}.", {each: plain_form(each) for each in taken})
        for own, each in taken.items():
            if own in codes:
                yield self._make_tool(codes[own], name, server, each)
            else:
                code, place = f"{self.prefix}{name}.{own}", f"{where}/{own}"
                yield LeftOut(code, place, "another tool has the same code; choose one of them by `tools`")

    def _make_tool(self, code: str, name: str, server: McpServer, usable: UsableTool) -> Tool:
        trusted, approved = server.trust_annotations, usable.definition
        reads = _matches(approved, server.read_only) or (trusted and approved.read_only)
        return Tool(
            code=code,
            description=approved.description,
            config_schema=usable.schema,
            output_schema=usable.output_schema,
            execute=self._make_execute(name, server, usable),
            effect="read" if reads else "write",
            idempotent=trusted and approved.idempotent,
            foreign=True,
            fingerprint=approved.fingerprint,
            check=self._make_check(name, server),
        )

    def _make_check(self, name: str, server: McpServer) -> Check | None:
        """Return whether the server's program is there; nothing is known of a server that somebody else runs."""
        if server.command is None:
            return None
        program, directory = server.command[0], self._base / (server.cwd or ".")
        return lambda args: check_program(program, directory, f"the MCP server {name!r}")

    def _make_execute(self, name: str, server: McpServer, usable: UsableTool) -> Execute:
        async def execute(args: Args, context: ToolContext) -> ToolResult:
            within = context.deadline_s
            seconds = min(server.timeout, within or server.timeout)
            loop, redactor = asyncio.get_running_loop(), redactor_of(server.env)

            def report(done: float, total: float | None, message: str | None) -> None:
                fraction = min(1.0, max(0.0, done / total)) if total else None
                with suppress(RuntimeError):  # the caller's loop is gone
                    loop.call_soon_threadsafe(partial(context.progress, redactor.text(message or ""), fraction))

            async def call() -> ToolResult:
                """Call the tool, and read its answer in the same thread: the caller's loop waits for neither."""
                connection = self._connection(name)
                definition = usable.definition
                answer = await connection.call(definition, args, seconds=seconds, within=within, report=report)
                try:
                    result = read_result(answer, usable.output_schema)
                except ResultError as lost:
                    raise ResultError(Text(redactor.text(translate(lost, context.language)))) from None
                error = None if result.error is None else redactor.text(translate(result.error, context.language))
                metadata = redactor.value(result.metadata)
                return replace(result, output=redactor.value(result.output), error=error, metadata=metadata)

            return await self._thread.run(call())

        return execute


def _matches(tool: Definition, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(tool.name, glob) for glob in globs)


def _check_globs(globs: Sequence[str], tools: Sequence[Definition], where: str) -> None:
    """DefinitionError for a glob that matches none of the tools."""
    for index, glob in enumerate(globs):
        if not any(_matches(each, [glob]) for each in tools):
            has = ", ".join(sorted(each.name for each in tools)) or "none"
            message = f"no tool of this server matches; it has {has}"
            raise DefinitionError(message, where=f"{where}/{index}", value=glob)
