"""An MCP server over streamable HTTP, made with the official library: `over_http.py PORT`."""

import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("over-http")


@server.tool()
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@server.tool()
async def header(name: str, context: Context) -> str:
    """A header of the request."""
    return str((context.headers or {}).get(name.lower(), ""))


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(1)


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
