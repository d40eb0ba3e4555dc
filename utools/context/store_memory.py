"""MemoryContextStore: conversations in memory, for tests and hosts that need no more."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from utools.context.store import Summary
from utools.context.turns import Turn


@dataclass(slots=True)
class _Session:
    turns: dict[str, str] = field(default_factory=dict)  # JSON text by turn id, in order
    expires: float | None = None
    summary: Summary | None = None


class MemoryContextStore:
    """A ContextStore that ends with the process."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}

    async def append(self, session: str, turn_id: str, turn: Turn, *, ttl: float | None = None) -> bool:
        text = json.dumps(turn)
        with self._lock:
            stored = self._live(session) or self._sessions.setdefault(session, _Session())
            if turn_id in stored.turns:
                return stored.turns[turn_id] == text
            stored.turns[turn_id] = text
            if ttl is not None:
                stored.expires = self._clock() + ttl
            return True

    async def turns(self, session: str) -> list[Turn]:
        with self._lock:
            stored = self._live(session)
            texts = list(stored.turns.values()) if stored else []
        return [json.loads(text) for text in texts]

    async def seconds_left(self, session: str) -> float | None:
        with self._lock:
            stored = self._live(session)
            return None if stored is None or stored.expires is None else stored.expires - self._clock()

    async def sessions(self) -> list[str]:
        with self._lock:
            return sorted(session for session in list(self._sessions) if self._live(session))

    async def drop_last(self, session: str, count: int) -> bool:
        with self._lock:
            stored = self._live(session)
            if stored is None or len(stored.turns) != count:
                return False
            stored.turns.popitem()
            if stored.summary is not None and stored.summary.turns == count:
                stored.summary = None
            if count == 1:
                del self._sessions[session]
            return True

    async def clear(self, session: str) -> bool:
        with self._lock:
            live = self._live(session) is not None
            self._sessions.pop(session, None)
            return live

    async def summary(self, session: str) -> Summary | None:
        with self._lock:
            stored = self._live(session)
            return stored.summary if stored else None

    async def keep_summary(self, session: str, summary: Summary) -> None:
        with self._lock:
            stored = self._live(session)
            kept = stored.summary.turns if stored and stored.summary else 0
            if stored and kept < summary.turns <= len(stored.turns):
                stored.summary = summary

    def _live(self, session: str) -> _Session | None:
        stored = self._sessions.get(session)
        if stored and stored.expires is not None and stored.expires <= self._clock():
            del self._sessions[session]
            return None
        return stored
