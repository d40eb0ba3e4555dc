"""copy_conversations(): sessions from one store into another, turn by turn."""

from collections.abc import Iterable
from typing import NamedTuple

from utools.context.store import ContextStore


class CopiedConversations(NamedTuple):
    """The sessions that were copied, or completed; and those that continued in the target, which stay as they are."""

    new: list[str]
    parted: list[str]


async def copy_conversations(
    source: ContextStore, target: ContextStore, sessions: Iterable[str]
) -> CopiedConversations:
    """Copy those of these sessions that the source has, each with its summary and the time that it has left. A copy
    that was interrupted is completed when it is done again."""
    found = CopiedConversations([], [])
    for session in sorted(sessions):
        turns, held = await source.turns(session), await target.turns(session)
        if held != turns[: len(held)]:
            found.parted.append(session)
            continue
        left = None if held == turns else await source.seconds_left(session)
        for number, turn in enumerate(turns[len(held) :], start=len(held)):
            await target.append(session, f"copied-{number}", turn, ttl=left)
        if (summary := await source.summary(session)) is not None:
            await target.keep_summary(session, summary)
        if held != turns:
            found.new.append(session)
    return found
