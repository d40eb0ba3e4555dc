"""Callers that are cancelled: by asyncio, by anyio's scopes, which cancel at each turn, by a client that went away.

The run ends with its last record, the loop stands still until it has, and the cancellation goes on as it came.
"""

import asyncio
import selectors
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core import MemoryJournal, replay, run_agent, run_agent_sync, verify
from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.conversation import AgentExecutor
from agent_core.errors import NoEventLoop
from agent_core.journal.record import Row
from agent_core.models import ScriptedModel
from agent_core.run.cancellation import in_own_task
from engine_shim import AgentBuilder, Engine, MemoryRunStore
from engine_shim.builder.graph import AgentGraph
from engine_shim.runs.loops import LOOPS
from engine_shim.service.worker_pool import WorkerPool
from support.by_hand import action, final
from support.chat_host import asks
from utools import Tool, ToolContext, ToolRegistry, default_registry
from utools.threads import DaemonThreads

QUIET = 100
"""More turns of the event loop than this are no waiting."""
ANY = {"type": "object", "additionalProperties": True}


class Turning(selectors.DefaultSelector):
    """Counts the turns of its event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        return super().select(timeout)


class SlowEnd(MemoryJournal):
    """A journal that takes its time over a run's last record, and counts the turns of the loop meanwhile."""

    def __init__(self, turning: Turning) -> None:
        super().__init__()
        self.threads, self._turning = DaemonThreads(4), turning  # type: ignore[misc,assignment]
        self.turns = -1

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        if any(b'"run_finished"' in row.data[:30] for row in rows):
            before, over = self._turning.turns, threading.Event()
            threading.Timer(0.2, over.set).start()
            assert over.wait(20)
            self.turns = max(self.turns, self._turning.turns - before)
        return super().append(run, rows)


class Host:
    """A store, and a tool that never answers; `call` is one way to have it called by a run `r`."""

    def __init__(self, turning: Turning, root: Path) -> None:
        self.journal, self.begun = SlowEnd(turning), asyncio.Event()
        self.store = MemoryRunStore()
        self.store.journal = self.journal
        self.turning, self.root = turning, root
        self.tool = Tool("hang", "Hangs.", ANY, self._hang, effect="read")

    async def _hang(self, args: Any, context: Any) -> Any:
        self.begun.set()
        await asyncio.Event().wait()

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([action("hang"), final("never")])

    def engine(self) -> Engine:
        registry = default_registry(self.root)
        registry.register(self.tool)
        return Engine(registry, store=self.store, model=self.model)

    def ending(self) -> Any:
        """The last record of the run's first strand."""
        tape = self.journal.load("r")
        assert verify(self.journal, run_id="r").ok
        assert replay(self.journal, run_id="r", loops=LOOPS).identical
        return tape["flow" if "flow" in tape else "agent"][-1].record()


async def by_run_agent(host: Host) -> Any:
    config = {"model": "m", "max_steps": 3, "prompt": "x", "allowed_tools": ["hang"]}
    return await run_agent(config, registry=[host.tool], model=host.model, journal=host.journal, run_id="r")


async def by_engine(host: Host) -> Any:
    config = {"model": "m", "max_steps": 3, "prompt": "x", "allowed_tools": ["hang"]}
    nodes = [{"tool": "agent_core", "config": config}, {"tool": "hang", "config": {}}]
    return await host.engine().run({"id": "w", "nodes": nodes}, run_id="r")


async def by_resume(host: Host) -> Any:
    engine = host.engine()
    engine.begin({"id": "w", "nodes": [{"tool": "hang", "config": {}}]}, run_id="r")
    return await engine.resume("r")


async def by_executor(host: Host) -> Any:
    catalog = AgentCatalog(["hang"])
    catalog.register({"name": "a", "model": "scripted:x", "system_prompt": "x", "skill_policy": {"allow": ["hang"]}})
    tools = ToolRegistry([host.tool])
    executor = AgentExecutor(
        catalog, root=host.root, tools_at=lambda root: tools, model=host.model, journal=host.journal
    )
    return await executor.execute_conversation("a", "x", run_id="r")


def graph_on(engine: Engine, *tools: str) -> AgentGraph:
    return AgentBuilder("g").set_entry_point("a").add_llm_node("a", "", "m", list(tools), "You are a.").build(engine)


Run = Callable[[Host], Coroutine[Any, Any, Any]]
RUNS = pytest.mark.parametrize("run", [by_run_agent, by_engine, by_resume, by_executor])


