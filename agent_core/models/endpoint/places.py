"""Places: how many requests may be under way to one endpoint at once, whichever of its models they ask."""

import asyncio
from functools import lru_cache
from weakref import WeakKeyDictionary

from agent_core.models.endpoint.route import Route

MAX_ENDPOINTS = 256


class Places:
    """The places of one endpoint. Each event loop has as many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def of_loop(self) -> asyncio.Semaphore:
        """Return the places of the running event loop."""
        for loop in [reference() for reference in self._free.keyrefs()]:
            if loop is not None and loop.is_closed():  # a semaphore refers to its loop, and keeps it in the dictionary
                self._free.pop(loop, None)
        return self._free.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._most))


@lru_cache(maxsize=MAX_ENDPOINTS)
def find_places(host: bytes, route: Route) -> Places:
    """Return the process's places of an endpoint with `max_connections`."""
    assert route.max_connections is not None
    return Places(route.max_connections)
