"""What a program writes with the public names, and the type that a checker infers of each.

mypy and basedpyright check this file as strictly as they can; `test_public_uses.py` calls its functions, so that what
is inferred is what comes.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_never, assert_type

from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict

from agent_core import (
    AgentConfig,
    AgentOutput,
    AnswerError,
    Approve,
    Deny,
    Done,
    Edit,
    Event,
    Fail,
    JsonlJournal,
    MemoryJournal,
    Retry,
    Skip,
    SqliteJournal,
    StreamResult,
    agent_tool,
    replay,
    run_agent,
    run_agent_sync,
    stream_agent,
    verify,
)
from agent_core.agents import (
    AgentCatalog,
    AgentExecutor,
    ChatReply,
    ConversationOptions,
    ConversationResult,
    Conversations,
    MaxStepsExceeded,
)
from agent_core.agents.reply import ReplyCall, ReplyMeta
from agent_core.agents.result import TurnUsage
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.models import ModelClient, ScriptedModel, create_model
from agent_core.node import NodeContext, decide_sync, execute, execute_sync, find_run_sync, list_waiting_sync
from agent_core.outputs import RunError, RunUsage, TraceAction, TraceStep, UsedTool, WaitingCall
from agent_core.statuses import RunStatus
from engine_shim import (
    AgentBuilder,
    AgentState,
    Chunk,
    Engine,
    MemoryRunStore,
    RunResult,
    SqliteRunStore,
    load_workflow,
)
from engine_shim.builder.execution import Execution
from engine_shim.builder.graph import AgentGraph
from engine_shim.builder.state import ExecutionResult
from engine_shim.store.run_store import RunStore
from utools import Fault, Tool, ToolContext, ToolError, ToolRegistry, ToolResult, default_registry, tool
from utools.context.store import ContextStore
from utools.context.store_memory import MemoryContextStore
from utools.context.store_sqlite import SqliteContextStore
from utools.threads import Threads


class Verdict(BaseModel):
    guilty: bool


@dataclass
class Sum:
    total: float


class Place(TypedDict):
    city: str


class Shop:
    """What the program hands to its tools."""

    def __init__(self, name: str) -> None:
        self.name = name


@tool(effect="read")
async def stock(article: str, context: ToolContext[Shop]) -> dict[str, str]:
    """How many pieces of an article are in stock."""
    assert_type(context.deps, Shop)
    if article == "?":
        raise ToolError("there is no article {article!r}", article=article)
    return {"shop": context.deps.name, "article": article}


@tool
def order(article: str, context: ToolContext) -> ToolResult:
    """Order an article."""
    assert_type(context.deps, Any)
    return ToolResult(output=f"ordered {article}")


CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["stock"], "prompt": "Go."}
WAITS = {**CONFIG, "allowed_tools": [{"tool": "stock", "approval": "always"}]}
CALL = {"type": "action", "tool": "stock", "args": {"article": "A-17"}}
SHOP = Shop("Oslo")


def says(answer: Any) -> ScriptedModel:
    """Return a model that looks into the stock, and answers."""
    return ScriptedModel([CALL, {"type": "final", "answer": answer}])


# ── one agent ────────────────────────────────────────────────────────────────────────────────────


async def an_answer_is_a_text_unless_a_type_is_asked_for() -> None:
    output = await run_agent(CONFIG, registry=[stock], model=says("A dozen."), deps=SHOP)
    assert_type(output, AgentOutput[str])
    assert_type(output.final_answer, str | None)
    assert_type(output.answer, str)
    assert isinstance(output.answer, str)


async def an_answer_is_of_the_class_that_is_asked_for() -> None:
    model = await run_agent(CONFIG, registry=[stock], model=says({"guilty": True}), deps=SHOP, answer_schema=Verdict)
    assert_type(model, AgentOutput[Verdict])
    assert_type(model.final_answer, Verdict | None)
    assert_type(model.answer, Verdict)
    assert model.answer.guilty is True
    data = await run_agent(CONFIG, registry=[stock], model=says({"total": 2}), deps=SHOP, answer_schema=Sum)
    assert_type(data.answer, Sum)
    assert data.answer.total == 2.0
    typed = await run_agent(CONFIG, registry=[stock], model=says({"city": "Oslo"}), deps=SHOP, answer_schema=Place)
    assert_type(typed.answer, Place)
    assert typed.answer["city"] == "Oslo"
    several = await run_agent(CONFIG, registry=[stock], model=says([{"total": 2}]), deps=SHOP, answer_schema=list[Sum])
    assert_type(several.answer, list[Sum])
    assert several.answer[0].total == 2.0


async def an_answer_that_is_no_class_has_an_adapter() -> None:
    adapter: TypeAdapter[Literal["yes", "no"]] = TypeAdapter(Literal["yes", "no"])
    output = await run_agent(CONFIG, registry=[stock], model=says("yes"), deps=SHOP, answer_schema=adapter)
    assert_type(output.answer, Literal["yes", "no"])
    assert output.answer == "yes"


async def an_answer_by_a_json_schema_is_json() -> None:
    schema = {"type": "object", "required": ["guilty"]}
    output = await run_agent(CONFIG, registry=[stock], model=says({"guilty": 1}), deps=SHOP, answer_schema=schema)
    assert_type(output, AgentOutput[Any])
    assert output.answer == {"guilty": 1}


def the_sync_twin_has_the_same_types() -> None:
    output = run_agent_sync(CONFIG, registry=[stock], model=says({"guilty": True}), deps=SHOP, answer_schema=Verdict)
    assert_type(output, AgentOutput[Verdict])
    assert output.answer.guilty
    text = run_agent_sync(
        AgentConfig.model_validate(CONFIG), registry=ToolRegistry([stock]), model=says("12"), deps=SHOP
    )
    assert_type(text.final_answer, str | None)
    assert text.final_answer == "12"


async def the_parts_of_an_output_have_types() -> None:
    output = await run_agent(CONFIG, registry=[stock], model=says("A dozen."), deps=SHOP)
    assert_type(output.usage, RunUsage)
    assert_type(output.usage["total_tokens"], int)
    assert_type(output.usage["cost"], float | None)
    assert_type(output.trace, list[TraceStep])
    step = output.trace[0]
    assert_type(step["action"], TraceAction | None)
    assert_type(step["observation"], str | None)
    assert_type(output.used_tools, dict[str, UsedTool])
    assert_type(output.used_tools["stock"]["count"], int)
    assert_type(output.waiting, list[WaitingCall])
    assert_type(output.error, RunError | None)
    assert_type(output.status, RunStatus)
    assert (output.usage["tool_calls"], output.used_tools["stock"]["count"]) == (1, 1)
    assert step["action"] is not None
    assert step["action"]["tool"] == "stock"


async def a_run_that_waits_goes_on_by_decisions() -> None:
    journal = MemoryJournal()
    waits = await run_agent(
        WAITS, registry=[stock], model=says({"guilty": True}), journal=journal, run_id="r", answer_schema=Verdict
    )
    assert waits.final_answer is None
    try:
        assert_type(waits.answer, Verdict)
    except AnswerError as error:
        reason = error.output.finish_reason
    else:
        reason = waits.finish_reason
    assert reason == "awaiting_approval"
    (call,) = waits.waiting
    assert_type(call["strand"], str)
    assert_type(call["args"], dict[str, Any])
    decisions: Decisions = {(call["strand"], call["n"]): Approve()}
    output = await run_agent(
        WAITS,
        registry=[stock],
        model=says({"guilty": True}),
        journal=journal,
        run_id="r",
        decisions=decisions,
        deps=SHOP,
        answer_schema=Verdict,
    )
    assert output.answer.guilty
    assert_type(verify(journal, run_id="r").ok, bool)
    assert_type(replay(journal, run_id="r").identical, bool)
    assert replay(journal, run_id="r").identical


def decisions_are_of_seven_kinds() -> None:
    made: Decisions = {
        ("agent", 1): Approve(),
        ("agent", 2): Deny("no"),
        ("agent", 3): Edit({"article": "B-4"}),
        ("agent", 4): Retry(),
        ("agent", 5): Skip(),
        ("agent", 6): Fail(),
        ("agent", 7): Done({"pieces": 12}),
    }
    assert len(made) == 7


# ── events ───────────────────────────────────────────────────────────────────────────────────────


def describe(event: Event) -> str:
    """Return an event as a line: a checker knows the keys of each, and that none is left out."""
    assert_type(event["node"], str)
    if event["event"] == "step_started":
        return f"{event['model']}, step {event['step']}"
    if event["event"] == "answer_delta" or event["event"] == "thought_delta":
        return event["text"]
    if event["event"] == "answer_discarded":
        return ""
    if event["event"] == "thought":
        return event["text"]
    if event["event"] == "action":
        assert_type(event["args"], dict[str, Any])
        return event["tool"]
    if event["event"] == "tool_progress":
        assert_type(event["fraction"], float | None)
        return event["text"]
    if event["event"] == "observation":
        assert_type(event["success"], bool)
        return event["text"]
    if event["event"] == "repair":
        return event["message"]
    if event["event"] == "plan":
        return f"{len(event['steps'])} steps"
    if event["event"] == "plan_step":
        return event["status"]
    if event["event"] == "waiting":
        return event.get("message", event["reason"])
    if event["event"] == "finished":
        if "status" in event:
            return event["status"]
        assert_type(event["usage"], RunUsage)
        return event["finish_reason"]
    assert_never(event)


async def events_are_told_to_a_callback() -> None:
    lines = list[str]()

    def hear(event: Event) -> None:
        lines.append(describe(event))

    await run_agent(CONFIG, registry=[stock], model=says("A dozen."), deps=SHOP, on_event=hear)
    assert lines[0] == "scripted, step 1"


async def events_are_iterated_and_the_output_is_the_last() -> None:
    events = stream_agent(CONFIG, registry=[stock], model=says({"guilty": True}), deps=SHOP, answer_schema=Verdict)
    assert_type(events, AsyncGenerator[Event | StreamResult[AgentOutput[Verdict]], None])
    lines, output = list[str](), None
    async with aclosing(events):
        async for event in events:
            if event["event"] == "result":
                output = event["result"]
                assert_type(output, AgentOutput[Verdict])
            else:
                lines.append(describe(event))
    assert output is not None
    assert output.answer.guilty
    assert lines[-1] == "final"


# ── the node in another engine ───────────────────────────────────────────────────────────────────


async def the_node_is_executed_by_another_engine(directory: Path) -> None:
    journal = directory / "runs.db"
    context = NodeContext(run_id="r", journal=journal, tools=[stock], model=says("12"), deps=SHOP)
    waits = await execute(WAITS, context)
    assert_type(waits, AgentOutput[Any])
    assert_type(list_waiting_sync("r", journal=journal), list[WaitingCall])
    (call,) = list_waiting_sync("r", journal=journal)
    decide_sync("r", {(call["strand"], call["n"]): Approve()}, journal=journal, by="ana", tools=[stock])
    assert execute_sync(WAITS, context).status == "completed"
    begun = find_run_sync("r", journal=journal)
    assert begun is not None
    assert begun.has_config(WAITS)


# ── conversations ────────────────────────────────────────────────────────────────────────────────


def executor(answer: Any) -> AgentExecutor:
    registry = ToolRegistry([stock])
    catalog = AgentCatalog(registry)
    catalog.register({"name": "desk", "model": "m", "skill_policy": {"allow": ["stock"]}})
    return AgentExecutor(catalog, tools_at=lambda directory: registry, model=says(answer), journal=MemoryJournal())


async def a_turn_has_an_answer_of_a_type() -> None:
    try:
        result = await executor({"guilty": True}).execute_conversation(
            "desk", "Is he?", ConversationOptions(max_steps=3), answer_schema=Verdict, deps=SHOP
        )
    except MaxStepsExceeded as error:
        raise AssertionError from error
    assert_type(result, ConversationResult[Verdict])
    assert_type(result.final_answer, Verdict | None)
    assert_type(result.usage, TurnUsage)
    assert result.output.answer.guilty
    text = await executor("A dozen.").execute_conversation("desk", "How many?", deps=SHOP)
    assert_type(text.final_answer, str | None)
    assert text.final_answer == "A dozen."


async def a_turn_is_iterated() -> None:
    async for event in executor("12").stream_conversation("desk", "How many?", deps=SHOP):
        if event["event"] == "result":
            assert_type(event["result"], ConversationResult[str])
            assert event["result"].content == "12"


async def a_reply_has_an_answer_of_a_type() -> None:
    desk = Conversations(executor({"guilty": True}), MemoryContextStore())
    reply = await desk.chat("Is he?", "c", answer_schema=Verdict, deps=SHOP)
    assert_type(reply, ChatReply[Verdict])
    assert_type(reply.final_answer, Verdict | None)
    assert_type(reply.tool_calls, list[ReplyCall])
    assert_type(reply.meta, ReplyMeta)
    assert reply.final_answer == Verdict(guilty=True)
    assert_type(await desk.history("c"), list[dict[str, Any]])


async def a_reply_is_iterated() -> None:
    desk = Conversations(executor("12"), MemoryContextStore())
    async for event in desk.stream_chat("How many?", "c", deps=SHOP):
        if event["event"] == "result":
            assert_type(event["result"], ChatReply[str])
            assert event["result"].response == "12"


# ── workflows ────────────────────────────────────────────────────────────────────────────────────

FLOW = {"id": "flow", "nodes": [{"id": "stock", "tool": "stock", "config": {"article": "A-17"}}]}


def engine(model: ModelClient | None = None) -> Engine:
    return Engine([stock, order], store=MemoryRunStore(), model=model)


async def a_workflow_runs() -> None:
    host = engine()
    result = await host.run(load_workflow(FLOW), external={}, deps=SHOP)
    assert_type(result, RunResult)
    assert_type(result.status, RunStatus)
    assert_type(result.outputs, dict[str, Any])
    assert_type(result.waiting, list[WaitingCall])
    assert_type(result.error, RunError | None)
    assert result.outputs["stock"] == {"shop": "Oslo", "article": "A-17"}
    again = await host.resume(result.run_id, deps=SHOP)
    assert_type(again, RunResult)
    assert again.status == "completed"
    await host.close()


def a_workflow_runs_without_an_event_loop() -> None:
    assert engine().run_sync(FLOW, deps=SHOP).status == "completed"


async def a_workflow_is_iterated() -> None:
    async for event in engine().stream(FLOW, deps=SHOP):
        if event["event"] == "result":
            assert_type(event["result"], RunResult)
            assert event["result"].status == "completed"
        else:
            assert describe(event)


async def a_graph_has_an_answer_of_a_type() -> None:
    graph = (
        AgentBuilder("desk")
        .add_llm_node("desk", "Answers", "m", ["stock"], "You are a desk.", max_steps=3)
        .set_entry_point("desk")
        .build(engine(says({"guilty": True})), answer_schema=Verdict)
    )
    assert_type(graph, AgentGraph[Verdict])
    state = AgentState(context=[{"role": "user", "content": "Is he?"}])
    execution = graph.execute("desk", state, deps=SHOP)
    assert_type(execution, Execution[Verdict])
    result = await execution
    assert_type(result, ExecutionResult[Verdict])
    assert_type(result.final_answer, Verdict | None)
    assert result.final_answer == Verdict(guilty=True)
    async for event in graph.stream("desk", state, deps=SHOP):
        if event["event"] == "result":
            assert_type(event["result"].final_answer, Verdict | None)


async def a_graph_without_a_type_answers_in_texts_piece_by_piece() -> None:
    chunks, host = list[Chunk](), engine(says("A dozen."))
    graph = AgentBuilder("desk").add_llm_node("desk", "", "m", ["stock"]).set_entry_point("desk").build(host)
    assert_type(graph, AgentGraph[str])
    state = AgentState(context=[{"role": "user", "content": "How many?"}], send_chunk=chunks.append)
    result = await graph.execute("desk", state, deps=SHOP)
    assert_type(result.final_answer, str | None)
    assert result.final_answer == "".join(chunks) == "A dozen."
    assert_type(chunks[0].node, str)
    assert {(chunk.node, chunk.strand) for chunk in chunks} == {("desk", "flow/desk.1")}


# ── tools and stores ─────────────────────────────────────────────────────────────────────────────


async def tools_are_called_by_a_registry(directory: Path) -> None:
    assert_type(await stock("A-17", ToolContext(deps=SHOP)), dict[str, str])
    registry = ToolRegistry([stock, order, Tool("look", "Looks.", {"type": "object"}, lambda args, context: "seen")])
    assert_type(registry.validate("stock", {}), list[Fault])
    result = await registry.execute("stock", {"article": "A-17"}, ToolContext(deps=SHOP))
    assert_type(result, ToolResult)
    assert result.output == {"shop": "Oslo", "article": "A-17"}
    assert_type(ToolContext(deps=SHOP), ToolContext[Shop])
    assert ToolContext[Shop](deps=SHOP).deps is SHOP
    assert_type(agent_tool(registry), Tool)
    assert_type(default_registry(directory), ToolRegistry)
    (directory / "replies.json").write_text('["Hi."]')
    assert_type(create_model(f"scripted:{directory}/replies.json"), ModelClient)


def every_store_has_what_its_protocol_says(directory: Path) -> None:
    journals: list[Journal] = [
        MemoryJournal(),
        JsonlJournal(directory / "run.jsonl"),
        SqliteJournal(directory / "runs.db"),
    ]
    for journal in journals:
        assert_type(journal.threads, Threads | None)
        assert journal.threads is None
    assert_type(MemoryJournal().threads, Threads | None)
    assert_type(JsonlJournal(directory / "run.jsonl").threads, Threads | None)
    assert_type(SqliteJournal(directory / "runs.db").threads, Threads | None)
    contexts: list[ContextStore] = [MemoryContextStore(), SqliteContextStore(directory / "context.db")]
    stores: list[RunStore] = [MemoryRunStore(), SqliteRunStore(directory / "runs.db")]
    for store in stores:
        assert_type(store.journal, Journal)
        assert_type(store.leases.threads, Threads | None)
    assert len(contexts) == 2
