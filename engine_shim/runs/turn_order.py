"""TurnOrder: the turns of a conversation are driven one after another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from agent_core.run.control import StopSignal
from utools.limiter import Limiter


class TurnOrder:
    """Who drives a turn of each conversation, in this process. Threads and event loops may share it."""

    def __init__(self) -> None:
        self._conversations: WeakValueDictionary[str, Limiter] = WeakValueDictionary()

    @asynccontextmanager
    async def holding(self, conversation: str) -> AsyncIterator[None]:
        """Wait until no turn of a conversation is driven, and let none be driven meanwhile."""
        async with self._conversations.setdefault(conversation, Limiter(1)).slot():
            yield

    @asynccontextmanager
    async def driving(self, conversation: str | None, stop: StopSignal) -> AsyncIterator[asyncio.CancelledError | None]:
        """Wait until the turns before have come to rest, unless the run is stopped meanwhile. Any run but a turn has
        nothing to wait for, and only lets those go first who wait for its beginning.

        Yields the caller's cancellation, which ends the waiting as well.
        """
        if conversation is None or stop.requested is not None:
            yield await _let_others_go_first()
            return
        limiter = self._conversations.setdefault(conversation, Limiter(1))
        number, cancellation = await _acquire(limiter, stop)
        try:
            yield cancellation
        finally:
            if number is not None:
                limiter.release(number)


async def _let_others_go_first() -> asyncio.CancelledError | None:
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError as cancellation:
        return cancellation
    return None


async def _acquire(limiter: Limiter, stop: StopSignal) -> tuple[int | None, asyncio.CancelledError | None]:
    """Return the number of the slot, None if the run was stopped before it came, and the caller's cancellation."""
    acquiring = asyncio.create_task(limiter.acquire())

    def give_up() -> None:
        acquiring.cancel()

    stop.listeners.append(give_up)
    try:
        return await acquiring, None
    except asyncio.CancelledError as cancellation:
        return None, None if stop.requested is not None else cancellation
    finally:
        stop.listeners.remove(give_up)
