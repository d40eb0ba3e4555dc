"""outlast(): a step on a journal whose database may be away for a while, tried again until it is back."""

import logging
import os
from asyncio import CancelledError, ensure_future, wait
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Final, TypeVar

from agent_core.errors import DefinitionError, JournalAway
from utools.calls.threads import DaemonThreads

log = logging.getLogger("agent_core")
VARIABLE: Final = "AGENT_CORE_STORE_PATIENCE"
PATIENCE_S: Final = 60.0
"""How long a run waits for the database of its journal, unless the environment says otherwise."""
HURRY_S: Final = 5.0
"""How long it still waits once it is cancelled."""
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
T = TypeVar("T")


@dataclass(slots=True)
class _Deadline:
    at: float

    def hurry(self) -> None:
        self.at = min(self.at, monotonic() + HURRY_S)


def patience_of_host() -> float:
    """How many seconds a run waits for its journal. DefinitionError for a setting that is no number of seconds."""
    text = os.environ.get(VARIABLE) or str(PATIENCE_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise DefinitionError("must be a number of seconds, 0 to 86400, such as 60", where=VARIABLE, value=text)
    return seconds


async def outlast(
    work: Callable[[], T], *, run: str, patience: float, interrupt: Callable[[], None] | None = None
) -> T:
    """What `work` gives, which must be safe to do again. JournalAway where the database stays away for too long.

    The first try is made at once, the others in a thread, so that they do not stop the event loop. A caller who is
    cancelled waits a little longer still: `interrupt` hears of it, and without that the cancellation goes on then.
    """
    try:
        return work()
    except JournalAway as error:
        if patience == 0:
            raise
        log.warning("run %s waits for its journal, up to %g seconds: %s", run, patience, error)
    deadline, is_cancelled = _Deadline(monotonic() + patience), False
    trying = ensure_future(DaemonThreads(1).run(_try_again, work, deadline))
    while not trying.done():
        try:
            await wait({trying})
        except CancelledError:
            deadline.hurry()
            is_cancelled = True
            if interrupt is not None:
                interrupt()
    result: T = trying.result()
    log.warning("run %s goes on: its journal is back", run)
    if is_cancelled and interrupt is None:
        raise CancelledError
    return result


def _try_again(work: Callable[[], T], deadline: _Deadline) -> T:
    pause = FIRST_PAUSE_S
    while True:
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
        try:
            return work()
        except JournalAway:
            if monotonic() + pause > deadline.at:
                raise
