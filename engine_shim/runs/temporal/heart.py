"""Heart: tells Temporal from a thread of its own that acts live, while the event loop of their worker is busy."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Final

from temporalio.client import AsyncActivityCancelledError, Client
from temporalio.service import RPCError

from engine_shim.errors import EngineAway
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.temporal.connect import WITHIN, connect
from engine_shim.runs.temporal.rows import data_converter

LOOK_S: Final = 0.2
"""How often the thread looks for acts that are overdue."""
AGAIN_S: Final = 1.0
"""When it connects again to a server that was away."""
ENDS_S: Final = 1.0
"""How long a worker that ends waits for the thread."""
MISSED: Final = 2
"""After how many intervals without a beat of the event loop the thread beats in its place."""
HUNG_S: Final = 30.0
"""After how long without a beat of its own an event loop counts as hung: its acts are left to other workers."""
log = logging.getLogger("engine_shim")


class Pulse:
    """When Temporal was last told of one act that it lives. The event loop and the thread beat in turn."""

    def __init__(self, token: bytes, interval_s: float, now: float) -> None:
        self.token, self.interval_s = token, interval_s
        self._last, self._longest_s, self._last_of_loop = now, 0.0, now
        self._lock = threading.Lock()

    def begin(self, now: float) -> None:
        """Count silences from now on."""
        with self._lock:
            self._last, self._longest_s = now, 0.0

    def beat(self, now: float) -> None:
        """Note a beat of the event loop."""
        self._last_of_loop = now
        self.beat_for_loop(now)

    def beat_for_loop(self, now: float) -> None:
        """Note a beat of the thread."""
        with self._lock:
            self._longest_s = max(self._longest_s, now - self._last)
            self._last = now

    def is_overdue(self, now: float) -> bool:
        """Return whether the thread is to beat: the event loop is late, and not so late that it counts as hung."""
        return now - self._last > MISSED * self.interval_s and now - self._last_of_loop < HUNG_S

    def longest_silence_s(self, now: float) -> float:
        """Return the longest time without a beat, the one since the last included."""
        with self._lock:
            return max(self._longest_s, now - self._last)


class Heart:
    """Beats for the acts of a worker whose event loop has not beaten for two intervals, up to half a minute.

    The SDK's own heartbeat begins in the event loop, and comes late when a step there takes long: an import, a hash of
    megabytes, a tool that blocks. A client may be used in one event loop alone, so that the thread has a loop and a
    connection of its own. A cancellation is left to the worker's next beat, whose answer brings it as well.
    """

    def __init__(self, config: TemporalConfig) -> None:
        self._config, self._pulses = config, dict[bytes, Pulse]()
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Beat until the end of the block."""
        thread = threading.Thread(target=lambda: asyncio.run(self._beat_on()), name="agent-core-heart", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(ENDS_S)

    @contextmanager
    def watching(self, pulse: Pulse) -> Iterator[None]:
        """Beat for an act when its pulse is overdue, until the end of the block."""
        self._pulses[pulse.token] = pulse
        try:
            yield
        finally:
            del self._pulses[pulse.token]

    async def _beat_on(self) -> None:
        client: Client | None = None
        while not self._over.is_set():
            try:
                if client is None:
                    client = await self._try_connect()
                else:
                    overdue = [pulse for pulse in list(self._pulses.values()) if pulse.is_overdue(monotonic())]
                    await asyncio.gather(*(_beat(client, pulse) for pulse in overdue))
            except Exception as error:  # whatever it is, the thread goes on: without it acts that live count as dead
                log.error("Temporal could not be told that acts live: %r", error)
                client = None
            await asyncio.sleep(AGAIN_S if client is None else LOOK_S)

    async def _try_connect(self) -> Client | None:
        try:
            return await connect(self._config, data_converter())
        except EngineAway:  # the worker's own connection says so
            return None


async def _beat(client: Client, pulse: Pulse) -> None:
    try:
        with suppress(AsyncActivityCancelledError):
            await client.get_async_activity_handle(task_token=pulse.token).heartbeat(rpc_timeout=WITHIN)
    except RPCError as error:
        log.debug("Temporal could not be told that an act lives: %s", error.message)
    else:
        pulse.beat_for_loop(monotonic())
