"""The contract of ContextStore, kept by every backend; and what only a store on disk must keep."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fakeredis
import pytest
from fakeredis.aioredis import FakeAsyncRedisConnection

from agent_core.testing.contracts.context_store import CONTEXT_RULES, RULES_OF_TIME, turn
from agent_core.testing.contracts.rules import Rule
from support.call_stores import POSTGRES
from support.redis_server import RealServer
from utools.context.copy import copy_conversations
from utools.context.store import ContextStore, Summary
from utools.context.store_memory import MemoryContextStore
from utools.context.store_redis import RedisContextStore
from utools.context.store_sqlite import SqliteContextStore, default_path
from utools.databases.redis_server import RedisServer


class Clock:
    """A time that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@dataclass
class Backend:
    """A store, and a way to let its time pass."""

    store: ContextStore
    later: Callable[[float], None]


def of_fake_redis() -> Backend:
    fake = fakeredis.FakeServer()
    server = RedisServer("redis://fake", connections=partial(FakeAsyncRedisConnection, server=fake))
    return Backend(RedisContextStore(server), lambda seconds: expire_sooner(fakeredis.FakeRedis(server=fake), seconds))


def of_redis(server: RealServer) -> Backend:
    return Backend(RedisContextStore(RedisServer(server.url)), lambda seconds: expire_sooner(server.client, seconds))


def expire_sooner(client: Any, seconds: float) -> None:
    """What so many seconds would do to every key, in Redis' own reckoning."""
    for key in client.scan_iter():
        if (left := client.pttl(key)) >= 0:
            client.pexpire(key, max(left - int(seconds * 1000), 0))


def of_postgres(url: str) -> Iterator[Backend]:
    import psycopg

    from utools.context.store_postgres import LAYOUT, PostgresContextStore
    from utools.databases.postgres_database import PostgresDatabase

    def pass_by(seconds: float) -> None:
        with psycopg.connect(url) as db:
            db.execute("UPDATE conversations SET expires = expires - %s", (seconds,))

    with closing(PostgresDatabase(url, (LAYOUT,), patience=5)) as database:
        yield Backend(PostgresContextStore(database), pass_by)


@pytest.fixture(params=["memory", "sqlite", "fakeredis", "redis", POSTGRES])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Backend]:
    match request.param:
        case "memory":
            yield Backend(MemoryContextStore(clock=clock), clock.pass_by)
        case "sqlite":
            yield Backend(SqliteContextStore(tmp_path / "new" / "context.db", clock=clock), clock.pass_by)
        case "fakeredis":
            yield of_fake_redis()
        case "redis":
            yield of_redis(request.getfixturevalue("redis_server"))
        case "postgres":
            yield from of_postgres(request.getfixturevalue("new_database")())


@pytest.fixture
def store(backend: Backend) -> ContextStore:
    return backend.store


@pytest.fixture
def later(backend: Backend) -> Callable[[float], None]:
    return backend.later


@pytest.mark.parametrize("rule", CONTEXT_RULES, ids=str)
async def test_every_store_keeps_to_the_contract(store: ContextStore, rule: Rule) -> None:
    await rule.run(store)


@pytest.mark.parametrize("rule", RULES_OF_TIME, ids=str)
async def test_every_store_keeps_to_the_contract_as_time_passes(
    store: ContextStore, later: Callable[[float], None], rule: Rule
) -> None:
    await rule.run(store, later)


@pytest.mark.exhaustive
def test_many_that_make_a_new_file_at_once_lose_nothing(tmp_path: Path) -> None:
    for each in range(40):
        store, ready = SqliteContextStore(tmp_path / f"{each}.db"), threading.Barrier(8)

        def write(writer: int, store: ContextStore = store, ready: threading.Barrier = ready) -> None:
            ready.wait()
            asyncio.run(store.append("s", str(writer), turn(str(writer))))

        writers = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert len(asyncio.run(store.turns("s"))) == 8


WRITER = """
import asyncio, sys
from utools.context.store_sqlite import SqliteContextStore
async def main():
    store = SqliteContextStore(sys.argv[1])
    for number in range(20):
        text = f"{sys.argv[2]}.{number}"
        await store.append("s", text, [{"role": "user", "content": text}])
        await store.append("s", f"shared.{number}", [{"role": "user", "content": "shared"}])
asyncio.run(main())
"""


def test_sqlite_is_shared_by_processes(tmp_path: Path) -> None:
    path = tmp_path / "context.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(each)]) for each in range(4)]
    assert [each.wait(60) for each in writers] == [0, 0, 0, 0]
    stored = [each[0]["content"] for each in asyncio.run(SqliteContextStore(path).turns("s"))]
    assert (len(stored), stored.count("shared")) == (100, 20)
    for writer in range(4):
        assert [text for text in stored if text.startswith(f"{writer}.")] == [f"{writer}.{n}" for n in range(20)]


async def test_sqlite_outlives_the_store_object(tmp_path: Path) -> None:
    await SqliteContextStore(tmp_path / "c.db").append("s", "t", turn("x"))
    assert await SqliteContextStore(tmp_path / "c.db").turns("s") == [turn("x")]


async def test_sqlite_finds_its_file_at_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteContextStore()
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", str(tmp_path / "chosen" / "c.db"))
    await store.append("s", "t", turn("x"))
    assert (tmp_path / "chosen" / "c.db").exists()


def test_default_file_lies_in_the_users_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_CORE_CONTEXT_DB", raising=False)
    assert default_path().parts[-2:] == ("agent-core", "context.db")


async def test_a_copy_that_ended_before_its_summary_gets_it_when_it_is_done_again() -> None:
    source, target = MemoryContextStore(), MemoryContextStore()
    for store in (source, target):
        await store.append("s", "copied-0", turn("one"))
    await source.keep_summary("s", Summary(1, "one"))
    assert await copy_conversations(source, target, ["s", "unknown"]) == ([], [])
    assert await target.summary("s") == Summary(1, "one")
