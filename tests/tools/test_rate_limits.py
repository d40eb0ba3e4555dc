"""Rate limits: no more calls in any span of time than are allowed, by whomever; who cannot wait is told until when."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import MemoryJournal, replay, run_agent, verify
from agent_core.errors import DefinitionError
from agent_core.journal.operations import Spec
from agent_core.loop.agent import AGENT_LOOPS
from agent_core.models import ScriptedModel
from agent_core.run.agent_drive import CODE, agent_preparer
from agent_core.run.control import StopSignal
from agent_core.run.driver import drive
from agent_core.run.executor import Executor
from support.call_stores import KINDS, Backend, Clock, open_backend
from support.gated import until
from support.redis_server import RealServer, real_server
from utools import Tool, ToolContext, ToolError, ToolRegistry, ToolResult
from utools.calls.rate_limit import RateLimit
from utools.calls.rate_limiter import acquire
from utools.calls.shared import SharedCalls
from utools.calls.store import Reservation
from utools.calls.store_memory import MemoryCallStore
from utools.calls.store_redis import RedisCallStore
from utools.databases.redis_server import RedisServer
from utools.secrets.redaction import Redactor

ASK = '{"type": "action", "thought": "", "tool": "look", "args": {"q": "x"}}'
DONE = '{"type": "final", "thought": "", "answer": "done"}'
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    yield from open_backend(request)


@pytest.mark.parametrize(("text", "count", "seconds"), [("10/min", 10, 60), ("1/s", 1, 1), ("999999/h", 999999, 3600)])
def test_limit_is_a_count_and_a_span(text: str, count: int, seconds: float) -> None:
    limit = RateLimit.from_text(text)
    assert (limit.count, limit.seconds) == (count, seconds)


@pytest.mark.parametrize(
    "text", ["", "10", "0/s", "-1/s", "1.5/s", "10/m", "10 / min", "10/min\n", "１/s", "1000000/s"]
)
def test_what_is_no_limit_is_told_where_it_stands(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"^here: write a count and a span, such as 10/min, 2/s or 500/h \(got '"):
        RateLimit.from_text(text, where="here")


async def test_places_come_up_as_the_limit_allows(backend: Backend) -> None:
    waits = [(await backend.store.reserve("k", 2, 60, None)).wait for _ in range(5)]
    assert waits == pytest.approx([0, 0, 60, 60, 120], abs=5)
    assert (await backend.store.reserve("other", 2, 60, None)).wait == 0
    backend.later(61)
    assert (await backend.store.reserve("k", 2, 60, None)).wait == pytest.approx(59, abs=5)


async def test_place_that_comes_up_too_late_is_not_taken(backend: Backend) -> None:
    assert (await backend.store.reserve("k", 1, 60, 0)).ticket is not None
    late = await backend.store.reserve("k", 1, 60, 59)
    assert (late.ticket, late.wait) == (None, pytest.approx(60, abs=5))
    in_time = await backend.store.reserve("k", 1, 60, 61)
    assert (in_time.ticket is not None, in_time.wait) == (True, pytest.approx(60, abs=5))


async def test_place_that_is_given_back_is_free_again(backend: Backend) -> None:
    await backend.store.reserve("k", 1, 60, None)
    waiting = await backend.store.reserve("k", 1, 60, None)
    assert waiting.ticket is not None
    await backend.store.cancel("k", waiting.ticket)
    await backend.store.cancel("k", "no such ticket")
    assert (await backend.store.reserve("k", 1, 60, None)).wait == pytest.approx(60, abs=5)


async def test_many_at_once_get_places_of_their_own(backend: Backend) -> None:
    taken = await asyncio.gather(*(backend.store.reserve("k", 10, 60, None) for _ in range(50)))
    assert len({each.ticket for each in taken}) == 50
    expected = [60.0 * (number // 10) for number in range(50)]
    assert sorted(each.wait for each in taken) == pytest.approx(expected, abs=5)


STEPS = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 1.0, 7.0]), st.booleans()), max_size=40)


@given(STEPS, st.integers(1, 4))
async def test_no_span_ever_has_more_than_are_allowed(steps: list[tuple[float, bool]], count: int) -> None:
    clock = Clock()
    store, starts = MemoryCallStore(clock=clock), dict[str, float]()
    for passing, giving_back in steps:
        clock.pass_by(passing)
        place = await store.reserve("k", count, 1.0, None)
        assert place.ticket is not None
        starts[place.ticket] = clock.now + place.wait
        if giving_back and place.wait:
            await store.cancel("k", place.ticket)
            del starts[place.ticket]
    for start in starts.values():
        assert sum(start <= each < start + 1.0 - 1e-6 for each in starts.values()) <= count


TAKER = """
import asyncio, sys
from utools.calls.store_redis import RedisCallStore
from utools.databases.redis_server import RedisServer
from utools.secrets.redaction import Redactor
async def main():
    store = RedisCallStore(RedisServer(sys.argv[1]))
    taken = await asyncio.gather(*(store.reserve("k", 5, 3600, 1) for _ in range(25)))
    print(sum(each.ticket is not None for each in taken))
