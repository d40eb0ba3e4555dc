"""Conversations, rate limits and kept answers in a real Redis, while the network between them fails and comes back."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.bad_link import BadLink, bad_link
from support.redis_server import RealServer
from utools import Tool, ToolError, ToolRegistry, ToolResult
from utools.calls.rate_limit import RateLimit
from utools.calls.rate_limiter import acquire
from utools.calls.shared import SharedCalls
from utools.calls.store_redis import RedisCallStore
from utools.context.manager import context_manager
from utools.context.store_redis import RedisContextStore
from utools.databases.redis_server import RedisServer
from utools.tool import ToolContext

pytestmark = pytest.mark.exhaustive
SOON_S = 0.3
"""How long the server may take to answer here."""
PASSWORD = "hunter22"
LIMIT = RateLimit.from_text("5/h")


@pytest.fixture
def link(redis_server: RealServer) -> Iterator[BadLink]:
    redis_server.client.execute_command("ACL", "SETUSER", "default", f">{PASSWORD}")
    try:
        with bad_link(redis_server.port) as made:
            yield made
    finally:
        redis_server.client.execute_command("ACL", "SETUSER", "default", "nopass")


@pytest.fixture
def server(link: BadLink) -> RedisServer:
    address = f"redis://default:{PASSWORD}@127.0.0.1:{link.port}/0"
    return RedisServer(f"{address}?socket_timeout={SOON_S}&socket_connect_timeout={SOON_S}", name="REDIS_URL")


def slow(link: BadLink) -> None:
    link.latency = 0.05


def drip(link: BadLink) -> None:
    link.become("drip")


def cut(link: BadLink) -> None:
    link.cut_answer(b"EVAL")


def cut_idle(link: BadLink) -> None:
    link.reset_all()


def outage(link: BadLink) -> None:
    link.become("refuse")
    link.later(1.0, lambda: link.become("pass"))


def half_open(link: BadLink) -> None:
    link.become("silent")
    link.later(SOON_S / 2, lambda: link.become("pass"))


FAULTS = [slow, drip, cut, cut_idle, outage, half_open]
Fault = Callable[[BadLink], None]


async def persist(registry: ToolRegistry, number: int) -> ToolResult:
    given = {"op": "persist", "session_id": "s", "turn_id": str(number), "user_message": str(number)}
    return await registry.execute("context_manager", {**given, "final_answer": "yes"})


async def persist_at_last(registry: ToolRegistry, number: int) -> list[str]:
    """Try as the executor does, until it is stored; the errors on the way."""
    errors = []
    async with asyncio.timeout(20):
        while not (result := await persist(registry, number)).success:
            assert result.metadata.get("transient"), result.error
            errors.append(str(result.error))
            await asyncio.sleep(0.1)
    return errors


@pytest.mark.parametrize("fault", FAULTS)
async def test_conversation_has_each_turn_once_and_in_order(fault: Fault, link: BadLink, server: RedisServer) -> None:
    registry = ToolRegistry([context_manager(RedisContextStore(server))])
    assert (await persist(registry, 0)).success
    fault(link)
    errors = [error for number in range(1, 6) for error in await persist_at_last(registry, number)]
    assert all("Redis (REDIS_URL)" in error and PASSWORD not in error for error in errors)
    link.become("pass")
    turns = await RedisContextStore(server).turns("s")
    assert [turn[0]["content"] for turn in turns] == [str(number) for number in range(6)]
    assert errors or fault not in (cut, outage, half_open)


@pytest.mark.parametrize("fault", FAULTS)
async def test_limit_is_never_exceeded_and_is_there_again_when_the_server_is(
    fault: Fault, link: BadLink, server: RedisServer
) -> None:
    store = RedisCallStore(server)
    await store.reserve("warm", 1, 1, None)
    fault(link)
    refusals = [await acquire(store, "look", LIMIT, within=10) for _ in range(8)]
    assert refusals.count(None) == (4 if fault is cut else 5), "one whose answer was lost passes unused, and no other"
    assert all("limited to 5 calls an hour" in str(each) for each in refusals if each is not None)


async def test_call_whose_limit_cannot_be_asked_is_refused_with_the_reason(link: BadLink, server: RedisServer) -> None:
    link.become("refuse")
    refusal = await acquire(RedisCallStore(server), "look", LIMIT, within=0.5)
    assert refusal == (
        "look is limited to 5 calls an hour, and how many were made cannot be looked up: "
        "Redis (REDIS_URL) cannot be reached: Connection refused"
    )


@pytest.mark.parametrize("fault", FAULTS)
async def test_kept_answers_cost_the_calls_that_they_would_have_saved_and_no_more(
    fault: Fault, link: BadLink, server: RedisServer
) -> None:
    made: list[Any] = []

    async def look(args: dict[str, Any], context: ToolContext) -> str:
        made.append(args)
        return "seen"

    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tool = Tool("look", "Looks.", schema, look, effect="read", cache={"ttl": 60})
    calls = SharedCalls(RedisCallStore(server))

    async def answer() -> ToolResult:
        return await calls.answers.answer(tool, {"q": "x"}, ToolContext(), lambda _: result(), lambda value: value)

    async def result() -> ToolResult:
        return ToolResult(output=await look({"q": "x"}, ToolContext()))

    assert (await answer()).output == "seen"
    fault(link)
    for _ in range(3):
        assert (await answer()).output == "seen"
    link.become("pass")
    await answer()
    before = len(made)
    assert (await answer()).metadata.get("cached")
    assert len(made) == before


async def test_connection_that_was_idle_for_long_is_made_anew_before_it_is_used(
    link: BadLink,
) -> None:
    url = f"redis://default:{PASSWORD}@127.0.0.1:{link.port}/0?socket_timeout=30"
    server = RedisServer(url, idle_seconds=0.0)
    await server.ask("PING")
    link.become("silent")
    link.become("pass")
    assert await server.ask("ECHO", "here") == b"here"
    assert link.connections == 2


async def test_server_that_accepts_and_says_nothing_is_named(link: BadLink, server: RedisServer) -> None:
    link.become("silent")
    with pytest.raises((TimeoutError, ToolError), match=r"Redis \(REDIS_URL\)"):
        await server.ask("PING")
