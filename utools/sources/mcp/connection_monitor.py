"""A watch over the connection to an MCP server: how it ends, and that it says no more than it may."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from utools.sources.mcp.limits import UNREADABLE, UNREADABLE_CODE, TokenBucket, UnsolicitedQuota, too_many

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

KEPT = 4096
"""Bytes of what a server last wrote to its standard error."""
SHOWN_WORDS = 300
"""Characters that are told of the last line of it."""
TALK = frozenset({"notifications/progress", "notifications/message"})
"""What is left out where there is too much of it: nothing hangs on it."""


class ConnectionMonitor:
    """What becomes of a connection. `ended`: no answer can come any more; `why` it was ended here, if it was."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.why = ""
        self.unasked = UnsolicitedQuota()
        self._talk = TokenBucket()
        self._errors = bytearray()

    def end(self, why: str = "") -> None:
        self.why = self.why or why
        self.ended.set()

    def said(self, size: int) -> None:
        """The server said so many bytes that nobody asked for; when it does not stop, its connection ends."""
        if why := self.unasked.said(size, asyncio.get_running_loop().time()):
            self.end(why)

    def takes(self, size: int) -> bool:
        """Whether one more message of progress, or for the log, is handed on."""
        return self._talk.takes(size, asyncio.get_running_loop().time())

    def wrote(self, data: bytes) -> None:
        """The server wrote this to its standard error."""
        self._errors = (self._errors + data)[-KEPT:]

    def last_words(self) -> str:
        """Why it was ended, and the last line that it wrote there, to follow a sentence."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines() if line.strip()]
        ended = f": it was ended, since {self.why}" if self.why else ""
        return ended + (f"; its last words: {lines[-1][:SHOWN_WORDS]}" if lines else "")


class Watched:
    """A stream of messages whose end is noticed. It ends when too many come that nobody asked for; progress and lines
    for the log are only left out."""

    def __init__(self, inner: Any, watch: ConnectionMonitor) -> None:
        self._inner, self._watch = inner, watch

    async def receive(self) -> Any:
        from anyio import EndOfStream

        try:
            while (item := _checked(await self._inner.receive(), self._watch)) is None and not self._watch.why:
                pass
        except Exception:  # whatever it is that ends it
            self._watch.end()
            raise
        if self._watch.why:
            raise EndOfStream
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    @property
    def last_context(self) -> Any:
        """What the library keeps beside a message."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> "Watched":
        return self

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "Watched":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class WatchedWrites:
    """A stream to the server, by which it is known which of its requests are answered."""

    def __init__(self, inner: Any, watch: ConnectionMonitor) -> None:
        self._inner, self._watch = inner, watch

    async def send(self, item: Any) -> None:
        from mcp_types import JSONRPCError, JSONRPCResponse

        await self._inner.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._watch.unasked.answered(item.message.id)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> "WatchedWrites":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


def _checked(item: Any, watch: ConnectionMonitor) -> Any:
    """What the server says, as it is handed on: an error in place of an answer that is too much, None for talk that is
    left out."""
    from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

    match message := getattr(item, "message", None):  # it may be an exception
        case JSONRPCResponse():
            told = too_many(message.result)
            return unreadable(message.id, told) if told else item
        case JSONRPCRequest():
            watch.said(_size(message))
            if why := watch.unasked.asked(message.id):
                watch.end(why)
        case JSONRPCNotification(method=method) if method in TALK:
            return item if watch.takes(_size(message)) else None
        case JSONRPCNotification():
            watch.said(_size(message))
            if message.method == "notifications/cancelled":
                watch.unasked.withdrawn((message.params or {}).get("requestId"))
    return item


def _size(message: "JSONRPCMessage") -> int:
    return len(message.model_dump_json())


def unreadable(request: "int | str | None", why: str) -> "SessionMessage":
    """An error in place of an answer: the call was taken."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    error = ErrorData(code=UNREADABLE_CODE, message=f"{UNREADABLE}{why}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))


def quiet() -> None:
    """The library's own log lines go where the host's configuration says, and else nowhere."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
