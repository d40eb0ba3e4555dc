"""What an error of the MCP library means: an answer of the server, or a call whose answer was lost. Pure."""

import json
import re
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from pydantic import ValidationError

from utools.errors import ToolError
from utools.sources.mcp.http_exchange import HttpExchange
from utools.words.text import Text, error_words

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

SHOWN = 500
"""Characters of a server's text that a caller reads."""
UNREADABLE_CODE, UNREADABLE = -32700, "its answer cannot be read: "
"""The error that we put in place of an answer that is not handed to the library."""

CONTENT_TYPE = "Unexpected content type"
ENDPOINT = Text(
    "this is no endpoint of streamable HTTP, whose URL often ends in /mcp. A server that speaks only the older "
    "HTTP+SSE is reached by a bridge, such as command: [npx, -y, mcp-remote, URL]"
)


class Meaning(Enum):
    """What became of the call."""

    REFUSED = "the server answered with an error of its own"
    CLOSED = "the connection ended before there was an answer; or the server uses the library's words"
    UNREADABLE = "the server took the call, and we did not read its answer"
    STATUS = "the server answered with an HTTP status and no message"
    LOST = "the server took the call, and its answer cannot be read or does not arrive"


ANY, OK, FAILED = range(1000), range(200, 300), range(400, 1000)
TEXTS: tuple[tuple[int | None, str, range, Meaning], ...] = (
    # code           text                                                   HTTP status   meaning
    (-32000, r"Connection closed", ANY, Meaning.CLOSED),
    (UNREADABLE_CODE, rf"{UNREADABLE}.*", ANY, Meaning.UNREADABLE),
    (None, r"Server returned an error response", FAILED, Meaning.STATUS),
    (None, r"Session terminated", FAILED, Meaning.STATUS),
    (None, r"Not Found", FAILED, Meaning.STATUS),
    (-32000, r"SSE stream failed: .*", OK, Meaning.LOST),
    (-32000, r"SSE stream ended .*", OK, Meaning.LOST),
    (-32700, r"Failed to parse JSON response: .*", OK, Meaning.LOST),
    (-32700, r"Failed to parse SSE message: .*", OK, Meaning.LOST),
    (-32600, rf"{CONTENT_TYPE}: .*", OK, Meaning.LOST),
    (-32600, r"server answered a request with 202 Accepted.*", OK, Meaning.LOST),
)
"""The texts that the library (mcp 2.3) writes itself. Whatever fits no row is the server's own."""


def meaning_of(error: "MCPError", status: int) -> Meaning:
    """Return the first row of TEXTS that fits, at this HTTP status (0 where there is none)."""
    for code, text, statuses, meaning in TEXTS:
        if code in (None, error.code) and status in statuses and re.fullmatch(text, error.message, re.DOTALL):
            return meaning
    return Meaning.REFUSED


def exception_of(
    name: str, error: "MCPError", exchange: HttpExchange, *, closed: bool, secrets: Sequence[str]
) -> Exception:
    """Return the exception that tells a caller what happened to its call.

    ToolError if the server refused, ConnectionRefusedError if it was never reached, ConnectionResetError if nobody
    knows how far the call came. `closed`: the connection has ended before there was an answer. `secrets` are the names
    of those that were sent.
    """
    text = _whole(error) or Text("and did not say why")
    if exchange.unsent:
        return ConnectionRefusedError(Text("the MCP server {name} cannot be reached", name=name))
    if closed:
        return ConnectionResetError(Text("the MCP server {name} ended in mid-call", name=name))
    match meaning_of(error, exchange.status):
        case Meaning.UNREADABLE:
            why = text.removeprefix(UNREADABLE)
            return ConnectionResetError(
                Text("the MCP server {name} took the call, and its answer cannot be read: {why}", name=name, why=why)
            )
        case Meaning.STATUS:
            status = Text(
                "the MCP server {name} answered with the HTTP status {status}{hint}",
                name=name,
                status=exchange.status,
                hint=_explain_credentials(exchange.status, secrets),
            )
            return ConnectionResetError(status) if exchange.status >= 500 else ToolError(status)
        case Meaning.LOST:
            return ConnectionResetError(
                Text(
                    "the MCP server {name} took the call and gave no answer that can be read: {text}",
                    name=name,
                    text=text,
                )
            )
        case _:
            return ToolError("the MCP server {name} refused: {text}", name=name, text=text)


def explain_start(error: "MCPError", status: int, secrets: Sequence[str]) -> str:
    """Return why a server did not start, and what its operator sets; `status` is the last HTTP status, 0 where there is
    none.

    A server that speaks only HTTP+SSE, the transport of 2024, answers the first message with 404 or 405.
    """
    text = _first_line(error)
    if status < 400:
        return (
            Text("{text}; {endpoint}", text=text, endpoint=ENDPOINT) if text.startswith(f"{CONTENT_TYPE}: ") else text
        )
    hint = _explain_credentials(status, secrets)
    if not hint and status in (404, 405):
        hint = Text(": {endpoint}", endpoint=ENDPOINT)
    answered = Text("it answered with the HTTP status {status}{hint}", status=status, hint=hint)
    if meaning_of(error, status) is Meaning.REFUSED and text:
        return Text("{answered}; it says: {text}", answered=answered, text=text)
    return answered


def explain_unsound(error: Exception) -> str:
    """Return what the library finds wrong with an answer: the first fault of one that it cannot read."""
    if not isinstance(error, ValidationError):
        return error_words(error)[:SHOWN]
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:SHOWN]


def _explain_credentials(status: int, secrets: Sequence[str]) -> str:
    if status not in (401, 403):
        return ""
    if not secrets:
        return Text(": it wants a bearer token by token_env, or a key by secret_headers")
    if len(secrets) == 1:
        return Text(": it does not accept the secret {secret}", secret=secrets[0])
    return Text(": it does not accept the secrets {secrets}", secrets=", ".join(secrets))


def _whole(error: "MCPError") -> str:
    """Return the message on one line, with what the server says beside it: which argument is wrong, and why."""
    said, data = " ".join(error.message.split()), error.data
    more = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False) if data not in (None, {}, []) else ""
    whole = said if not more or more in said else f"{said}: {more}" if said else more
    return whole if len(whole) <= SHOWN else f"{whole[:SHOWN]}…"


def _first_line(error: "MCPError") -> str:
    return error.message.strip().partition("\n")[0][:SHOWN]
