"""copy_conversations(): sessions from one store into another, turn by turn."""

from utools.context.store import ContextStore


async def copy_conversations(source: ContextStore, target: ContextStore) -> int:
    """Copy the sessions that the target does not have, each with its summary; return how many. A session that expires
    is copied without its expiry. One that was interrupted is completed when it is done again."""
    there, copied = set(await target.sessions()), 0
    for session in await source.sessions():
        turns = await source.turns(session)
        held = await target.turns(session) if session in there else []
        if held == turns or held != turns[: len(held)]:
            continue  # it is there, or went on there
        for number, turn in enumerate(turns[len(held) :], start=len(held)):
            await target.append(session, f"copied-{number}", turn)
        if (summary := await source.summary(session)) is not None:
            await target.keep_summary(session, summary)
        copied += 1
    return copied
