"""ContextStore: where conversations are stored."""

from typing import NamedTuple, Protocol

from utools.context.turns import Turn


class Summary(NamedTuple):
    """What stands for the first `turns` turns of a session."""

    turns: int
    text: str


class ContextStore(Protocol):
    """Stores the turns of sessions, oldest first, and a summary of each session's beginning.

    Threads and event loops share it; processes too if it is on disk. `MemoryContextStore` and `SqliteContextStore` are
    such stores; a store of one's own is tried by `check_context_store` of agent_core.testing.

    An unknown or expired session has no turns. A returned turn is the caller's own copy.
    """

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        """Add a turn at the end, atomically; False if the session has another turn with this id, which stays unchanged.
        True as well where it has the very same one, as after a call that is made again.

        With `ttl` the whole session expires that many seconds from now; without it, the expiry does not change.
        """
        ...

    async def turns(self, session: str) -> list[Turn]:
        """Return all turns, in the order in which they were appended."""
        ...

    async def seconds_left(self, session: str) -> float | None:
        """Return in how many seconds the session expires; None for one that does not, or is unknown."""
        ...

    async def sessions(self) -> list[str]:
        """Return the names of all sessions that have turns, sorted."""
        ...

    async def drop_last(self, session: str, count: int) -> bool:
        """Delete the last of `count` turns, atomically, and a summary that stands for it.

        False if the session has another number of turns, which stays unchanged. Its id may be stored again.
        """
        ...

    async def clear(self, session: str) -> bool:
        """Delete the session; whether there was one."""
        ...

    async def summary(self, session: str) -> Summary | None:
        """Return the summary of the session's beginning, if there is one."""
        ...

    async def keep_summary(self, session: str, summary: Summary) -> None:
        """Keep a summary for as long as the session, in place of one that stands for fewer turns.

        Nothing is kept where one stands for as many turns already, or the session has fewer turns: it was cleared, or
        its last turn dropped, while the summary was made.
        """
        ...
