"""TokenWatch: ends what callers hold open, such as streams of events, once their tokens hold no longer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_core.run.blocking import run_blocking
from engine_shim.intervals import TOKEN_INTERVAL_S
from engine_shim.service.tokens import Tokens


class TokenWatch:
    """What is held open in one process, by the ids of the tokens; other processes revoke tokens in the same store.

    `find_over` gives those of some ids that hold no longer.
    """

    def __init__(self, tokens: Tokens, find_over: Callable[[set[str]], set[str]]) -> None:
        self._tokens, self._find_over = tokens, find_over
        self._held: dict[str, list[asyncio.Event]] = {}

    @contextmanager
    def holding(self, identity: str) -> Iterator[asyncio.Event]:
        """An event that is set when the token of this id holds no longer, within the block."""
        over = asyncio.Event()
        self._held.setdefault(identity, []).append(over)
        try:
            yield over
        finally:
            self._held[identity].remove(over)
            if not self._held[identity]:
                del self._held[identity]

    async def run_forever(self) -> None:
        """Look at the tokens of all that is held open, until it is cancelled."""
        while True:
            await asyncio.sleep(TOKEN_INTERVAL_S)
            if held := set(self._held):
                for identity in await run_blocking(self._tokens, self._find_over, held):
                    for over in self._held.get(identity, ()):
                        over.set()


async def answer_until(over: asyncio.Event, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Let an app answer a request until the event is set; what it has begun to send then ends there."""
    has_begun = False

    async def note(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        await send(message)

    if await _run_until(over, app(scope, receive, note)) and has_begun:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _run_until(over: asyncio.Event, work: Awaitable[None]) -> bool:
    """Do the work to its end, or until the event is set, which cancels it; whether it was cancelled by that."""
    doing, waiting = asyncio.ensure_future(work), asyncio.ensure_future(over.wait())
    try:
        await asyncio.wait({doing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
            return False
        return True
    finally:
        waiting.cancel()
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})
