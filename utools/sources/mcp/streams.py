"""The two streams of messages between the MCP library and a transport, with a monitor that watches both.

Needs the extra `mcp`.
"""

import asyncio
import logging
from typing import Any

from anyio import CancelScope, ClosedResourceError, EndOfStream
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from utools.sources.mcp.connection_monitor import ConnectionMonitor
from utools.sources.mcp.failure import UNREADABLE, UNREADABLE_CODE
from utools.sources.mcp.http_exchange import EXCHANGE
from utools.sources.mcp.limits import result_fault
from utools.sources.mcp.raw_results import wrap_result

PROBE, PROBE_SECONDS = "server/discover", 2.0
"""The library asks this first, and waits 10 seconds for servers that pass over what they do not know. It is refused in
their stead after so many seconds; the handshake of older servers comes next."""
TALK = frozenset({"notifications/progress", "notifications/message"})
"""What is left out where there is too much of it: nothing depends on it."""


class _Wrapped:
    """A stream of the library, to which a monitor is attached."""

    def __init__(self, inner: Any, monitor: ConnectionMonitor) -> None:
        self._inner, self._monitor = inner, monitor

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class MonitoredReads(_Wrapped):
    """What the server sends. The stream ends when its server sends too many unsolicited messages."""

    async def receive(self) -> Any:
        try:
            while (item := _admit(await self._next(), self._monitor)) is None and not self._monitor.reason:
                pass
        except Exception:  # whatever it is that ends it
            self._monitor.end()
            raise
        if self._monitor.reason:
            raise EndOfStream
        return item

    async def _next(self) -> Any:
        """Return the next message, or our own refusal of the probe once it is overdue."""
        monitor = self._monitor
        with CancelScope() as scope:
            monitor.wake = scope.cancel
            try:
                if monitor.overdue is None:
                    return await self._inner.receive()
            finally:
                monitor.wake = None
        request, monitor.overdue = monitor.overdue, None
        error = ErrorData(code=METHOD_NOT_FOUND, message="it was not answered in time")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))

    @property
    def last_context(self) -> Any:
        """What the library stores beside a message."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> "MonitoredReads":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None


class MonitoredWrites(_Wrapped):
    """What is sent to the server. The monitor knows which answers are due, and counts those that the server takes."""

    async def send(self, item: Any) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            if self._monitor.has_exited():  # before its output has ended, which what it started may hold open
                self._monitor.refuse_requests()
                raise ClosedResourceError
            if exchange := EXCHANGE.get():
                exchange.begun = True
            self._monitor.asked[message.id] = message.method
            if message.method == PROBE:
                asyncio.get_running_loop().call_later(PROBE_SECONDS, self._monitor.give_up, message.id)
        await self._inner.send(item)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._monitor.count_answer()


def _admit(item: Any, monitor: ConnectionMonitor) -> Any:
    """Return a message as the library gets it: an error in place of a result that is too large, an envelope of one that
    we read ourselves, None for talk that is left out."""
    match message := getattr(item, "message", None):  # it may be an exception
        case JSONRPCResponse():
            wrapped, fault = wrap_result(monitor.answered(message.id), message.result)
            if fault := result_fault(message.result) or fault:
                return unreadable_answer(message.id, fault)
            item.message = message.model_copy(update={"result": wrapped})
        case JSONRPCError():
            monitor.answered(message.id)
        case JSONRPCNotification(method=method) if method in TALK:
            return item if monitor.allows_talk(len(message.model_dump_json())) else None
        case JSONRPCRequest() | JSONRPCNotification():
            monitor.count_unsolicited(len(message.model_dump_json()))
            if isinstance(message, JSONRPCRequest):
                monitor.count_request()
        case _:
            pass
    return item


def unreadable_answer(request: int | str | None, why: str) -> SessionMessage:
    """Return an error in place of an answer that is not read: the server has taken the call."""
    error = ErrorData(code=UNREADABLE_CODE, message=f"{UNREADABLE}{why}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))


def mute_library_logs() -> None:
    """The library's own log lines go where the host's configuration says, and else nowhere."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
