"""What disturbs a soak, one thing every few seconds, as its seed has it; at the end all is healed."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from support.bad_link import State
from support.soak.world import Process, World

EVERY_S = (1.0, 5.0)


@dataclass
class Disturber:
    """Disturbs a world, and counts how."""

    world: World
    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)
    _busy: set[str] = field(default_factory=set)
    """What is down, or spoilt, and comes back by itself."""

    async def disturb(self, seconds: float) -> None:
        """Disturb for so long, then heal everything."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await asyncio.sleep(self.chance.uniform(*EVERY_S))
                    name = self.chance.choice(list(self._ways()))
                    self.done[name] += 1
                    self._begin(self._ways()[name])
        except TimeoutError:
            pass
        await asyncio.gather(*self._under_way)

    def _ways(self) -> dict[str, Callable[[], Awaitable[None]]]:
        ways: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "crash postgres": self._crash_postgres,
            "slow link": self._slow_link,
            "drip link": lambda: self._spoil_link("drip"),
            "silent link": lambda: self._spoil_link("silent"),
            "refusing link": lambda: self._spoil_link("refuse"),
            "cut connections": self._cut_connections,
        }
        if self.world.temporal is not None:
            ways["kill temporal"] = self._kill_temporal
        return {name: way for name, way in ways.items() if name not in self.world.without}

    def _begin(self, way: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(way())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _choose(self) -> Process | None:
        found = [each for each in self.world.processes if each.is_ready and not each.is_stopped]
        return self.chance.choice(found) if found else None

    async def _kill(self) -> None:
        if process := self._choose():
            self.world.processes.remove(process)
            process.kill()
            self.world.start(process.kind)

    async def _stop(self) -> None:
        if process := self._choose():
            process.send(signal.SIGSTOP)
            await asyncio.sleep(self.chance.uniform(1, 12))
            if process.process.poll() is None:
                process.send(signal.SIGCONT)

    @asynccontextmanager
    async def _alone(self, what: str) -> AsyncIterator[bool]:
        """Whether nothing else is done to it until the end of the block."""
        is_free = what not in self._busy
        self._busy.add(what)
        try:
            yield is_free
        finally:
            if is_free:
                self._busy.discard(what)

    async def _crash_postgres(self) -> None:
        async with self._alone("postgres") as is_free:
            if is_free:
                await asyncio.to_thread(self.world.postgres.crash)
                await asyncio.sleep(self.chance.uniform(0, 4))
                await asyncio.to_thread(self.world.postgres.start_again)

    async def _slow_link(self) -> None:
        self.world.link.latency = self.chance.uniform(0.02, 0.3)
        await asyncio.sleep(self.chance.uniform(1, 8))
        self.world.link.latency = 0.0

    async def _spoil_link(self, state: State) -> None:
        async with self._alone("link") as is_free:
            if is_free:
                await asyncio.to_thread(self.world.link.become, state)
                await asyncio.sleep(self.chance.uniform(1, 12))
                await asyncio.to_thread(self.world.link.become, "pass")

    async def _cut_connections(self) -> None:
        await asyncio.to_thread(self.world.link.reset_all)

    async def _kill_temporal(self) -> None:
        assert self.world.temporal is not None
        async with self._alone("temporal") as is_free:
            if is_free:
                await asyncio.to_thread(self.world.temporal.kill)
                await asyncio.sleep(self.chance.uniform(0, 4))
                await asyncio.to_thread(self.world.temporal.start)
