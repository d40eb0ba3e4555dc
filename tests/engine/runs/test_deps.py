"""deps of a workflow's run: its tools, its agents' and those of workflows below it get them, and no record has them."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, DefinitionError, verify
from agent_core.models import ScriptedModel
from engine_shim import AgentBuilder, AgentState, Engine, MemoryRunStore
from engine_shim.host.config import TemporalConfig
from support.by_hand import final
from support.optional import needs
from utools import ToolContext, tool

CALL = {"type": "action", "tool": "whoami", "args": {}}


@tool(effect="read")
def whoami(context: ToolContext[str]) -> str:
    """Tell who asks."""
    return f"it is {context.deps}"


AGENT = {"model": "m", "max_steps": 3, "allowed_tools": ["whoami"], "prompt": "Who?"}
FLOW = {
    "id": "asks",
    "nodes": [
        {"id": "plain", "tool": "whoami", "config": {}},
        {"id": "agent", "tool": "agent_core", "config": AGENT},
        {"id": "below", "tool": "invoke_workflow", "config": {"workflow": "below.json"}},
    ],
}
BELOW = '{"id": "below", "nodes": [{"id": "deep", "tool": "whoami", "config": {}}]}'


def engine() -> Engine:
    return Engine([whoami], store=MemoryRunStore(), model=ScriptedModel({"flow/agent.1": [CALL, final()]}))


async def test_all_tools_of_a_run_get_them_and_no_record_does(tmp_path: Path) -> None:
    (tmp_path / "below.json").write_text(BELOW)
    (tmp_path / "flow.json").write_text(json.dumps(FLOW))
    host = engine()
    result = await host.run(tmp_path / "flow.json", deps="ann")
    assert result.outputs["plain"] == "it is ann"
    assert result.outputs["agent"]["trace"][0]["observation"] == "it is ann"
    assert "it is ann" in str(result.outputs["below"])
    started = [rows[0].record() for rows in host.store.journal.load(result.run_id).values()]
    assert "ann" not in str(started)
    assert verify(host.store.journal, run_id=result.run_id).ok


def waiting_flow() -> dict[str, Any]:
    return {"id": "asks", "nodes": [{"id": "plain", "tool": "whoami", "approval": "always", "config": {}}]}


async def test_a_resumed_run_has_those_of_the_call_that_resumes_it() -> None:
    host = engine()
    waits = await host.run(waiting_flow(), deps="ann")
    decisions = {(call["strand"], call["n"]): Approve() for call in waits.waiting}
    result = await host.resume(waits.run_id, decisions=decisions, deps="bob")
    assert result.outputs["plain"] == "it is bob"


async def test_a_fork_has_its_own() -> None:
    host = engine()
    first = await host.run({"id": "asks", "nodes": [{"id": "plain", "tool": "whoami", "config": {}}]}, deps="ann")
    fork = await host.fork(first.run_id, ("flow/plain.1", 0), deps="bob")
    assert fork.outputs["plain"] == "it is bob"


def test_the_sync_twin_takes_them() -> None:
    flow = {"id": "asks", "nodes": [{"id": "plain", "tool": "whoami", "config": {}}]}
    assert engine().run_sync(flow, deps="ann").outputs["plain"] == "it is ann"


async def test_a_stream_takes_them_and_goes_on_after_a_wait() -> None:
    host = engine()
    events = [event async for event in host.stream(waiting_flow(), deps="ann")]
    waits = events[-1]["result"]
    assert [event["event"] for event in events] == ["waiting", "result"]
    decisions = {(call["strand"], call["n"]): Approve() for call in waits.waiting}
    events = [event async for event in host.stream_resumed(waits.run_id, decisions=decisions, deps="bob")]
    assert [event["event"] for event in events] == ["action", "observation", "finished", "result"]
    assert events[-1]["result"].outputs["plain"] == "it is bob"


async def test_a_consumer_that_stops_cancels_the_workflow() -> None:
    host = engine()
    async with aclosing(host.stream({**FLOW, "nodes": FLOW["nodes"][:2]}, run_id="r")) as events:
        async for event in events:
            if event["event"] == "step_started":
                break
    assert host.status("r") == "cancelled"


@needs("temporalio")
async def test_workers_elsewhere_cannot_be_given_any() -> None:
    host = Engine([whoami], store=MemoryRunStore(), temporal=TemporalConfig())
    calls = [
        host.run(waiting_flow(), deps="ann"),
        host.resume("r", deps="ann"),
        host.fork("r", ("flow", 0), deps="ann"),
        host.retry_failed("r", deps="ann"),
    ]
    for call in calls:
        with pytest.raises(DefinitionError, match="deps: workers drive the runs of this engine"):
            await call
    graph = AgentBuilder("g").set_entry_point("a").add_llm_node("a", "", "m").build(host)
    with pytest.raises(DefinitionError, match="deps: workers drive the runs of this engine"):
        graph.execute("a", AgentState(context=[{"role": "user", "content": "Who?"}]), deps="ann")
    assert host.store.journal.runs() == []
