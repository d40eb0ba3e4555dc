"""MemoryCallStore: answers and rate limits of a host that is one process."""

import threading
import time
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable

from utools.calls.store import Reservation

LARGEST = 64 * 2**20
"""Characters of all stored texts together; the least recently used ones are dropped first."""


class MemoryCallStore:
    """A CallStore that ends with the process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, largest: int = LARGEST) -> None:
        self._clock, self._largest = clock, largest
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._size = 0
        self._slots: dict[str, list[tuple[float, str]]] = {}
        self._tickets = 0

    async def get(self, key: str) -> str | None:
        with self._lock:
            expires, text = self._texts.get(key, (0.0, None))
            if text is None:
                return None
            if expires <= self._clock():
                self._drop(key)
                return None
            self._texts.move_to_end(key)
            return text

    async def put(self, key: str, text: str, ttl: float) -> None:
        with self._lock:
            self._drop(key)
            self._texts[key] = (self._clock() + ttl, text)
            self._size += len(text)
            while self._size > self._largest:
                self._drop(next(iter(self._texts)))

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        with self._lock:
            now = self._clock()
            slots = [slot for slot in self._slots.get(key, ()) if slot[0] > now - seconds]
            start = max(now, slots[-count][0] + seconds) if len(slots) >= count else now
            self._slots[key] = slots
            if longest is not None and start - now > longest:
                return Reservation(start - now, None)
            self._tickets += 1
            insort(slots, (start, str(self._tickets)))
            return Reservation(start - now, str(self._tickets))

    async def cancel(self, key: str, ticket: str) -> None:
        with self._lock:
            self._slots[key] = [slot for slot in self._slots.get(key, ()) if slot[1] != ticket]

    def _drop(self, key: str) -> None:
        _, text = self._texts.pop(key, (0.0, ""))
        self._size -= len(text)
