"""WorkerPool: heavy work in threads, of which few run at once."""

import asyncio
from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import ParamSpec, TypeVar

from agent_core.run.cancellation import retry_if_cancelled
from engine_shim.service.spent import Account
from utools.limiter import Limiter

Given = ParamSpec("Given")
Result = TypeVar("Result")


class WorkerPool:
    """Lets `most` pieces of work run at once; the others wait."""

    def __init__(self, most: int = 2) -> None:
        self._free = Limiter(most)

    async def run(self, work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """Return what comes of the work, done in a thread. Who is cancelled meanwhile keeps its turn until the end."""
        async with self._free.slot():
            return await _do(partial(work, *args, **kwargs))

    async def run_for(
        self, account: Account, work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        """Return what `run` gives, with the processor's seconds on somebody's account. OverSpent if their share is
        used up when their turn comes."""

        def count() -> Result:
            began = thread_time()
            try:
                return work(*args, **kwargs)
            finally:
                account.add(thread_time() - began)

        async with self._free.slot():
            account.check()
            return await _do(count)


async def _do(work: Callable[[], Result]) -> Result:
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    cancellations: list[asyncio.CancelledError] = []
    await retry_if_cancelled(lambda: asyncio.wait({doing}), cancellations.append)
    if not cancellations:
        return doing.result()
    if not doing.cancelled():
        doing.exception()  # it counts as retrieved
    raise cancellations[-1]
