"""What plugins share for one attempt: its time, and a thread that the engine's signals do not reach."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent_core.journal.store import Journal
from agent_core.node import NodeContext, execute_sync
from agent_core.run.agent_output import AgentOutput

Place = Journal | str | os.PathLike[str]
"""A journal, the path of its file, or the URL of its database."""
MARGIN_S: Final = 30.0
"""How long before the end of its attempt a run is let go, so that what is under way may answer: at most a quarter of
the time of the attempt."""


def deadline_within(seconds: float | None) -> datetime | None:
    """Return when a run is to be let go in an attempt of so many seconds; None for one without a limit."""
    return None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds - min(MARGIN_S, seconds / 4))


def execute_beside(
    config: Mapping[str, Any],
    context: NodeContext,
    is_cancelled: Callable[[], bool],
    *,
    look_every: float | None = None,
) -> AgentOutput:
    """Return the output of an attempt that runs in a thread of its own while this one waits.

    An engine interrupts this thread, by a signal or a limit, with an exception of its own; it never cuts through a
    record that is being written. The run is then cancelled where `is_cancelled` says so, and let go where only the
    infrastructure goes away; the exception is raised once the run has stopped. With `look_every`, in seconds, a run is
    cancelled without an interrupt, too.
    """
    stop = context.stop
    with ThreadPoolExecutor(1, thread_name_prefix="agent") as pool:
        work = pool.submit(copy_context().run, execute_sync, config, context)
        try:
            while not wait([work], timeout=look_every).done:
                if stop.wanted is None and is_cancelled():
                    stop.cancel()
        except BaseException:
            end = stop.let_go  # also where another interrupt comes while the engine is asked
            try:
                if is_cancelled():
                    end = stop.cancel
            finally:
                end()
            wait([work])
            raise
        return work.result()
