"""Conversations, rate limits and kept answers in a real PostgreSQL, while the network between them fails."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from support.bad_link import BadLink, bad_link
from support.postgres_server import PASSWORD, Postgres
from utools import Tool, ToolRegistry, ToolResult
from utools.calls.rate_limit import RateLimit
from utools.calls.rate_limiter import acquire
from utools.calls.shared import open_calls
from utools.context.manager import context_manager
from utools.context.open_store import open_context_store
from utools.errors import DatabaseAway
from utools.tool import ToolContext

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres")]
PATIENCE_S = 0.5
OUTAGE_S = 1.0
LIMIT = RateLimit.from_text("5/h")
Fault = Callable[[BadLink], None]


@pytest.fixture
def link(postgres: Postgres) -> Iterator[BadLink]:
    with bad_link(postgres.port) as made:
        yield made


@pytest.fixture
def database(
    new_database: Callable[[], str], postgres: Postgres, link: BadLink, monkeypatch: pytest.MonkeyPatch
) -> "Iterator[PostgresDatabase]":
    from utools.calls.store_postgres import LAYOUT as CALLS
    from utools.context.store_postgres import LAYOUT as CONVERSATIONS
    from utools.databases.postgres_database import PostgresDatabase

    monkeypatch.delenv("AGENT_CORE_CONTEXT_DB", raising=False)
    url = new_database().replace(f":{postgres.port}/", f":{link.port}/")
    with closing(PostgresDatabase(url, (CONVERSATIONS, CALLS), patience=PATIENCE_S)) as made:
        yield made


def slow(link: BadLink) -> None:
    link.latency = 0.02
    link.later(OUTAGE_S, lambda: setattr(link, "latency", 0.0))


def reset(link: BadLink) -> None:
    link.reset_all()


def lost_commit(link: BadLink) -> None:
    link.cut_answer(b"COMMIT")


def lost_commit_and_outage(link: BadLink) -> None:
    link.cut_answer(b"COMMIT", then="refuse")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def half_open(link: BadLink) -> None:
    link.become("silent")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def outage(link: BadLink) -> None:
    link.become("refuse")
    link.later(OUTAGE_S, lambda: link.become("pass"))


FAULTS = [slow, reset, lost_commit, lost_commit_and_outage, half_open, outage]


async def persist_at_last(registry: ToolRegistry, number: int) -> list[str]:
    """Try as the executor does, until it is stored; the errors on the way."""
    given = {"op": "persist", "session_id": "s", "turn_id": str(number), "user_message": str(number)}
    errors = []
    with anyio.fail_after(30):
        while not (result := await registry.execute("context_manager", {**given, "final_answer": "yes"})).success:
            assert result.metadata.get("transient"), result.error
            errors.append(str(result.error))
            await anyio.sleep(0.1)
    return errors


@pytest.mark.parametrize("fault", FAULTS)
async def test_conversation_has_each_turn_once_and_in_order(
    fault: Fault, link: BadLink, database: "PostgresDatabase"
) -> None:
    store = open_context_store(database)
    registry = ToolRegistry([context_manager(store)])
    assert await persist_at_last(registry, 0) == []
    fault(link)
    errors = [error for number in range(1, 6) for error in await persist_at_last(registry, number)]
    assert all(f"127.0.0.1:{link.port}/" in error and PASSWORD not in error for error in errors)
    link.become("pass")
    assert [turn[0]["content"] for turn in await store.turns("s")] == [str(number) for number in range(6)]
    assert errors or fault not in (half_open, outage, lost_commit_and_outage)


@pytest.mark.parametrize("fault", FAULTS)
async def test_limit_is_never_exceeded_and_is_there_again_when_the_server_is(
    fault: Fault, link: BadLink, database: "PostgresDatabase"
) -> None:
    store = open_calls(database).store
    await store.reserve("warm", 1, 1, None)
    fault(link)
    refusals = [await acquire(store, "look", LIMIT, within=20) for _ in range(8)]
    granted = (4, 5) if fault is lost_commit_and_outage else (5,)
    assert refusals.count(None) in granted, "a slot whose reservation nobody can ask about passes unused, and no other"
    assert all("limited to 5 calls an hour" in str(each) for each in refusals if each is not None)


async def test_call_whose_limit_cannot_be_asked_is_refused_with_the_reason(
    link: BadLink, database: "PostgresDatabase"
) -> None:
    link.become("refuse")
    refusal = await acquire(open_calls(database).store, "look", LIMIT, within=0.5)
    assert refusal is not None
    assert refusal.startswith(
        "look is limited to 5 calls an hour, and how many were made cannot be looked up: the database of this host "
        f"cannot be used: cannot write to postgresql://127.0.0.1:{link.port}/"
    )
    assert "refused" in refusal
    assert PASSWORD not in refusal


@pytest.mark.parametrize("fault", FAULTS)
async def test_kept_answers_cost_the_calls_that_they_would_have_saved_and_no_more(
    fault: Fault, link: BadLink, database: "PostgresDatabase"
) -> None:
    made: list[Any] = []
    tool = Tool("look", "Looks.", {"type": "object"}, lambda args, context: "seen", effect="read", cache={"ttl": 60})
    answers = open_calls(database).answers

    async def look(_: ToolContext) -> ToolResult:
        made.append(True)
        return ToolResult(output="seen")

    async def answer() -> ToolResult:
        return await answers.answer(tool, {"q": "x"}, ToolContext(), look, lambda value: value)

    assert (await answer()).output == "seen"
    fault(link)
    for _ in range(3):
        assert (await answer()).output == "seen"
    link.become("pass")
    await answer()
    before = len(made)
    assert (await answer()).metadata.get("cached")
    assert len(made) == before


def test_server_that_falls_silent_in_a_statement_is_given_up_once_it_takes_no_connection(
    database: "PostgresDatabase", link: BadLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("utools.databases.postgres_database.SILENCE", 10**6)
    database.select("SELECT 1")
    link.become("silent")
    with pytest.raises(DatabaseAway, match="the server gave no answer for"):
        database.select("SELECT 2")


def test_slow_statement_is_waited_for_while_the_server_takes_connections(
    database: "PostgresDatabase", link: BadLink
) -> None:
    database.select("SELECT 1")
    before = link.connections
    assert database.select(f"SELECT 3 FROM pg_sleep({2 * PATIENCE_S})") == [(3,)]
    assert link.connections > before, "it was asked whether it takes connections"
