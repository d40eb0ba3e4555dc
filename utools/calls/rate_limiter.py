"""Waiting for a tool's rate limit, which all callers on a host share through a CallStore."""

from asyncio import shield, sleep
from datetime import UTC, datetime, timedelta
from time import monotonic

from utools.calls.rate_limit import RateLimit
from utools.calls.store import CallStore, Reservation
from utools.errors import ToolError, UtoolsError
from utools.retry import Pauses, retry
from utools.words.catalogue import ENGLISH, Words
from utools.words.text import translate

PATIENCE_S = 15.0
"""How long a call waits for a store that is away."""
PAUSES = Pauses(0.1)


async def acquire(
    store: CallStore, tool: str, limit: RateLimit, *, within: float | None, words: Words = ENGLISH
) -> str | None:
    """Wait until the tool may be called, then return None.

    Returns the reason at once if the next free slot is more than `within` seconds away, or if the store fails; one
    that is away is asked again within that time, for 15 seconds at most. A caller that is cancelled while it waits
    frees its slot.
    """
    key = f"{tool}:{limit.count}/{limit.unit}"
    try:
        slot = await _reserve(store, key, limit, within)
    except (UtoolsError, OSError) as error:
        return words.rate_unknown.format(tool=tool, limit=limit.describe(words), error=translate(error, words.language))
    if slot.ticket is None:
        seconds = f"{slot.wait:.1f}"
        return words.rate_exceeded.format(tool=tool, limit=limit.describe(words), seconds=seconds, at=_when(slot))
    try:
        await sleep(slot.wait)
    except BaseException:
        await _cancel(store, key, slot.ticket)
        raise
    return None


async def _reserve(store: CallStore, key: str, limit: RateLimit, within: float | None) -> Reservation:
    """Return the next slot, from a store that may be away for a while. One that is reserved twice passes unused."""
    start = monotonic()

    async def reserve() -> Reservation:
        left = None if within is None else within - (monotonic() - start)
        return await store.reserve(key, limit.count, limit.seconds, left)

    patience = PATIENCE_S if within is None else min(within, PATIENCE_S)
    return await retry(reserve, _is_away, PAUSES, patience=patience)


def _is_away(error: Exception) -> bool:
    return isinstance(error, OSError) or (isinstance(error, ToolError) and error.transient)


async def _cancel(store: CallStore, key: str, ticket: str) -> None:
    try:
        await shield(store.cancel(key, ticket))
    except (UtoolsError, OSError):  # the slot passes unused
        return


def _when(slot: Reservation) -> str:
    at = datetime.now(UTC) + timedelta(seconds=slot.wait)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
