"""HeldStream: an answer that continues for as long as its caller's token holds."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import ExitStack
from typing import TypeVar

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from engine_shim.api.access import Caller
from engine_shim.api.answers import MANNERS
from engine_shim.service.token_watch import answer_until

T = TypeVar("T")
EVENTS = "text/event-stream"
UNBUFFERED = {"X-Accel-Buffering": "no"}
"""A proxy such as nginx passes on each event as it comes."""


async def chain(first: T, rest: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield what was read of a stream before it is sent, and the rest of it."""
    yield first
    async for each in rest:
        yield each


def take_stream(caller: Caller) -> ExitStack:
    """Count one more stream of a caller, until the stack is closed. OverShare for one too many."""
    taken = ExitStack()
    taken.enter_context(caller.take(caller.streams))
    return taken


class HeldStream(StreamingResponse):
    """A stream of server-sent events to a caller. One whose token is revoked, or expires, sees it end.

    It is one of the streams that its caller may have: OverShare for one too many, unless it was `taken` before.
    """

    def __init__(
        self,
        caller: Caller,
        frames: AsyncIterable[str | bytes],
        headers: Mapping[str, str] | None = None,
        taken: ExitStack | None = None,
    ) -> None:
        super().__init__(frames, media_type=EVENTS, headers={**MANNERS, **UNBUFFERED, **(headers or {})})
        self._caller, self._until_sent = caller, taken or take_stream(caller)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._until_sent, self._caller.held() as over:
            await answer_until(over, self._send_until_gone, scope, receive, send)

    async def _send_until_gone(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream to its end, or until its client has gone: in this task, which needs no group of tasks."""
        sending, gone = asyncio.current_task(), asyncio.create_task(self.listen_for_disconnect(receive))
        assert sending is not None
        gone.add_done_callback(lambda done: None if done.cancelled() else sending.cancel())
        try:
            await self.stream_response(send)
        except asyncio.CancelledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()
