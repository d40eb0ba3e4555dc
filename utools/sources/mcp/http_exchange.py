"""What became of one request: filled in by the transport, read by the caller. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class HttpExchange:
    """One request of the protocol.

    `begun`: a transport was given it; where none was, nothing of it has left. `posts`: how many HTTP requests were
    made of it; `unsent`: no connection for the first of them; `status`: that of the last answer; `unknown_session`: the
    first was answered as one whose session the server does not know.
    """

    begun: bool = False
    posts: int = 0
    unsent: bool = False
    status: int = 0
    unknown_session: bool = False


EXCHANGE: ContextVar[HttpExchange | None] = ContextVar("utools_mcp_exchange", default=None)
"""Of the request that is being made; the library carries the caller's context to where it is sent."""


@contextmanager
def record_exchange() -> Iterator[HttpExchange]:
    """Record what becomes of the request that is made in this block."""
    exchange = HttpExchange()
    token = EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        EXCHANGE.reset(token)
