"""Connections: the seam between a question and the HTTP library that sends it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Literal, NamedTuple, Protocol

Transport = Literal["aiohttp", "httpx2"]
KEEPALIVE_SECONDS = 30.0
SLICE_BYTES = 2**18
"""Bytes that are written at once: a write blocks the event loop, and aiohttp warns of a whole MiB."""


class Response(NamedTuple):
    """An answer whose body comes in pieces, as it was sent; header names are found in lower case.

    `close` releases the connection; one that has more to come is closed.
    """

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]


class Connections(Protocol):
    """The connections of one event loop to one endpoint: as many as there are requests at once, reused by later
    ones."""

    async def send(self, body: bytes, url: str, headers: Mapping[str, str]) -> Response:
        """Send a request; return the answer, its body unread."""
        ...

    async def close(self) -> None: ...


async def slice_body(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SLICE_BYTES):
        yield body[start : start + SLICE_BYTES]
