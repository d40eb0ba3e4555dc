"""ContextStore: the seam behind which conversations are kept."""

from typing import Protocol

from utools.context.turns import Turn


class ContextStore(Protocol):
    """Keeps the turns of sessions, oldest first; threads, event loops and (where it is on disk) processes share it.

    A session that is unknown or has expired has no turns. A returned turn is the caller's own copy.
    """

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        """Add a turn at the end, all of it or none; False if the session has one of this id, which stays as it is.

        With `ttl` the whole session expires that many seconds from now, else its expiry stays as it is.
        """
        ...

    async def turns(self, session: str) -> list[Turn]:
        """All turns, in the order in which they were appended."""
        ...

    async def clear(self, session: str) -> bool:
        """Forget the session; whether there was anything to forget."""
        ...
