"""Final answers of a type: a model keeps to its JSON Schema, and the program gets an object."""

import pickle
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, TypeAdapter
from typing_extensions import TypedDict

from agent_core import AgentConfig, AnswerError, Approve, DefinitionError, MemoryJournal, replay, run_agent, verify
from agent_core.journal.reader import read_run
from agent_core.models import ScriptedModel
from agent_core.run.agent_drive import ROOT
from support.by_hand import Q, action, final
from utools import Tool

CONFIG = {"model": "scripted", "max_steps": 3, "allowed_tools": [], "prompt": "Is he guilty?"}
ANSWER = {"guilty": True, "since": "2026-03-01"}


class Verdict(BaseModel):
    guilty: bool
    since: date


@dataclass
class VerdictData:
    guilty: bool
    since: date


class VerdictDict(TypedDict):
    guilty: bool
    since: date


def odd(number: int) -> int:
    if number % 2 == 0:
        raise ValueError("is even")
    return number


KINDS: list[tuple[Any, Any, Any]] = [
    (Verdict, ANSWER, Verdict(guilty=True, since=date(2026, 3, 1))),
    (VerdictData, ANSWER, VerdictData(True, date(2026, 3, 1))),
    (VerdictDict, ANSWER, {"guilty": True, "since": date(2026, 3, 1)}),
    (list[Verdict], [ANSWER], [Verdict(guilty=True, since=date(2026, 3, 1))]),
    (TypeAdapter(Literal["yes", "no"] | None), None, None),
    (int, 3, 3),
    ({"type": "object", "required": ["guilty"]}, ANSWER, ANSWER),
    (None, "He is.", "He is."),
]


@pytest.mark.parametrize(("kind", "answer", "made"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
async def test_an_answer_is_an_object_of_its_type_and_json_on_record(kind: Any, answer: Any, made: Any) -> None:
    journal = MemoryJournal()
    output = await run_agent(
        CONFIG, registry=[], model=ScriptedModel([final(answer)]), journal=journal, answer_schema=kind
    )
    assert output.final_answer == output.answer == made
    assert type(output.final_answer) is type(made)
    assert output.model_dump()["final_answer"] == answer
    assert read_run(journal.load(output.run_id), ROOT).config["answer_schema"] is None or kind is not None
    assert verify(journal, run_id=output.run_id).ok
    assert replay(journal, run_id=output.run_id).identical


async def test_a_model_is_told_what_does_not_fit() -> None:
    model = ScriptedModel([final({"guilty": "maybe"}), final(ANSWER)])
    output = await run_agent(CONFIG, registry=[], model=model, answer_schema=Verdict)
    assert output.answer.guilty
    assert output.usage["requests"] == 2


async def test_a_finished_run_gives_the_object_again_without_asking() -> None:
    journal = MemoryJournal()
    for replies in ([final(ANSWER)], []):
        output = await run_agent(
            CONFIG, registry=[], model=ScriptedModel(replies), journal=journal, run_id="r", answer_schema=Verdict
        )
        assert output.final_answer == Verdict(guilty=True, since=date(2026, 3, 1))
    with pytest.raises(DefinitionError, match="config/answer_schema: run 'r' began with another config"):
        await run_agent(CONFIG, registry=[], model=ScriptedModel([]), journal=journal, run_id="r")


async def test_a_resumed_run_gives_the_object() -> None:
    journal = MemoryJournal()
    config = {**CONFIG, "allowed_tools": [{"tool": "look", "approval": "always"}]}
    registry = [Tool("look", "Looks.", Q, lambda args, context: "seen", effect="read")]
    model = ScriptedModel([action(), final(ANSWER)])
    waits = await run_agent(config, registry=registry, model=model, journal=journal, run_id="r", answer_schema=Verdict)
    assert (waits.final_answer, waits.finish_reason) == (None, "awaiting_approval")
    decisions = {(call["strand"], call["n"]): Approve() for call in waits.waiting}
    output = await run_agent(
        config,
        registry=registry,
        model=model,
        journal=journal,
        run_id="r",
        decisions=decisions,
        answer_schema=Verdict,
    )
    assert output.answer.since == date(2026, 3, 1)


async def test_a_run_without_an_answer_says_so_where_one_is_needed() -> None:
    output = await run_agent(
        {**CONFIG, "max_steps": 1}, registry=[], model=ScriptedModel([final("no")]), answer_schema=Verdict
    )
    assert output.final_answer is None
    with pytest.raises(AnswerError, match=r"has no answer \(max_steps\)|has no answer \(protocol_error\)") as raised:
        _ = output.answer
    assert raised.value.output is output


async def test_an_answer_that_only_the_type_refuses_is_an_error_that_keeps_the_output() -> None:
    with pytest.raises(AnswerError, match=r"but not its type: .*is even") as raised:
        await run_agent(
            CONFIG,
            registry=[],
            model=ScriptedModel([final(2)]),
            answer_schema=TypeAdapter(Annotated[int, AfterValidator(odd)]),
        )
    again = pickle.loads(pickle.dumps(raised.value))
    assert raised.value.output.final_answer == again.output.final_answer == 2
    assert str(again) == str(raised.value)


async def test_a_config_as_an_object_gets_the_schema_too() -> None:
    config = AgentConfig.model_validate(CONFIG)
    output = await run_agent(config, registry=[], model=ScriptedModel([final(ANSWER)]), answer_schema=Verdict)
    assert output.answer.guilty


async def test_titles_that_repeat_names_cost_no_tokens() -> None:
    journal = MemoryJournal()
    output = await run_agent(
        CONFIG, registry=[], model=ScriptedModel([final(ANSWER)]), journal=journal, answer_schema=Verdict
    )
    assert "title" not in str(read_run(journal.load(output.run_id), ROOT).config["answer_schema"])


class Opaque:
    pass


BAD: list[tuple[Any, str]] = [
    ("Verdict", "answer_schema: must be a pydantic model, a dataclass"),
    (Opaque, "answer_schema: Opaque has no JSON Schema"),
]


@pytest.mark.parametrize(("kind", "fault"), BAD, ids=["text", "opaque"])
async def test_a_type_without_a_schema_is_refused_with_what_may_be_given(kind: Any, fault: str) -> None:
    with pytest.raises(DefinitionError, match=fault):
        await run_agent(CONFIG, registry=[], model=ScriptedModel([]), answer_schema=kind)


async def test_two_schemas_are_refused() -> None:
    config = {**CONFIG, "answer_schema": {"type": "string"}}
    with pytest.raises(DefinitionError, match="config/answer_schema: is given twice"):
        await run_agent(config, registry=[], model=ScriptedModel([]), answer_schema=Verdict)
