"""Every kind of CallStore, each with a way to let its time pass."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import fakeredis
import pytest
from fakeredis.aioredis import FakeAsyncRedisConnection

from utools.calls.store import CallStore
from utools.calls.store_memory import MemoryCallStore
from utools.calls.store_redis import RedisCallStore
from utools.databases.redis_server import RedisServer


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


def in_postgres(url: str) -> Iterator[Backend]:
    import psycopg

    from utools.calls.store_postgres import LAYOUT, PostgresCallStore
    from utools.databases.postgres_database import PostgresDatabase

    def pass_by(seconds: float) -> None:
        with psycopg.connect(url) as db:
            db.execute("UPDATE kept_answers SET expires = expires - %s", (seconds,))
            db.execute("UPDATE rate_slots SET at = at - %s, expires = expires - %s", (seconds, seconds))

    with closing(PostgresDatabase(url, (LAYOUT,), patience=5)) as database:
        yield Backend(PostgresCallStore(database), pass_by)


POSTGRES = pytest.param("postgres", marks=[pytest.mark.exhaustive, pytest.mark.xdist_group("postgres")])
KINDS = ("memory", "fakeredis", "redis", POSTGRES)


def open_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """The kind that the parameter of a fixture names."""
    match request.param:
        case "memory":
            yield in_memory()
        case "fakeredis":
            yield in_fake_redis()
        case "redis":
            yield in_redis(request.getfixturevalue("redis_server"))
        case "postgres":
            yield from in_postgres(request.getfixturevalue("new_database")())
