"""Resumed runs: nothing is told twice, in one process or in another, and all of it is in one trace."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

from agent_core import Approve
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action, final
from support.told import Told, agent_node, engine_of, flow_of, ids_of, tree_of
from utools import Tool, tool

pytestmark = pytest.mark.anyio
REPLIES = [action("stock", article="A-17"), action("linger"), final("done")]
ALL = Counter(
    {
        "chat gpt-4o-mini": 3,
        "execute_tool stock": 1,
        "execute_tool linger": 1,
        "invoke_agent clerk": 1,
        "invoke_workflow desk": 1,
    }
)


def lingering(reached: asyncio.Event, go: asyncio.Event) -> Tool:
    @tool(effect="read")
    async def linger(q: str) -> str:
        """Wait for the test."""
        reached.set()
        await go.wait()
        return "done"

    return linger


async def die(told: Told | None, store: Path, run: str) -> None:
    """Drive a run until its second call, and leave it there as if the process had died."""
    reached = asyncio.Event()
    engine = engine_of(told, REPLIES, lingering(reached, asyncio.Event()), store=SqliteRunStore(store))
    work = asyncio.create_task(engine.run(DEFINITION, run_id=run))
    await asyncio.wait_for(reached.wait(), 20)
    engine._abandon()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await engine.close()


async def go_on(told: Told | None, store: Path, run: str) -> Any:
    """Resume a run in what is another process as far as telemetry goes."""
    go = asyncio.Event()
    go.set()
    engine = engine_of(told, REPLIES, lingering(asyncio.Event(), go), store=SqliteRunStore(store))
    result = await engine.resume(run)
    await engine.close()
    return result


DEFINITION = flow_of(agent_node(allowed_tools=["stock", "linger"]))


async def test_what_a_dead_process_has_told_is_not_told_again(tmp_path: Path) -> None:
    first, second = Told(), Told()
    await die(first, tmp_path / "runs.db", "r")
    assert Counter(each.name for each in first.spans) == {"chat gpt-4o-mini": 2, "execute_tool stock": 1}
    assert (await go_on(second, tmp_path / "runs.db", "r")).status == "completed"
    spans = [*first.spans, *second.spans]
    assert Counter(each.name for each in spans) == ALL
    assert len({ids_of(each) for each in spans}) == len(spans)
    assert len({ids_of(each)[0] for each in spans}) == 1
    assert tree_of(spans) == {
        "invoke_workflow desk": None,
        "invoke_agent clerk": "invoke_workflow desk",
        "chat gpt-4o-mini": "invoke_agent clerk",
        "execute_tool stock": "invoke_agent clerk",
        "execute_tool linger": "invoke_agent clerk",
    }
    workflow = second.span("invoke_workflow desk")
    assert workflow.start_time <= min(each.end_time or 0 for each in first.spans)  # type: ignore[operator]


async def test_counts_of_both_processes_add_up(tmp_path: Path) -> None:
    first, second = Told(), Told()
    await die(first, tmp_path / "runs.db", "r")
    await go_on(second, tmp_path / "runs.db", "r")
    for metric, most in (
        *(("gen_ai.client.operation.duration", 3), ("gen_ai.execute_tool.duration", 2)),
        *(("gen_ai.invoke_agent.duration", 1), ("gen_ai.workflow.duration", 1)),
    ):
        assert sum(point.count for told in (first, second) for point in told.points(metric)) == most
    text = second.metrics.write({}).decode()
    assert 'agent_core_agent_steps_sum{agent="clerk",tenant="",workflow="desk"} 3.0' in text


async def test_finished_run_tells_nothing_more(tmp_path: Path) -> None:
    told, again = Told(), Told()
    engine = engine_of(told, [final("done")], store=SqliteRunStore(tmp_path / "runs.db"))
    await engine.run(flow_of(agent_node()), run_id="r")
    await engine.close()
    await go_on(again, tmp_path / "runs.db", "r")
    assert again.spans == []


async def test_run_that_waits_goes_on_in_its_trace(tmp_path: Path) -> None:
    first, second = Told(), Told()
    definition = flow_of(agent_node(allowed_tools=["order"], approval="on_write"))
    engine = engine_of(first, [action("order", article="A-17")], store=SqliteRunStore(tmp_path / "runs.db"))
    result = await engine.run(definition, run_id="r")
    await engine.close()
    assert result.status == "waiting"
    assert [each.name for each in first.spans] == ["chat gpt-4o-mini"]
    waiting = result.waiting[0]
    replies = [action("order", article="A-17"), final("done")]
    engine = engine_of(second, replies, store=SqliteRunStore(tmp_path / "runs.db"))
    done = await engine.resume("r", decisions={(waiting["strand"], waiting["n"]): Approve()})
    await engine.close()
    assert done.status == "completed"
    names = ["execute_tool order", "chat gpt-4o-mini", "invoke_agent clerk", "invoke_workflow desk"]
    assert [each.name for each in second.spans] == names
    assert {ids_of(each)[0] for each in (*first.spans, *second.spans)} == {ids_of(first.spans[0])[0]}
    assert tree_of([*first.spans, *second.spans])["chat gpt-4o-mini"] == "invoke_agent clerk"


async def test_write_whose_process_died_ends_in_doubt(tmp_path: Path) -> None:
    reached = asyncio.Event()

    @tool(effect="write")
    async def linger(q: str) -> str:
        """Never end."""
        reached.set()
        await asyncio.Event().wait()
        return ""

    first, second = Told(), Told()
    engine = engine_of(first, REPLIES, linger, store=SqliteRunStore(tmp_path / "runs.db"))
    work = asyncio.create_task(engine.run(DEFINITION, run_id="r"))
    await asyncio.wait_for(reached.wait(), 20)
    engine._abandon()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await engine.close()
    engine = engine_of(second, REPLIES[2:], linger, store=SqliteRunStore(tmp_path / "runs.db"))
    assert (await engine.resume("r")).status == "waiting"
    await engine.close()
    assert [(each.name, (each.attributes or {})["error.type"]) for each in second.spans] == [
        ("execute_tool linger", "in_doubt")
    ]


async def test_parent_of_a_program_holds_in_the_process_that_goes_on(tmp_path: Path) -> None:
    first, second = Told(), Told()
    tracer = first.telemetry.tracer()
    assert tracer is not None
    with tracer.start_as_current_span("program") as program:
        await die(first, tmp_path / "runs.db", "r")
    await go_on(second, tmp_path / "runs.db", "r")
    workflow = second.span("invoke_workflow desk")
    assert workflow.parent is not None
    assert (workflow.parent.trace_id, workflow.parent.span_id) == (
        program.get_span_context().trace_id,
        program.get_span_context().span_id,
    )


async def test_span_that_is_current_at_a_resume_does_not_move_the_run(tmp_path: Path) -> None:
    first, second = Told(), Told()
    await die(first, tmp_path / "runs.db", "r")
    tracer = second.telemetry.tracer()
    assert tracer is not None
    with tracer.start_as_current_span("decision"):
        await go_on(second, tmp_path / "runs.db", "r")
    assert second.span("invoke_workflow desk").parent is None
    assert ids_of(second.span("invoke_agent clerk"))[0] == ids_of(first.spans[0])[0]


async def test_tool_sees_its_own_span(tmp_path: Path) -> None:
    seen: list[Any] = []

    @tool(effect="read")
    def look() -> str:
        """Look at the current span, in a thread."""
        seen.append(trace.get_current_span().get_span_context())
        return "ok"

    told = Told()
    engine = engine_of(told, (), look)
    await engine.run(flow_of({"id": "look", "tool": "look", "config": {}}))
    assert [(each.trace_id, each.span_id) for each in seen] == [ids_of(told.span("execute_tool look"))]


async def test_fork_is_told_from_where_it_parts(tmp_path: Path) -> None:
    told = Told()
    engine = engine_of(told, [action("stock", article="A"), final("one"), final("two")])
    result = await engine.run(flow_of(agent_node()), run_id="r")
    assert result.status == "completed"
    before = len(told.spans)
    await engine.fork("r", ("flow/clerk.1", 6), new_id="r2")
    new = told.spans[before:]
    assert [each.name for each in new] == ["chat gpt-4o-mini", "invoke_agent clerk", "invoke_workflow desk"]
    assert {(each.attributes or {})["agent_core.run.id"] for each in new} == {"r2"}
    assert (new[-1].attributes or {})["agent_core.forked_from"] == "r"
    assert ids_of(new[0])[0] != ids_of(told.spans[0])[0]