asyncio.run(main())
"""


def test_processes_share_one_limit_where_they_share_a_server(redis_server: RealServer) -> None:
    command = [sys.executable, "-c", TAKER, redis_server.url]
    takers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(each.communicate(timeout=60)[0]) for each in takers) == 5


class Scripted(MemoryCallStore):
    """A store whose next place comes up after so many seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__()
        self.wait = wait
        self.given_back: list[str] = []

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        return Reservation(self.wait, None if longest is not None and self.wait > longest else "mine")

    async def cancel(self, key: str, ticket: str) -> None:
        self.given_back.append(ticket)


async def test_who_can_wait_waits_and_who_cannot_is_told_until_when() -> None:
    limit = RateLimit.from_text("1/min")
    assert await acquire(Scripted(0.01), "look", limit, within=1) is None
    told = await acquire(Scripted(42), "look", limit, within=30)
    assert re.fullmatch(
        r"look is limited to 1 call a minute, and this call cannot wait so long: "
        r"it would be allowed in 42\.0 seconds, at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        str(told),
    )


async def test_who_is_cancelled_while_waiting_gives_the_place_back() -> None:
    store = Scripted(60)
    waiting = asyncio.create_task(acquire(store, "look", RateLimit.from_text("1/min"), within=None))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert store.given_back == ["mine"]


class Look(list[ToolContext]):
    """The tool `look`, which counts its calls."""

    def __init__(self, calls: SharedCalls | None = None, *, fails: str | None = None, **options: Any) -> None:
        super().__init__()
        self.fails = fails
        tool = Tool("look", "Looks.", SCHEMA, self.execute, **{"effect": "read"} | options)
        self.registry = ToolRegistry([tool], calls=calls)

    async def execute(self, args: dict[str, Any], context: ToolContext) -> Any:
        self.append(context)
        if self.fails:
            raise ToolError(self.fails, transient=True)
        return "seen"


def config(limit: str, **more: Any) -> dict[str, Any]:
    allowed = [{"tool": "look", "rate_limit": limit}]
    return {"model": "scripted", "max_steps": 5, "max_repairs": 3, "allowed_tools": allowed, "prompt": "Go.", **more}


async def run(look: Look, settings: dict[str, Any], *replies: str, **more: Any) -> Any:
    return await run_agent(settings, registry=look.registry, model=ScriptedModel(list(replies)), **more)


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_call_beyond_the_limit_is_a_tool_error_that_says_when_and_replays(effect: str) -> None:
    look, journal = Look(effect=effect), MemoryJournal()
    output = await run(look, config("1/h"), ASK, ASK, DONE, journal=journal, run_id="r")
    assert (len(look), output.final_answer, output.usage["tool_calls"]) == (1, "done", 2)
    assert "look is limited to 1 call an hour" in output.trace[1]["error"]
    assert "it would be allowed in 3" in output.trace[1]["error"]
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical
    assert len(look) == 1


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_call_waits_within_its_time_and_counts_once(effect: str) -> None:
    look = Look(SharedCalls(Scripted(0.05)), effect=effect)
    output = await run(look, config("1/s"), ASK, ASK, DONE)
    assert (len(look), output.usage["tool_calls"], output.used_tools["look"]["count"]) == (2, 2, 2)
    assert all(step["elapsed_ms"] >= 50 for step in output.trace[:2])


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_call_that_has_waited_knows_how_much_time_is_left(effect: str) -> None:
    look = Look(SharedCalls(Scripted(0.5)), effect=effect)
    await run(look, config("1/s", single_call_timeout=10), ASK, DONE)
    assert 0 < (look[0].deadline_s or 0) <= 9.5


async def test_wait_that_leaves_no_time_for_the_call_is_not_begun() -> None:
    look = Look(SharedCalls(Scripted(9.5)), effect="write")
    settings = config("1/min", single_call_timeout=10)
    output = await run(look, settings, ASK, DONE)
    assert (len(look), output.final_answer) == (0, "done")
    assert "cannot wait so long" in output.trace[0]["error"]


async def test_all_runs_of_a_host_share_one_limit() -> None:
    look = Look()
    outputs = await asyncio.gather(*(run(look, config("2/h"), ASK, DONE) for _ in range(5)))
    assert len(look) == 2
    assert sum("limited to 2 calls an hour" in str(each.trace[0]["error"]) for each in outputs) == 3


