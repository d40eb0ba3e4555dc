"""Graphs with an answer of a type, deps of their tools, and their events as an iterator."""

import asyncio
from contextlib import aclosing
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, TypeAdapter

from agent_core import AnswerError, DefinitionError
from agent_core.models import ScriptedModel
from engine_shim import AgentBuilder, Engine, MemoryRunStore
from engine_shim.builder.state import ExecutionStatus
from support.chat_host import ChatHost, asks, call, chain, final, play
from utools import ToolContext, tool


class Verdict(BaseModel):
    guilty: bool


def test_the_end_point_answers_by_the_type_and_the_others_as_they_like() -> None:
    async def run() -> None:
        host = ChatHost(a=[final("A text.")], b=[final({"guilty": "?"}), final({"guilty": True})])
        builder = AgentBuilder("g").set_entry_point("a").add_edge("a", "b")
        for key in "ab":
            builder.add_llm_node(key, "", "m", system_prompt=f"You are {key}.")
        graph = builder.build(host.engine, answer_schema=Verdict)
        schemas = [node["config"].get("answer_schema") for node in graph.to_definition()["nodes"]]
        assert (schemas[0], schemas[1]["required"]) == (None, ["guilty"])
        execution = graph.execute("a", asks())
        result = await execution
        assert result.final_answer == Verdict(guilty=True)
        assert result.final_message == '{"guilty":true}'
        assert (await graph.resume(execution.id)).final_answer == Verdict(guilty=True)
        stored = host.engine.result(execution.id)
        assert stored is not None
        assert stored.outputs["b"]["final_answer"] == {"guilty": True}
        assert host.is_sound(execution.id)

    play(run)


def test_without_a_type_the_answer_is_a_text() -> None:
    async def run() -> None:
        result = await chain(ChatHost(a=[final("Done.")]), "a").execute("a", asks())
        assert result.final_answer == "Done."

    play(run)


def test_an_answer_that_the_type_refuses_is_an_error_of_a_run_that_is_complete() -> None:
    def refuse(number: int) -> int:
        raise ValueError("no number will do")

    async def run() -> None:
        builder = AgentBuilder("g").set_entry_point("a").add_llm_node("a", "", "m", system_prompt="You are a.")
        kind = TypeAdapter(Annotated[int, AfterValidator(refuse)])
        execution = builder.build(ChatHost(a=[final(3)]).engine, answer_schema=kind).execute("a", asks())
        with pytest.raises(AnswerError, match="no number will do") as raised:
            await execution
        assert raised.value.output.final_answer == 3
        assert execution.status() is ExecutionStatus.COMPLETED

    play(run)


def test_an_end_point_with_another_schema_is_refused() -> None:
    builder = AgentBuilder("g").set_entry_point("a").add_llm_node("a", "", "m", answer_schema={"type": "string"})
    with pytest.raises(DefinitionError, match="nodes/a/config/answer_schema: is given twice"):
        builder.build(answer_schema=Verdict)


@tool(effect="read")
def whoami(context: ToolContext[str]) -> str:
    """Tell who asks."""
    return f"it is {context.deps}"


def test_the_tools_of_a_graph_get_what_its_caller_gives() -> None:
    async def run() -> None:
        model = ScriptedModel({"flow/a.1": [call("whoami"), final("Ann.")]})
        engine = Engine([whoami], store=MemoryRunStore(), model=model)
        graph = AgentBuilder("g").set_entry_point("a").add_llm_node("a", "", "m", ["whoami"]).build(engine)
        execution = graph.execute("a", asks(), deps="ann")
        await execution
        assert [made.output for made in execution.get_tool_calls()] == ["it is ann"]

    play(run)


def test_a_stream_ends_with_the_result() -> None:
    async def run() -> None:
        graph = chain(ChatHost(a=[call("look", what="x"), final("A.")], b=[final("B.")]), "a", "b")
        events = [event async for event in graph.stream("a", asks())]
        assert events[-1]["event"] == "result"
        assert events[-1]["result"].final_message == "B."
        assert [event["node"] for event in events[:-1] if event["event"] == "step_started"] == ["a", "a", "b"]

    play(run)


def test_a_consumer_that_stops_aborts_the_execution() -> None:
    async def run() -> None:
        host = ChatHost(a=[call("look", what="gate"), final("A.")])
        host.gates["gate"] = asyncio.Event()
        async with aclosing(chain(host, "a").stream("a", asks())) as events:
            async for event in events:
                if event["event"] == "action":
                    break
        (run_id,) = host.store.journal.runs()
        assert host.engine.status(run_id) == "cancelled"
        assert host.done == []

    play(run)


def test_a_consumer_that_stops_once_it_is_over_changes_nothing() -> None:
    async def run() -> None:
        host, seen = ChatHost(a=[final("A.")]), list[Any]()
        async with aclosing(chain(host, "a").stream("a", asks())) as events:
            async for event in events:
                seen.append(event)
                if event["event"] == "result":
                    break
        assert seen[-1]["result"].success

    play(run)
