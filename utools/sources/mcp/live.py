"""One connection to an MCP server, from its start to its end, and what is known of the server by it."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.tool_lock_file import Definition

if TYPE_CHECKING:
    from mcp.client import Client

LISTED_ANEW = 300.0
"""Seconds after which a server that has nothing to do is asked again which tools it has; one that tells of a change is
asked at once."""


@dataclass(eq=False)
class McpSession:
    """A connection that is open, or was.

    `stale`: its tools are to be asked for again; `forgotten`: the server knows nothing of it any more;
    `left`: it was told to end here.
    """

    watch: ConnectionMonitor
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stale: bool = False
    listed: float = 0.0
    definitions: dict[str, Definition] = field(default_factory=dict)
    calls: int = 0
    forgotten: bool = False
    left: bool = False
    client: "Client | None" = None
    error: BaseException | None = None
    keeper: "asyncio.Task[None] | None" = None

    def leave(self) -> None:
        """End it, whether it is open yet or not. It is cancelled once only, so that its server is ended in peace."""
        if self.keeper is not None and not self.ready.is_set() and not self.left:
            self.keeper.cancel()
        self.left = True
        self.watch.end()

    def is_old(self, now: float) -> bool:
        """Whether its tools are to be asked for again: the server may be too busy with calls to answer that."""
        return self.stale or (not self.calls and now - self.listed > LISTED_ANEW)
