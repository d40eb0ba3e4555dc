"""EncryptedCallStore: the calls of another store, which holds none of the answers' texts."""

from utools.calls.store import CallStore, Reservation
from utools.secrets.text_cipher import TextCipher
from utools.threads import DaemonThreads

SUBJECT = "kept answers"
THREADS = 8


class EncryptedCallStore:
    """A CallStore whose kept answers are encrypted in the store below; one whose key is gone is kept no more."""

    def __init__(self, store: CallStore, cipher: TextCipher) -> None:
        self._store, self._cipher = store, cipher
        self._threads = DaemonThreads(THREADS)

    async def get(self, key: str) -> str | None:
        text = await self._store.get(key)
        return None if text is None else await self._threads.run(self._cipher.decrypt_text, SUBJECT, key, text)

    async def put(self, key: str, text: str, ttl: float) -> None:
        await self._store.put(key, await self._threads.run(self._cipher.encrypt_text, SUBJECT, key, text), ttl)

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        return await self._store.reserve(key, count, seconds, longest)

    async def cancel(self, key: str, ticket: str) -> None:
        await self._store.cancel(key, ticket)
