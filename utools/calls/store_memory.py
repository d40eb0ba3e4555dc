"""What calls share, in memory: for a host that is one process."""

import threading
import time
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable

from utools.calls.store import Place

LARGEST = 64 * 2**20
"""Characters of all kept texts together; those that were not asked for longest go first."""


class MemoryCallStore:
    """A CallStore that is gone with the process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, largest: int = LARGEST) -> None:
        self._clock, self._largest = clock, largest
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._size = 0
        self._places: dict[str, list[tuple[float, str]]] = {}
        self._tickets = 0

    async def kept(self, key: str) -> str | None:
        with self._lock:
            expires, text = self._texts.get(key, (0.0, None))
            if text is None:
                return None
            if expires <= self._clock():
                self._forget(key)
                return None
            self._texts.move_to_end(key)
            return text

    async def keep(self, key: str, text: str, ttl: float) -> None:
        with self._lock:
            self._forget(key)
            self._texts[key] = (self._clock() + ttl, text)
            self._size += len(text)
            while self._size > self._largest:
                self._forget(next(iter(self._texts)))

    async def take(self, key: str, count: int, seconds: float, longest: float | None) -> Place:
        with self._lock:
            now = self._clock()
            places = [each for each in self._places.get(key, ()) if each[0] > now - seconds]
            start = max(now, places[-count][0] + seconds) if len(places) >= count else now
            self._places[key] = places
            if longest is not None and start - now > longest:
                return Place(start - now, None)
            self._tickets += 1
            insort(places, (start, str(self._tickets)))
            return Place(start - now, str(self._tickets))

    async def give_back(self, key: str, ticket: str) -> None:
        with self._lock:
            self._places[key] = [each for each in self._places.get(key, ()) if each[1] != ticket]

    def _forget(self, key: str) -> None:
        _, text = self._texts.pop(key, (0.0, ""))
        self._size -= len(text)