def play(tmp_path: Path, test: Callable[[Host], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop whose turns are counted."""
    turning = Turning()

    async def begin() -> None:
        async with asyncio.timeout(30):
            await test(Host(turning, tmp_path))

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turning)) as runner:
        runner.run(begin())


def at_begin(host: Host, act: Callable[[], object]) -> "asyncio.Task[None]":
    """Act once the tool has been called."""

    async def wait() -> None:
        await host.begun.wait()
        act()

    return asyncio.create_task(wait())


def end_now(scope: anyio.CancelScope) -> None:
    scope.deadline = anyio.current_time()


def is_cancelled_quietly(host: Host) -> bool:
    """Whether the run ended as cancelled, and the loop stood still while its last record was on the way."""
    ending = host.ending()
    assert ending["kind"] == "run_finished"
    assert 0 <= host.journal.turns < QUIET
    return "cancelled" in (ending.get("finish_reason"), ending.get("status"))


@pytest.mark.sampled
@RUNS
def test_scope_that_another_task_cancels_ends_the_run_and_is_left(tmp_path: Path, run: Run) -> None:
    async def test(host: Host) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    await host.begun.wait()
                    scope.cancel()

                group.start_soon(stop)
                await run(host)
        assert scope.cancelled_caught
        assert is_cancelled_quietly(host)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    play(tmp_path, test)


@pytest.mark.sampled
@RUNS
def test_scope_whose_time_is_over_says_so(tmp_path: Path, run: Run) -> None:
    async def test(host: Host) -> None:
        with anyio.move_on_after(None) as scope:
            soon = at_begin(host, lambda: end_now(scope))
            await run(host)
        await soon
        assert scope.cancelled_caught
        assert is_cancelled_quietly(host)

    async def raising(host: Host) -> None:
        async def limited() -> None:
            with anyio.fail_after(None) as scope:
                soon = at_begin(host, lambda: end_now(scope))
                await run(host)
            await soon

        with pytest.raises(TimeoutError):
            await limited()
        assert is_cancelled_quietly(host)

    play(tmp_path, test)
    play(tmp_path, raising)


@pytest.mark.sampled
@RUNS
def test_outer_scope_is_the_one_that_is_left_and_a_shielded_one_keeps_the_run(tmp_path: Path, run: Run) -> None:
    async def test(host: Host) -> None:
        with anyio.move_on_after(None) as outer, anyio.move_on_after(20) as inner:
            soon = at_begin(host, lambda: end_now(outer))
            await run(host)
        await soon
        assert (outer.cancelled_caught, inner.cancelled_caught) == (True, False)
        assert is_cancelled_quietly(host)

    async def shielded(host: Host) -> None:
        with anyio.CancelScope() as outer, anyio.CancelScope(shield=True) as inner:
            running = asyncio.create_task(run(host))
            outer.cancel()
            await host.begun.wait()
            assert not running.done()
            inner.cancel()
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert is_cancelled_quietly(host)

    play(tmp_path, test)
    play(tmp_path, shielded)


@pytest.mark.sampled
@RUNS
def test_timeout_of_asyncio_and_a_failing_sibling_end_the_run_and_keep_their_error(tmp_path: Path, run: Run) -> None:
    async def timed(host: Host) -> None:
        async def limited() -> None:
            async with asyncio.timeout(None) as time:
                soon = at_begin(host, lambda: time.reschedule(asyncio.get_running_loop().time()))
                await run(host)
            await soon

        with pytest.raises(TimeoutError):
            await limited()
        assert is_cancelled_quietly(host)

    async def beside(host: Host) -> None:
        async def fail() -> None:
            await host.begun.wait()
            raise ValueError("the sibling failed")

        async def both() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(run(host))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup) as caught:
            await both()
        assert [str(each) for each in caught.value.exceptions] == ["the sibling failed"]
        assert is_cancelled_quietly(host)

    play(tmp_path, timed)
    play(tmp_path, beside)


@pytest.mark.sampled
@RUNS
def test_cancellation_goes_on_with_its_own_message(tmp_path: Path, run: Run) -> None:
    async def test(host: Host) -> None:
        running = asyncio.create_task(run(host))
        await host.begun.wait()
        running.cancel("the office closes")
        with pytest.raises(asyncio.CancelledError, match="the office closes"):
            await running
        assert is_cancelled_quietly(host)

    play(tmp_path, test)


def test_timeout_inside_a_scope_and_around_one_are_both_kept(tmp_path: Path) -> None:
    async def around(host: Host) -> None:
        async def both() -> None:
            async with asyncio.timeout(None) as time:
                with anyio.move_on_after(None) as scope:

                    def end_both() -> None:
                        end_now(scope)
                        time.reschedule(anyio.current_time() + 0.1)  # while the last record is on its way

                    soon = at_begin(host, end_both)
                    await by_engine(host)
                await soon
                await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            await both()
        assert is_cancelled_quietly(host)

    play(tmp_path, around)


def test_execution_of_a_graph_goes_on_without_the_one_who_waited(tmp_path: Path) -> None:
    async def test(host: Host) -> None:
        execution = graph_on(host.engine(), "hang").execute("a", asks())
        await host.begun.wait()
        with anyio.move_on_after(0.05) as scope:
            await execution
        assert scope.cancelled_caught
        assert execution.status() == "running"
        before = host.turning.turns
        await asyncio.to_thread(threading.Event().wait, 0.2)
        assert host.turning.turns - before < QUIET
        await execution.abort()
        with anyio.fail_after(20):
            assert (await execution).status == "cancelled"

    play(tmp_path, test)


def test_client_that_goes_away_ends_the_run_of_its_stream(tmp_path: Path) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def test(host: Host) -> None:
        engine, left = host.engine(), asyncio.Event()

        async def answer() -> AsyncIterator[bytes]:
            yield b"begun"
            try:
                await engine.run({"id": "w", "nodes": [{"tool": "hang", "config": {}}]}, run_id="r")
            finally:
                left.set()

        async def streamed(request: Any) -> StreamingResponse:
            return StreamingResponse(answer())

        async def passed_on(request: Any, call_next: Any) -> Any:
            return await call_next(request)

        app = Starlette(routes=[Route("/", streamed)])
        app.add_middleware(BaseHTTPMiddleware, dispatch=passed_on)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
            serving = asyncio.create_task(server.serve([listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await reader.readuntil(b"begun")
            await host.begun.wait()
            writer.close()
            await left.wait()
            server.should_exit = True
            await serving
        assert is_cancelled_quietly(host)

    play(tmp_path, test)


def test_heavy_work_keeps_its_place_until_its_thread_has_ended(tmp_path: Path) -> None:
    async def test(host: Host) -> None:
        turns, begun, go_on, ended = WorkerPool(1), threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            assert go_on.wait(20)
            ended.set()

        async def leave() -> None:
            with anyio.CancelScope() as scope:
                asyncio.get_running_loop().call_soon(scope.cancel)
                await turns.run(work)
            assert ended.is_set()

        leaving = asyncio.create_task(leave())
        await asyncio.to_thread(begun.wait)
        before = host.turning.turns
        threading.Timer(0.2, go_on.set).start()
        await leaving
        assert host.turning.turns - before < QUIET

    play(tmp_path, test)


async def test_error_of_what_was_cancelled_is_told_instead_of_the_cancellation() -> None:
    async def fail_late() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("the disk is full") from None

    with anyio.move_on_after(0.05), pytest.raises(OSError, match="the disk is full"):
        await in_own_task(fail_late())


def test_loop_of_trio_is_refused_in_words_and_the_sync_twin_works_in_it(tmp_path: Path) -> None:
    trio = pytest.importorskip("trio", reason="needs trio (extra `test`)")
    engine = Engine(default_registry(tmp_path), store=MemoryRunStore(), model=ScriptedModel([final("x")]))
    flow = {"id": "w", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "x"}}]}
    config = {"model": "m", "max_steps": 1, "prompt": "x", "allowed_tools": []}
    graph = graph_on(engine)

    async def begin() -> None:
        for refused in (
            lambda: run_agent(config, registry=[], model=ScriptedModel([final("x")])),
            lambda: engine.run(flow, run_id="r"),
            lambda: engine.resume("r"),
            lambda: engine.fork("r", ("flow", 1)),
            lambda: engine.retry_failed("r"),
            lambda: engine.cancel("r"),
            lambda: engine.pause("r"),
        ):
            with pytest.raises(NoEventLoop, match="agent_core runs on asyncio, and there is trio's event loop"):
                await refused()
        with pytest.raises(NoEventLoop, match="trio"):
            graph.execute("a", asks())
        assert not engine._has_begun("r")
        assert run_agent_sync(config, registry=[], model=ScriptedModel([final("x")])).final_answer == "x"
        assert engine.run_sync(flow).status == "completed"

    trio.run(begin)
    with pytest.raises(NoEventLoop, match="there is no event loop"):
        run_agent(config, registry=[], model=ScriptedModel([final("x")])).send(None)


@pytest.mark.parametrize("is_abandoned", [False, True], ids=["cancelled", "its process ends"])
async def test_call_knows_whether_its_run_is_cancelled_or_only_its_process_ends(is_abandoned: bool) -> None:
    begun, told = asyncio.Event(), list[bool]()

    async def wait(args: Any, context: ToolContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append(context.is_let_go())
            raise

    engine = Engine([Tool("linger", "Linger.", ANY, wait, effect="read")], store=MemoryRunStore())
    running = asyncio.create_task(engine.run({"id": "w", "nodes": [{"tool": "linger"}]}, run_id="r"))
    await begun.wait()
    if is_abandoned:
        engine._abandon()
        running.cancel()
    else:
        assert await engine.cancel("r") == "cancelled"
    await asyncio.gather(running, return_exceptions=True)
    assert told == [is_abandoned]
