"""ContextStore: where conversations are stored."""

from typing import Protocol

from utools.context.turns import Turn


class ContextStore(Protocol):
    """Stores the turns of sessions, oldest first. Threads and event loops share it; processes too if it is on disk.

    An unknown or expired session has no turns. A returned turn is the caller's own copy.
    """

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        """Add a turn at the end, atomically; False if the session has a turn with this id, which stays unchanged.

        With `ttl` the whole session expires that many seconds from now; without it, the expiry does not change.
        """
        ...

    async def turns(self, session: str) -> list[Turn]:
        """All turns, in the order in which they were appended."""
        ...

    async def clear(self, session: str) -> bool:
        """Delete the session; whether there was one."""
        ...
