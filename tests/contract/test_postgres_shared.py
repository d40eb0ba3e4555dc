"""What machines share through PostgreSQL beside their runs: conversations, rate limits and kept answers."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine_shim import Engine
from engine_shim.cli.doctor.command import examine
from engine_shim.cli.output import Options
from engine_shim.errors import DefinitionError
from engine_shim.host.config import HostConfig
from engine_shim.store.open import open_store
from support.postgres_server import PASSWORD
from support.redis_server import RealServer
from utools.context.open_store import open_context_store
from utools.context.store import ContextStore
from utools.context.store_sqlite import SqliteContextStore
from utools.context.turns import Turn
from utools.defaults import default_registry
from utools.errors import ToolError
from utools.registry import ToolRegistry

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase

pytestmark = pytest.mark.xdist_group("postgres")
TURN: Turn = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
PERSIST = {"op": "persist", "session_id": "s", "turn_id": "t", "user_message": "hi", "final_answer": "hello"}
LOAD = {"op": "load", "session_id": "s"}


@pytest.fixture
def url(new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database, and an environment that says nothing of conversations but where a file of them would be."""
    for name in ("REDIS_URL", "AGENT_CORE_CONTEXT_DB", "AGENT_CORE_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return new_database()


@pytest.fixture
def database(url: str) -> "Iterator[PostgresDatabase]":
    from utools.calls.store_postgres import LAYOUT as CALLS
    from utools.context.store_postgres import LAYOUT as CONVERSATIONS
    from utools.databases.postgres_database import PostgresDatabase

    with closing(PostgresDatabase(url, (CONVERSATIONS, CALLS), patience=5)) as made:
        yield made


async def persist(registry: ToolRegistry) -> None:
    assert (await registry.execute("context_manager", PERSIST)).success


async def load(registry: ToolRegistry) -> Any:
    return (await registry.execute("context_manager", LOAD)).output


# ── what is shared ───────────────────────────────────────────────────────────────────────────────


async def test_engines_of_one_store_share_conversations_limits_and_answers(url: str, tmp_path: Path) -> None:
    config = HostConfig(store=url)
    one, other = Engine._of_host(config), Engine._of_host(config)
    await persist(one.registry)
    assert await load(other.registry) == TURN
    await one.registry._calls.store.put("k", "kept", 60)
    assert await other.registry._calls.store.get("k") == "kept"
    assert (await one.registry._calls.store.reserve("k", 1, 3600, 0)).ticket is not None
    assert (await other.registry._calls.store.reserve("k", 1, 3600, 0)).ticket is None
    for each in (one, other):
        await each.close()
    assert not list(tmp_path.rglob("context.db"))


@pytest.mark.parametrize("tools", [None, []], ids=["built-in tools", "tools of a program"])
async def test_engines_that_a_program_makes_share_them_too(url: str, tools: list[Any] | None) -> None:
    one, other = Engine(tools, store=url), Engine(tools, store=url)
    await one.registry._calls.store.put("k", "kept", 60)
    assert await other.registry._calls.store.get("k") == "kept"
    if tools is None:
        await persist(one.registry)
        assert await load(other.registry) == TURN
    for each in (one, other):
        await each.close()


async def test_tenants_have_their_own_in_one_database(url: str) -> None:
    config = HostConfig.model_validate({"store": url, "tenants": {"acme": {}}})
    with closing(open_store(url, tenant="acme")) as store:
        host, tenant = Engine._of_host(config), Engine._of_host(config.for_tenant("acme"), store=store)
        await persist(tenant.registry)
        await tenant.registry._calls.store.put("k", "kept", 60)
        assert await load(host.registry) == []
        assert await host.registry._calls.store.get("k") is None
        await host.close()
        await tenant.close()


async def test_redis_wins_where_it_is_configured(
    url: str, redis_server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    engine = Engine._of_host(HostConfig(store=url))
    await persist(engine.registry)
    await engine.registry._calls.store.put("k", "kept", 60)
    await engine.close()
    assert {key.split(b":")[1] for key in redis_server.client.scan_iter()} == {b"context", b"calls"}


async def test_conversations_are_where_the_environment_says(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", str(tmp_path / "talks.db"))
    engine = Engine._of_host(HostConfig(store=url))
    await persist(engine.registry)
    await engine.close()
    assert await SqliteContextStore(tmp_path / "talks.db").turns("s") == [TURN]


async def test_conversations_alone_may_be_in_a_database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", url)
    stores = [open_context_store(), open_context_store(tenant="acme")]
    await persist(default_registry())
    assert [await each.turns("s") for each in stores] == [[TURN], []]


def test_database_that_needs_what_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", "postgresql://127.0.0.1/none")
    monkeypatch.setitem(sys.modules, "utools.context.store_postgres", None)
    with pytest.raises(DefinitionError, match=r"AGENT_CORE_CONTEXT_DB: conversations .* need the extra postgres"):
        open_context_store()


def test_doctor_says_where_they_are(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, str]:
        findings = examine(Options(store=url), quick=True)
        return {each.name: each.message for each in findings if each.name in ("conversations", "Redis")}

    for _ in range(2):
        assert found()["conversations"].endswith("tables are made when they are first needed")
    asyncio.run(Engine(store=url).registry._calls.store.get("k"))
    assert found()["conversations"].endswith(", 0 conversations")
    assert found()["Redis"].endswith("cached answers and rate limits are shared through the database of the store")
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", url.replace("127.0.0.1", "nowhere.invalid"))
    assert "nowhere.invalid" in found()["conversations"]
    assert PASSWORD not in str(found())


# ── conversations ────────────────────────────────────────────────────────────────────────────────

WRITER = """
import asyncio, sys
from utools.context.open_store import open_context_store
async def main():
    store = open_context_store()
    for number in range(20):
        text = f"{sys.argv[1]}.{number}"
        await store.append("s", text, [{"role": "user", "content": text}])
        await store.append("s", f"shared.{number}", [{"role": "user", "content": "shared"}])
asyncio.run(main())
"""


@pytest.mark.exhaustive
def test_writers_in_several_processes_lose_nothing_and_keep_their_order(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", url)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(each)], stderr=subprocess.PIPE, text=True)
        for each in range(3)
    ]
    assert [each.communicate(timeout=60)[1] for each in writers] == ["", "", ""]
    stored = [each[0]["content"] for each in asyncio.run(open_context_store().turns("s"))]
    assert (len(stored), stored.count("shared")) == (80, 20)
    for writer in range(3):
        assert [text for text in stored if text.startswith(f"{writer}.")] == [f"{writer}.{n}" for n in range(20)]


@pytest.fixture
def conversations(database: "PostgresDatabase") -> ContextStore:
    from utools.context.store_postgres import PostgresContextStore

    return PostgresContextStore(database)


@pytest.mark.parametrize("name", ["\0", "a\0b", "\ud800", "%s ? 'x", "".join(map(chr, range(0x4E00, 0x4E00 + 5000)))])
async def test_a_session_and_a_turn_may_have_any_name(conversations: ContextStore, name: str) -> None:
    assert await conversations.append(name, name, TURN)
    assert await conversations.append(name, name, TURN), "it is stored, once"
    assert not await conversations.append(name, name, [*TURN, *TURN])
    assert (await conversations.turns(name), await conversations.sessions()) == ([TURN], [name])


async def test_what_has_expired_leaves_the_database(conversations: ContextStore, database: "PostgresDatabase") -> None:
    await conversations.append("old", "t", TURN, ttl=10)
    await conversations.append("kept", "t", TURN)
    with database.writing() as db:
        db.execute("UPDATE conversations SET expires = expires - 10")
    await conversations.append("new", "t", TURN, ttl=10)
    assert database.select("SELECT count(*) FROM conversations") == [(2,)]
    assert database.select("SELECT count(*) FROM conversation_turns") == [(2,)]


async def test_server_that_is_not_there_is_named_without_its_password(url: str) -> None:
    from utools.context.store_postgres import LAYOUT, PostgresContextStore
    from utools.databases.postgres_database import PostgresDatabase

    with closing(PostgresDatabase(f"postgresql://me:{PASSWORD}@127.0.0.1:1/none", (LAYOUT,), patience=0.3)) as away:
        with pytest.raises(ToolError, match=r"cannot write to postgresql://127\.0\.0\.1:1/none: .*refused") as caught:
            await PostgresContextStore(away).append("s", "t", TURN)
        assert caught.value.transient
        assert PASSWORD not in f"{caught.value}{away!r}"


# ── limits and answers ───────────────────────────────────────────────────────────────────────────

TAKER = """
import asyncio, sys
from engine_shim import Engine
async def main():
    engine = Engine([], store=sys.argv[1])
    store = engine.registry._calls.store
    taken = await asyncio.gather(*(store.reserve("k", 5, 3600, 1) for _ in range(25)))
    print(sum(each.ticket is not None for each in taken), await store.get("k"))
    await engine.close()
asyncio.run(main())
"""


@pytest.mark.exhaustive
def test_processes_share_one_limit_and_a_kept_answer(url: str) -> None:
    engine = Engine([], store=url)
    asyncio.run(engine.registry._calls.store.put("k", "kept", 60))
    engine.store.close()
    command = [sys.executable, "-c", TAKER, url]
    takers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [each.communicate(timeout=60)[0].split() for each in takers]
    assert sum(int(number) for number, _ in told) == 5
    assert [text for _, text in told] == ["kept", "kept"]


async def test_expired_slots_and_answers_leave_the_database(database: "PostgresDatabase") -> None:
    from utools.calls.store_postgres import PostgresCallStore

    store = PostgresCallStore(database)
    await store.put("old", "x", 10)
    await store.reserve("old", 1, 10, None)
    with database.writing() as db:
        db.execute("UPDATE kept_answers SET expires = expires - 10")
        db.execute("UPDATE rate_slots SET at = at - 10, expires = expires - 10")
    await store.put("new", "\0\ud800", 10)
    assert (await store.reserve("new", 1, 10, None)).wait == 0
    assert (await store.get("old"), await store.get("new")) == (None, "\0\ud800")
    assert database.select("SELECT (SELECT count(*) FROM kept_answers), (SELECT count(*) FROM rate_slots)") == [(1, 1)]


def test_what_an_eval_remembers_is_in_the_store_of_its_host(
    url: str, database: "PostgresDatabase", tmp_path: Path
) -> None:
    from utools.context.store_postgres import PostgresContextStore

    persisted = {"op": "persist", "session_id": "s", "user_message": "I am Ann.", "final_answer": "Hello, Ann."}
    call = {"type": "action", "tool": "context_manager", "args": persisted}
    case = {"name": "ann", "message": "I am Ann.", "calls": [{"tool": "context_manager"}]}
    cases = {"host": "agent-core.yaml", "tools": ["context_manager"], "cases": [case]}
    replies = {"ann": [call, {"type": "final", "answer": "Hello, Ann."}]}
    for name, text in (("agent-core.yaml", {"store": url}), ("cases.yaml", cases), ("replies.json", replies)):
        (tmp_path / name).write_text(json.dumps(text))
    command = [Path(sys.executable).with_name("agent-core"), "eval", "cases.yaml", "--model", "scripted:replies.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    turns = asyncio.run(PostgresContextStore(database).turns("s"))
    assert [each["content"] for each in turns[0]] == ["I am Ann.", "Hello, Ann."]