@pytest.mark.exhaustive
async def test_each_attempt_counts_as_the_vendor_counts_it() -> None:
    look = Look(fails="429")
    output = await run(look, config("2/h"), ASK, DONE)
    assert len(look) == 2
    assert output.trace[0]["error"] == "429"


class Announced(Scripted):
    """A scripted store that says when somebody waits for a slot."""

    def __init__(self, wait: float) -> None:
        super().__init__(wait)
        self.reserved = asyncio.Event()

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        self.reserved.set()
        return await super().reserve(key, count, seconds, longest)


async def drive_until_it_waits(store: Announced, look: Look, stop: StopSignal) -> tuple["asyncio.Task[Any]", Any]:
    """A run whose only call waits for its slot, driven by hand so that it can be stopped."""
    journal, model = MemoryJournal(), ScriptedModel([ASK, DONE])
    settings = config("1/min", single_call_timeout=60)
    prepare = {CODE: agent_preparer(look.registry, Redactor({}))}
    executor = Executor("r", look.registry, lambda *_: model, prepare)
    spec = Spec(CODE, settings)
    driving = drive("r", "agent", spec, journal=journal, executor=executor, loops=AGENT_LOOPS, stop=stop)
    under_way = asyncio.create_task(driving)
    await store.reserved.wait()
    return under_way, journal


def kinds(journal: Any) -> list[str]:
    return [row.record()["kind"] for row in journal.load("r")["agent"]]


async def test_write_that_waits_is_not_asked_yet_and_all_before_it_is_recorded() -> None:
    store, stop = Announced(20), StopSignal()
    look = Look(SharedCalls(store), effect="write")
    under_way, journal = await drive_until_it_waits(store, look, stop)
    assert kinds(journal) == ["run_started", "asked", "answered", "decided"]
    stop.request("pause")
    ended = await under_way
    await until(lambda: store.given_back)
    assert (ended.outcome.finish_reason, look) == ("paused", [])
    assert kinds(journal) == ["run_started", "asked", "answered", "decided"]
    store.wait = 0
    settings = config("1/min", single_call_timeout=60)
    output = await run(look, settings, ASK, DONE, journal=journal, run_id="r")
    assert (output.finish_reason, len(look)) == ("final", 1)
    assert replay(journal, run_id="r").identical


async def test_write_that_is_cancelled_while_it_waits_is_not_in_doubt() -> None:
    store, stop = Announced(20), StopSignal()
    look = Look(SharedCalls(store), effect="write")
    under_way, journal = await drive_until_it_waits(store, look, stop)
    stop.request("cancel")
    ended = await under_way
    await until(lambda: store.given_back)
    assert (ended.outcome.finish_reason, look) == ("cancelled", [])
    assert kinds(journal)[-3:] == ["asked", "cancelled", "run_finished"]
    assert verify(journal, run_id="r").ok


class Silent(MemoryCallStore):
    """A store that never answers."""

    async def reserve(self, key: str, count: int, seconds: float, longest: float | None) -> Reservation:
        return await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_wait_for_a_store_that_never_answers_ends_with_the_calls_time(effect: str) -> None:
    look, journal = Look(SharedCalls(Silent()), effect=effect), MemoryJournal()
    settings = config("1/min", single_call_timeout=0.2)
    output = await run(look, settings, ASK, DONE, journal=journal, run_id="r")
    assert (look, output.final_answer) == ([], "done")
    assert "0.2 seconds" in output.trace[0]["error"]
    assert "waiting" not in kinds(journal)


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_run_that_is_cancelled_while_its_call_waits_frees_the_place(effect: str) -> None:
    store = Scripted(20)
    look = Look(SharedCalls(store), effect=effect)
    under_way = asyncio.create_task(run(look, config("1/min", single_call_timeout=60), ASK, DONE))
    await asyncio.sleep(0.1)
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way
    await asyncio.sleep(0.05)
    assert (len(look), store.given_back) == (0, ["mine"])


async def test_limit_that_cannot_be_looked_up_holds_the_call_back(tmp_path: Path) -> None:
    with real_server(tmp_path) as server:
        look = Look(SharedCalls(RedisCallStore(RedisServer(server.url, name="REDIS_URL"))))
        assert (await run(look, config("9/h"), ASK, DONE)).trace[0]["error"] is None
    output = await run(look, config("9/h", single_call_timeout=1), ASK, DONE)
    assert len(look) == 1
    told = "look is limited to 9 calls an hour, and how many were made cannot be looked up: Redis (REDIS_URL)"
    assert told in output.trace[0]["error"]


async def test_nested_run_takes_no_limit() -> None:
    nested = ToolRegistry([Tool("look", "Runs.", SCHEMA, lambda args, context: ToolResult(), effect="nested")])
    with pytest.raises(DefinitionError, match="allowed_tools/0/rate_limit: a nested run is no single call"):
        await run_agent(config("1/s"), registry=nested, model=ScriptedModel([DONE]))
