"""retry_until_available(): a step on a journal whose database may be away for a while, tried again until it is back."""

import logging
import os
from asyncio import CancelledError, Lock, sleep
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final, TypeVar

from agent_core.errors import DefinitionError, JournalAway
from agent_core.journal.store import Journal
from agent_core.run.blocking import finish_despite_cancel
from agent_core.run.cancellation import OnCancel, retry_if_cancelled
from utools.retry import Pauses
from utools.threads import Threads

log = logging.getLogger("agent_core")
VARIABLE: Final = "AGENT_CORE_STORE_PATIENCE"
PATIENCE_S: Final = 60.0
"""How long a run waits for the database of its journal, unless the environment says otherwise."""
HURRY_S: Final = 5.0
"""How long it still waits once it is cancelled."""
PAUSES: Final = Pauses(0.1, longest=2.0)
T = TypeVar("T")


def patience_of_host() -> float:
    """Return how many seconds a run waits for its journal. DefinitionError for a setting that is no number of
    seconds."""
    text = os.environ.get(VARIABLE) or str(PATIENCE_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise DefinitionError("must be a number of seconds, 0 to 86400, such as 60", where=VARIABLE, value=text)
    return seconds


async def retry_until_available(
    journal: Journal,
    step: Callable[[], T],
    *,
    run: str,
    patience: float,
    turn: Lock | None = None,
    interrupt: OnCancel | None = None,
    threads: Threads | None = None,
) -> T:
    """Return what a step on a journal gives, which must be safe to do again. JournalAway where the database stays away
    for more than `patience` seconds. Of the steps with one `turn` each is made after the other.

    A caller who is cancelled waits a little longer still: `interrupt` hears of it, and without that the cancellation
    continues then. A step that waits for something else than the journal has `threads` for a journal without its own.
    """
    threads = journal.threads or threads
    if threads is None:
        return step()
    attempts = _Attempts(threads, run, patience, monotonic() + patience, turn or Lock(), interrupt)
    result = await attempts.make(step)
    if attempts.cancellation is not None and interrupt is None:
        raise attempts.cancellation
    return result


@dataclass(slots=True)
class _Attempts:
    """The attempts at one step of a run."""

    threads: Threads
    run: str
    patience: float
    until: float
    turn: Lock
    interrupt: OnCancel | None
    cancellation: CancelledError | None = None

    async def make(self, step: Callable[[], T]) -> T:
        """Return what the step gives as soon as its database is there."""
        pauses, has_waited = iter(PAUSES), False
        while True:
            pause = next(pauses)
            try:
                result = await self._make_once(step)
            except JournalAway as error:
                if monotonic() + pause > self.until:
                    raise
                if not has_waited:
                    log.warning("run %s waits for its journal, up to %g seconds: %s", self.run, self.patience, error)
                has_waited = True
            else:
                if has_waited:
                    log.warning("run %s continues: its journal is back", self.run)
                return result
            await retry_if_cancelled(partial(sleep, pause), self._hear_cancellation)

    async def _make_once(self, step: Callable[[], T]) -> T:
        await retry_if_cancelled(self.turn.acquire, self._hear_cancellation)
        try:
            return await finish_despite_cancel(self.threads, step, self._hear_cancellation)
        finally:
            self.turn.release()

    def _hear_cancellation(self, cancellation: CancelledError) -> None:
        """Give up soon."""
        self.cancellation = cancellation
        self.until = min(self.until, monotonic() + HURRY_S)
        if self.interrupt is not None:
            self.interrupt(cancellation)
