"""Every kind of CallStore, each with a way to let its time pass."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import fakeredis
from fakeredis.aioredis import FakeAsyncRedisConnection

from utools.calls.store import CallStore
from utools.calls.store_memory import MemoryCallStore
from utools.calls.store_redis import RedisCallStore
from utools.redis_server import RedisServer


@dataclass
class Backend:
    store: CallStore
    later: Callable[[float], None]


class Clock:
    """A time that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


def in_memory() -> Backend:
    clock = Clock()
    return Backend(MemoryCallStore(clock=clock), clock.pass_by)


def in_fake_redis() -> Backend:
    fake = fakeredis.FakeServer()
    server = RedisServer("redis://fake", connections=partial(FakeAsyncRedisConnection, server=fake))
    return Backend(RedisCallStore(server), lambda seconds: pass_by(fakeredis.FakeRedis(server=fake), seconds))


def in_redis(server: Any) -> Backend:
    return Backend(RedisCallStore(RedisServer(server.url)), lambda seconds: pass_by(server.client, seconds))


def pass_by(client: Any, seconds: float) -> None:
    """What so many seconds would do to every key, in Redis' own reckoning."""
    for key in client.scan_iter():
        if client.type(key) == b"zset":
            for ticket, score in client.zrange(key, 0, -1, withscores=True):
                client.zadd(key, {ticket: score - seconds * 1000})
        if (left := client.pttl(key)) >= 0:
            client.pexpire(key, max(left - int(seconds * 1000), 0))
