"""EncryptedContextStore: the conversations of another store, which holds none of their texts."""

import json

from utools.context.store import ContextStore, Summary
from utools.context.turns import ENCRYPTED, Turn
from utools.secrets.text_cipher import TextCipher
from utools.threads import DaemonThreads

THREADS = 8


class EncryptedContextStore:
    """A ContextStore whose turns and summaries are encrypted in the store below. Names of sessions and ids of turns are
    not. The same turn is the same bytes again, so that a call that is made again adds nothing."""

    def __init__(self, store: ContextStore, cipher: TextCipher) -> None:
        self._store, self._cipher = store, cipher
        self._threads = DaemonThreads(THREADS)

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        text = await self._threads.run(self._encrypt, session, json.dumps(turn))
        return await self._store.append(session, turn_id, [{ENCRYPTED: text}], ttl=ttl)

    async def turns(self, session: str) -> list[Turn]:
        found = await self._store.turns(session)
        return await self._threads.run(self._decrypt_turns, session, found)

    async def seconds_left(self, session: str) -> float | None:
        return await self._store.seconds_left(session)

    async def sessions(self) -> list[str]:
        return await self._store.sessions()

    async def drop_last(self, session: str, count: int) -> bool:
        found = await self._store.turns(session)
        if len(await self._threads.run(self._decrypt_turns, session, found)) != count:
            return False
        return await self._store.drop_last(session, len(found))

    async def clear(self, session: str) -> bool:
        return await self._store.clear(session)

    async def summary(self, session: str) -> Summary | None:
        found = await self._store.summary(session)
        if found is None:
            return None
        text = await self._threads.run(self._decrypt, session, found.text)
        return None if text is None else Summary(found.turns, text)

    async def keep_summary(self, session: str, summary: Summary) -> None:
        text = await self._threads.run(self._encrypt, session, summary.text)
        await self._store.keep_summary(session, Summary(summary.turns, text))

    def _decrypt_turns(self, session: str, found: list[Turn]) -> list[Turn]:
        turns: list[Turn] = []
        for turn in found:
            match turn:
                case [{"encrypted": str(text)}]:
                    plain = self._decrypt(session, text)
                    turns += [] if plain is None else [json.loads(plain)]
                case _:
                    turns.append(turn)  # of the time before the store was encrypted
        return turns

    def _encrypt(self, session: str, text: str) -> str:
        return self._cipher.encrypt_text(subject_of(session), ENCRYPTED, text)

    def _decrypt(self, session: str, text: str) -> str | None:
        return self._cipher.decrypt_text(subject_of(session), ENCRYPTED, text)


def subject_of(session: str) -> str:
    """Return whose key encrypts the conversation of a session."""
    return f"conversation:{session}"
