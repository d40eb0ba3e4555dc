"""Rate limits: how often a tool may be called, by everyone on this host together."""

import re
from dataclasses import dataclass

from utools.calls.store import CallStore, Place
from utools.errors import DefinitionError, UtoolsError

SPANS = {"s": ("a second", 1.0), "min": ("a minute", 60.0), "h": ("an hour", 3600.0)}
WRITTEN = re.compile(r"([1-9][0-9]{0,5})/(s|min|h)")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `count` calls in any span of time, not only in each that the clock begins anew."""

    count: int
    unit: str

    @classmethod
    def of(cls, text: str, *, where: str = "rate_limit") -> "RateLimit":
        """From `10/min`; DefinitionError for what is no rate limit."""
        found = WRITTEN.fullmatch(text)
        if found is None:
            raise DefinitionError("write a count and a span, such as 10/min, 2/s or 500/h", where=where, value=text)
        return cls(int(found[1]), found[2])

    @property
    def seconds(self) -> float:
        return SPANS[self.unit][1]

    def __str__(self) -> str:
        return f"{self.count} {'call' if self.count == 1 else 'calls'} {SPANS[self.unit][0]}"


async def turn_of(store: CallStore, tool: str, limit: RateLimit, *, within: float | None) -> str | None:
    """Wait until the tool may be called; None when it may be.

    Else the reason why not: its turn comes later than `within` seconds (and when that is), or the store cannot be
    asked. Whoever is cancelled while waiting gives its turn back.
    """
    from asyncio import sleep

    key = f"{tool}:{limit.count}/{limit.unit}"
    try:
        place = await store.take(key, limit.count, limit.seconds, within)
    except (UtoolsError, OSError) as error:
        return f"{tool} is limited to {limit}, and how many were made cannot be looked up: {error}"
    if place.ticket is None:
        return f"{tool} is limited to {limit}, and this call cannot wait so long: it would be allowed {_when(place)}"
    try:
        await sleep(place.wait)
    except BaseException:
        await _given_back(store, key, place.ticket)
        raise
    return None


async def _given_back(store: CallStore, key: str, ticket: str) -> None:
    from asyncio import shield

    try:
        await shield(store.give_back(key, ticket))
    except (UtoolsError, OSError):  # it comes up unused, and is forgotten in its time
        return


def _when(place: Place) -> str:
    from datetime import UTC, datetime, timedelta

    at = datetime.now(UTC) + timedelta(seconds=place.wait)
    return f"in {place.wait:.1f} seconds, at {at.isoformat(timespec='seconds').replace('+00:00', 'Z')}"
