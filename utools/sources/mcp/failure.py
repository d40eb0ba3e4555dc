"""What an error of the MCP library stands for: an answer of the server, or a call whose answer was lost. Pure."""

from typing import TYPE_CHECKING

from utools.errors import ToolError
from utools.sources.mcp.http import Sent
from utools.sources.mcp.limits import UNREADABLE, UNREADABLE_CODE

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

SHOWN = 500
CLOSED = "Connection closed"
BY_STATUS = ("Server returned an error response", "Session terminated", "Not Found")
"""What the library says of an HTTP status of failure without a message of the protocol."""
LOST = {
    -32000: ("SSE stream failed: ", "SSE stream ended "),
    -32700: ("Failed to parse JSON response: ", "Failed to parse SSE message: "),
    -32600: ("Unexpected content type: ", "server answered a request with 202 Accepted"),
}
"""What it says where the server took the call, and its answer cannot be read or does not come."""


def looks_closed(error: "MCPError") -> bool:
    """Whether the library may be saying that the connection has ended. A server may use its code and its words."""
    return (error.code, error.message) == (-32000, CLOSED)


def failure(name: str, error: "MCPError", sent: Sent, *, closed: bool) -> Exception:
    """The exception that tells a caller what happened to its call.

    ToolError if the server refused, ConnectionRefusedError if it was never reached, ConnectionResetError if nobody
    knows how far the call came. `closed`: the connection has ended before there was an answer.
    """
    told = error.message.splitlines()[0][:SHOWN] if error.message.strip() else "and did not say why"
    if sent.unsent:
        return ConnectionRefusedError(f"the MCP server {name} cannot be reached")
    if closed:
        return ConnectionResetError(f"the MCP server {name} ended in mid-call")
    if error.code == UNREADABLE_CODE and error.message.startswith(UNREADABLE):
        return ConnectionResetError(f"the MCP server {name} took the call, and {told}")
    if sent.status >= 400 and error.message in BY_STATUS:
        status = f"the MCP server {name} answered with the HTTP status {sent.status}"
        return ConnectionResetError(status) if sent.status >= 500 else ToolError(status)
    if 200 <= sent.status < 300 and error.message.startswith(LOST.get(error.code, ())):
        return ConnectionResetError(f"the MCP server {name} took the call and gave no answer that can be read: {told}")
    return ToolError(f"the MCP server {name} refused: {told}")
