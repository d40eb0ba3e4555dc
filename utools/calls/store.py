"""CallStore: where the calls of a host share answers and rate limits."""

from typing import NamedTuple, Protocol


class Reservation(NamedTuple):
    """A slot in a rate limit: the seconds until it comes up, and its ticket; without a ticket nothing is reserved."""

    wait: float
    ticket: str | None


class CallStore(Protocol):
    """Threads and event loops share it; processes share it too where it is on a server."""

    async def get(self, key: str) -> str | None:
        """Return the text under a key; None when there is none or it has expired."""
        ...

    async def put(self, key: str, text: str, ttl: float) -> None:
        """Store a text for `ttl` seconds; the store may drop it earlier to save space."""
        ...

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        """Reserve, atomically, the next slot such that at most `count` slots fall into any span of `seconds`.

        A slot that is more than `longest` seconds away is not reserved; the answer then has no ticket.
        """
        ...

    async def cancel(self, key: str, ticket: str) -> None:
        """Free a reserved slot that was not used; an unknown ticket is ignored."""
        ...
