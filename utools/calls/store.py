"""CallStore: the seam behind which a host's calls share answers and rate limits."""

from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A place in a rate limit's order: how many seconds from now it comes up, and, when it is taken, its ticket."""

    wait: float
    ticket: str | None


class CallStore(Protocol):
    """Threads and event loops share it, and processes where it is on a server."""

    async def kept(self, key: str) -> str | None:
        """The text kept under a key; None when there is none, or its time is over."""
        ...

    async def keep(self, key: str, text: str, ttl: float) -> None:
        """Keep a text for so many seconds, or less long where space is short."""
        ...

    async def take(self, key: str, count: int, seconds: float, longest: float | None) -> Place:
        """Take the next place such that no more than `count` come up in any `seconds`; all at once, or not.

        One that would come up later than `longest` from now is not taken, and has no ticket.
        """
        ...

    async def give_back(self, key: str, ticket: str) -> None:
        """Let go of a place that was not used."""
        ...
