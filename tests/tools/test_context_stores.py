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

from support.call_stores import POSTGRES
from support.redis_server import RealServer
from utools.context.copy import copy_conversations
from utools.context.store import ContextStore, Summary
from utools.context.store_memory import MemoryContextStore
from utools.context.store_redis import RedisContextStore
from utools.context.store_sqlite import SqliteContextStore, default_path
from utools.context.turns import Turn
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


def turn(text: str) -> Turn:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": f"re: {text}"}]


async def test_unknown_session_has_no_turns(store: ContextStore) -> None:
    assert await store.turns("s") == []
    assert await store.clear("s") is False


async def test_turns_come_back_in_order_and_by_session(store: ContextStore) -> None:
    for text in ("one", "two", "three"):
        assert await store.append("s", text, turn(text))
    await store.append("other", "one", turn("else"))
    assert await store.turns("s") == [turn("one"), turn("two"), turn("three")]
    assert await store.turns("other") == [turn("else")]


async def test_turn_is_stored_once(store: ContextStore) -> None:
    assert await store.append("s", "t", turn("first"))
    assert not await store.append("s", "t", turn("second"))
    assert await store.append("s", "t", turn("first")), "the very same one is stored"
    assert await store.turns("s") == [turn("first")]


async def test_any_text_comes_back_as_it_was(store: ContextStore) -> None:
    odd = turn("\u0000 '; DROP TABLE turns; -- \ud800 \u2028 中文 😀")
    await store.append("s';\"", "t\u0000", odd)
    assert await store.turns("s';\"") == [odd]


async def test_what_is_returned_or_given_is_the_callers_own(store: ContextStore) -> None:
    given = turn("x")
    await store.append("s", "t", given)
    given[0]["content"] = "changed"
    (await store.turns("s"))[0].clear()
    assert await store.turns("s") == [turn("x")]


async def test_cleared_session_is_gone_and_may_begin_anew(store: ContextStore) -> None:
    await store.append("s", "t", turn("old"))
    assert await store.clear("s") is True
    assert await store.turns("s") == []
    assert await store.append("s", "t", turn("new"))
    assert await store.turns("s") == [turn("new")]


async def test_the_last_turn_is_dropped_if_there_are_as_many_as_the_caller_knows(store: ContextStore) -> None:
    for text in ("one", "two", "three"):
        await store.append("s", text, turn(text))
    assert not await store.drop_last("s", 2)
    assert not await store.drop_last("s", 4)
    assert await store.drop_last("s", 3)
    assert not await store.drop_last("s", 3)
    assert await store.turns("s") == [turn("one"), turn("two")]
    for text in ("four", "three"):
        assert await store.append("s", text, turn(text))
    assert await store.turns("s") == [turn(each) for each in ("one", "two", "four", "three")]


async def test_a_session_whose_only_turn_is_dropped_is_gone(store: ContextStore) -> None:
    await store.append("s", "t", turn("one"), ttl=100)
    await store.keep_summary("s", Summary(1, "one"))
    assert await store.drop_last("s", 1)
    assert (await store.turns("s"), await store.sessions(), await store.summary("s")) == ([], [], None)
    assert not await store.drop_last("s", 0)


async def test_a_summary_goes_with_the_turn_that_it_stands_for_and_no_sooner(store: ContextStore) -> None:
    for text in ("one", "two"):
        await store.append("s", text, turn(text))
        await store.keep_summary("s", Summary(1, "one"))
    assert await store.append("s", "three", turn("three"))
    await store.drop_last("s", 3)
    assert await store.summary("s") == Summary(1, "one")
    await store.keep_summary("s", Summary(2, "both"))
    await store.drop_last("s", 2)
    assert await store.summary("s") is None
    for text in ("four", "five"):
        await store.append("s", text, turn(text))
    assert await store.turns("s") == [turn("one"), turn("four"), turn("five")]
    await store.keep_summary("s", Summary(1, "anew"))
    assert await store.summary("s") == Summary(1, "anew")


async def test_sessions_are_named_until_they_are_gone(store: ContextStore, later: Callable[[float], None]) -> None:
    assert await store.sessions() == []
    for session in ("b", "a*", "ä\n", "gone", "cleared"):
        await store.append(session, "t1", turn("q"), ttl=10 if session == "gone" else None)
        await store.append(session, "t2", turn("q"))
    later(11)
    await store.clear("cleared")
    assert await store.sessions() == ["a*", "b", "ä\n"]


