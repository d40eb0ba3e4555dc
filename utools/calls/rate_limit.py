"""Rate limits: how often all callers on a host together may call a tool."""

import re
from dataclasses import dataclass

from utools.calls.store import CallStore, Reservation
from utools.errors import DefinitionError, UtoolsError

SPANS = {"s": ("a second", 1.0), "min": ("a minute", 60.0), "h": ("an hour", 3600.0)}
RATE = re.compile(r"([1-9][0-9]{0,5})/(s|min|h)")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `count` calls in any span of time: a sliding window, not calendar minutes."""

    count: int
    unit: str

    @classmethod
    def of(cls, text: str, *, where: str = "rate_limit") -> "RateLimit":
        """Read `10/min`; DefinitionError for anything else."""
        found = RATE.fullmatch(text)
        if found is None:
            raise DefinitionError("write a count and a span, such as 10/min, 2/s or 500/h", where=where, value=text)
        return cls(int(found[1]), found[2])

    @property
    def seconds(self) -> float:
        return SPANS[self.unit][1]

    def __str__(self) -> str:
        return f"{self.count} {'call' if self.count == 1 else 'calls'} {SPANS[self.unit][0]}"


async def acquire(store: CallStore, tool: str, limit: RateLimit, *, within: float | None) -> str | None:
    """Wait until the tool may be called, then return None.

    Returns the reason at once if the next free slot is more than `within` seconds away, or if the store fails.
    A caller that is cancelled while it waits frees its slot.
    """
    from asyncio import sleep

    key = f"{tool}:{limit.count}/{limit.unit}"
    try:
        slot = await store.reserve(key, limit.count, limit.seconds, within)
    except (UtoolsError, OSError) as error:
        return f"{tool} is limited to {limit}, and how many were made cannot be looked up: {error}"
    if slot.ticket is None:
        return f"{tool} is limited to {limit}, and this call cannot wait so long: it would be allowed {_when(slot)}"
    try:
        await sleep(slot.wait)
    except BaseException:
        await _cancel(store, key, slot.ticket)
        raise
    return None


async def _cancel(store: CallStore, key: str, ticket: str) -> None:
    from asyncio import shield

    try:
        await shield(store.cancel(key, ticket))
    except (UtoolsError, OSError):  # the slot passes unused
        return


def _when(slot: Reservation) -> str:
    from datetime import UTC, datetime, timedelta

    at = datetime.now(UTC) + timedelta(seconds=slot.wait)
    return f"in {slot.wait:.1f} seconds, at {at.isoformat(timespec='seconds').replace('+00:00', 'Z')}"
