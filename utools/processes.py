"""open_process(): a program with its pipes and its process group, of which nothing is left after the block."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

CLOSING = 1.0
"""Seconds in which a program that was killed ends, and its pipes are closed."""


class _Ends(Protocol):
    async def wait_ended(self) -> None:
        """Wait until the program has ended, and whatever else its owner wants to have seen."""


P = TypeVar("P", bound=_Ends)


@asynccontextmanager
async def open_process(
    make_protocol: Callable[[], P], *argv: str, **options: Any
) -> AsyncIterator[tuple[asyncio.SubprocessTransport, P]]:
    """Start a program that leads a group; gives its transport and its protocol. OSError or ValueError if it cannot be.

    At the end of the block the group is killed. A call that is cancelled while the program starts ends it as well.
    asyncio by itself would not: it kills the program alone, and then waits for whatever that has started.
    """
    start: Any = asyncio.get_running_loop().subprocess_exec  # no type says that P is a protocol of it as well
    starting = asyncio.create_task(start(make_protocol, *argv, start_new_session=True, **options))
    cancelled = await _hold_cancellation(starting)
    try:
        transport, protocol = starting.result()
    except (OSError, ValueError):
        if cancelled is not None:
            raise cancelled from None
        raise
    try:
        if cancelled is not None:
            raise cancelled
        yield transport, protocol
    finally:
        del cancelled  # it holds this frame
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
        try:
            with suppress(TimeoutError):  # a process that left the group may hold the pipes open
                async with asyncio.timeout(CLOSING):
                    await protocol.wait_ended()
        finally:
            transport.close()


async def _hold_cancellation(starting: "asyncio.Task[Any]") -> asyncio.CancelledError | None:
    """Wait until a program is started, which takes milliseconds; gives the cancellation that came meanwhile."""
    cancelled = None
    while not starting.done():
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