async def test_session_expires_as_a_whole(store: ContextStore, later: Callable[[float], None]) -> None:
    await store.append("s", "1", turn("one"), ttl=10)
    later(9)
    await store.append("s", "2", turn("two"))
    assert len(await store.turns("s")) == 2
    later(1)
    assert await store.turns("s") == []
    assert await store.clear("s") is False


async def test_summary_that_stands_for_more_turns_stays(store: ContextStore) -> None:
    assert await store.summary("s") is None
    for number in range(3):
        await store.append("s", f"t{number}", turn(str(number)))
    odd = Summary(2, "\u0000 '; 12 \ud800 \u2028 中文 😀")
    for kept in (Summary(1, "one"), odd, Summary(1, "late"), Summary(2, "another")):
        await store.keep_summary("s", kept)
    assert await store.summary("s") == odd
    assert await store.summary("other") is None
    await store.append("s", "t3", turn("3"))
    assert await store.turns("s") == [turn(str(number)) for number in range(4)]


async def test_summary_goes_with_its_session(store: ContextStore, later: Callable[[float], None]) -> None:
    await store.keep_summary("s", Summary(1, "of nothing"))
    assert await store.summary("s") is None
    for end in ("cleared", "expired"):
        await store.append("s", "t", turn("x"), ttl=10)
        await store.keep_summary("s", Summary(1, "x"))
        assert await store.summary("s") == Summary(1, "x")
        if end == "cleared":
            await store.clear("s")
        else:
            later(10)
        assert await store.summary("s") is None
    await store.append("s", "t", turn("anew"))
    assert (await store.summary("s"), await store.turns("s")) == (None, [turn("anew")])


async def test_seconds_left_are_those_until_the_session_expires(
    store: ContextStore, later: Callable[[float], None]
) -> None:
    assert await store.seconds_left("s") is None
    await store.append("s", "1", turn("one"))
    assert await store.seconds_left("s") is None
    await store.append("s", "2", turn("two"), ttl=1000)
    later(400)
    left = await store.seconds_left("s")
    assert left is not None
    assert 500 < left <= 600
    later(601)
    assert await store.seconds_left("s") is None


async def test_copied_session_expires_when_it_would_have(store: ContextStore, later: Callable[[float], None]) -> None:
    await store.append("s", "1", turn("one"), ttl=1000)
    await store.append("lasting", "1", turn("one"))
    later(400)
    copy = MemoryContextStore()
    assert (await copy_conversations(store, copy, ["s", "lasting"])).new == ["lasting", "s"]
    left = await copy.seconds_left("s")
    assert left is not None
    assert 500 < left <= 600
    assert await copy.seconds_left("lasting") is None


async def test_later_ttl_prolongs_the_session(store: ContextStore, later: Callable[[float], None]) -> None:
    await store.append("s", "1", turn("one"), ttl=10)
    later(9)
    await store.append("s", "2", turn("two"), ttl=10)
    later(9)
    assert len(await store.turns("s")) == 2


async def test_expired_session_starts_afresh(store: ContextStore, later: Callable[[float], None]) -> None:
    await store.append("s", "1", turn("one"), ttl=10)
    later(10)
    assert await store.append("s", "1", turn("again"))
    later(1000)
    assert await store.turns("s") == [turn("again")]


def test_writers_in_many_threads_lose_nothing_and_keep_their_order(store: ContextStore) -> None:
    async def write(writer: int) -> None:
        for number in range(10):
            await store.append("s", f"{writer}.{number}", turn(f"{writer}.{number}"))

    writers = [threading.Thread(target=lambda each=each: asyncio.run(write(each))) for each in range(8)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    stored = [each[0]["content"] for each in asyncio.run(store.turns("s"))]
    assert len(stored) == 80
    for writer in range(8):
        assert [text for text in stored if text.startswith(f"{writer}.")] == [f"{writer}.{n}" for n in range(10)]


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


async def test_one_turn_written_by_many_at_once_is_stored_once(store: ContextStore) -> None:
    stored = await asyncio.gather(*(store.append("s", "t", turn(str(number))) for number in range(20)))
    assert stored.count(True) == 1
    assert len(await store.turns("s")) == 1


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
