"""Conversations with an answer of a type, deps of their tools, and their events as an iterator."""

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, TypeAdapter

from agent_core import AnswerError, Approve, MemoryJournal
from agent_core.agents import AgentCatalog, AgentExecutor, Conversations
from agent_core.journal.chain import is_finished
from agent_core.models import ScriptedModel
from agent_core.run.agent_drive import ROOT
from support.by_hand import final
from utools import ToolContext, ToolRegistry, tool
from utools.context.store_memory import MemoryContextStore

CALL = {"type": "action", "tool": "whoami", "args": {}}
TRUE = final({"guilty": True})


class Verdict(BaseModel):
    guilty: bool


@tool(effect="read")
def whoami(context: ToolContext[str]) -> str:
    """Tell who asks."""
    return f"it is {context.deps}"


def executor(*replies: Any, approval: str = "never") -> AgentExecutor:
    registry = ToolRegistry([whoami])
    catalog = AgentCatalog(registry)
    allow = [{"tool": "whoami", "approval": approval}]
    catalog.register({"name": "judge", "model": "m", "skill_policy": {"allow": allow}})
    model, journal = ScriptedModel(list(replies)), MemoryJournal()
    return AgentExecutor(catalog, tools_at=lambda path: registry, model=model, journal=journal)


async def test_a_turn_gives_the_object_and_its_text() -> None:
    result = await executor(TRUE).execute_conversation("judge", "Is he?", answer_schema=Verdict)
    assert (result.final_answer, result.content) == (Verdict(guilty=True), '{"guilty":true}')
    assert result.as_json()["content"] == '{"guilty":true}'


async def test_the_tools_of_a_turn_get_what_its_caller_gives() -> None:
    result = await executor(CALL, final()).execute_conversation("judge", "Who?", deps="ann")
    assert result.output.trace[0]["observation"] == "it is ann"


async def test_a_stream_of_a_turn_ends_with_its_result() -> None:
    host = executor(CALL, TRUE)
    events = [e async for e in host.stream_conversation("judge", "Is he?", deps="ann", answer_schema=Verdict)]
    assert [event["text"] for event in events if event["event"] == "observation"] == ["it is ann"]
    assert events[-1]["result"].final_answer == Verdict(guilty=True)


async def test_a_reply_has_the_object_and_its_json_the_text() -> None:
    desk = Conversations(executor(TRUE), MemoryContextStore())
    reply = await desk.chat("Is he?", "c", run_id="r", answer_schema=Verdict)
    assert (reply.final_answer, reply.response) == (Verdict(guilty=True), '{"guilty":true}')
    assert "final_answer" not in reply.as_json()
    again = await desk.chat("Is he?", "c", run_id="r", answer_schema=Verdict)
    assert again == reply
    assert [message["content"] for message in await desk.history("c")] == ["Is he?", '{"guilty":true}']


async def test_a_decision_gives_the_object_to_a_caller_who_asks_for_it() -> None:
    for kind, made in ((Verdict, Verdict(guilty=True)), (None, {"guilty": True})):
        desk = Conversations(executor(CALL, TRUE, approval="always"), MemoryContextStore())
        waits = await desk.chat("Is he?", "c", run_id="r", answer_schema=Verdict, deps="ann")
        assert (waits.final_answer, waits.finish_reason) == (None, "awaiting_approval")
        decisions = {(call["strand"], call["n"]): Approve() for call in waits.waiting}
        reply: Any = await desk.decide("c", "r", decisions, answer_schema=kind, deps="bob")
        assert reply.final_answer == made
        assert reply.tool_calls[0]["result"] == "it is bob"


async def test_a_turn_with_a_type_that_waits_can_be_withdrawn() -> None:
    host = executor(CALL, approval="always")
    desk = Conversations(host, MemoryContextStore())
    await desk.chat("Is he?", "c", run_id="r", answer_schema=Verdict)
    assert [message["content"] for message in await desk.withdraw("c")] == ["Is he?"]
    assert isinstance(host.journal, MemoryJournal)
    assert is_finished(host.journal.load("r"), ROOT)


async def test_a_stream_of_a_reply_ends_with_it() -> None:
    desk = Conversations(executor(CALL, TRUE), MemoryContextStore())
    events = [event async for event in desk.stream_chat("Is he?", "c", answer_schema=Verdict, deps="ann")]
    assert events[-1]["result"].final_answer == Verdict(guilty=True)
    assert len(await desk.history("c")) == 4


async def test_a_turn_whose_answer_its_type_refuses_is_stored_all_the_same() -> None:
    def refuse(number: int) -> int:
        raise ValueError("no number will do")

    desk = Conversations(executor(final(3)), MemoryContextStore())
    with pytest.raises(AnswerError, match="no number will do"):
        await desk.chat("How many?", "c", answer_schema=TypeAdapter(Annotated[int, AfterValidator(refuse)]))
    assert [message["content"] for message in await desk.history("c")] == ["How many?", "3"]
