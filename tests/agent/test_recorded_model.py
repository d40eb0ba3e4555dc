"""A recorded run in place of a model: strand by strand, answer by answer, failures too."""

from pathlib import Path

import pytest

from agent_core import JsonlJournal, SqliteJournal, run_agent
from agent_core.effects import Failed, ModelReply
from agent_core.errors import DefinitionError
from agent_core.models import Completion, Delta, ModelClient, ModelError, Question, ScriptedModel
from agent_core.models.providers import Providers
from agent_core.models.recorded import RecordedModel, answers_of
from agent_core.records import encode_answer
from utools import ToolRegistry, tool


@tool(effect="read")
async def lookup(word: str) -> str:
    """Look a word up."""
    return f"{word} means house"


CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["lookup"], "prompt": "What is a casa?"}
ACTION = '{"type":"action","tool":"lookup","args":{"word":"casa"}}'
FINAL = {"content": '{"type":"final","answer":"A house."}', "usage": {"input_tokens": 9, "output_tokens": 4}}


async def record(path: Path) -> None:
    model = ScriptedModel([ACTION, FINAL])
    journal = JsonlJournal(path)
    await run_agent(CONFIG, registry=ToolRegistry([lookup]), model=model, journal=journal, run_id="r1")


def question(index: int, strand: str = "agent") -> Question:
    return Question("m", (), {}, strand, index)


async def test_a_recorded_run_drives_the_same_run_again(tmp_path: Path) -> None:
    await record(tmp_path / "run.jsonl")
    model = Providers(tmp_path)("replay:run.jsonl", {})
    output = await run_agent(CONFIG, registry=ToolRegistry([lookup]), model=model)
    assert (output.final_answer, output.finish_reason) == ("A house.", "final")
    assert output.usage["requests"] == 2


async def test_each_answer_is_as_the_vendor_gave_it(tmp_path: Path) -> None:
    await record(tmp_path / "run.jsonl")
    model = RecordedModel.from_file(tmp_path / "run.jsonl")
    assert await model.complete(question(0)) == Completion(ACTION)
    assert await model.complete(question(1)) == Completion(FINAL["content"], "stop", 9, 4)  # type: ignore[arg-type]
    assert [piece async for piece in model.stream(question(0))] == [Delta(ACTION), Completion(ACTION)]
    assert model.info().name == "replay:r1"
    await model.close()


def test_what_a_tool_or_nobody_answered_is_no_models_answer() -> None:
    failed = encode_answer(Failed("timeout", "the tool took too long", "2026-01-01T00:00:00.000Z", 1.0))
    said = encode_answer(ModelReply("ok", "stop", {}, "2026-01-01T00:00:00.000Z", 1.0))
    model, tool_ = {"kind": "asked", "ask": "model"}, {"kind": "asked", "ask": "tool"}
    records = [model, {"kind": "cancelled"}, tool_, failed, {"kind": "decided"}, model, said]
    assert answers_of(records) == [ModelReply("ok", "stop", {}, "2026-01-01T00:00:00.000Z", 1.0)]


@pytest.mark.parametrize(("index", "strand"), [(2, "agent"), (0, "flow/agent_core.1")], ids=["dry", "another strand"])
async def test_what_was_not_recorded_is_a_model_error(index: int, strand: str, tmp_path: Path) -> None:
    await record(tmp_path / "run.jsonl")
    with pytest.raises(ModelError, match="no answer") as caught:
        await RecordedModel.from_file(tmp_path / "run.jsonl").complete(question(index, strand))
    assert caught.value.requests == 0


async def test_a_recorded_failure_fails_the_same_way(tmp_path: Path) -> None:
    def filtered(_: object) -> str:
        raise ModelError("the reply was withheld", kind="content_filter", requests=2)

    path = tmp_path / "run.jsonl"
    registry = ToolRegistry([lookup])
    await run_agent(CONFIG, registry=registry, model=ScriptedModel(filtered), journal=JsonlJournal(path))
    with pytest.raises(ModelError, match="withheld") as caught:
        await RecordedModel.from_file(path).complete(question(0))
    assert (caught.value.kind, caught.value.requests) == ("content_filter", 2)


DOWN = ModelError("down")
FALLEN_BACK: dict[str, tuple[list[str | ModelError], str]] = {
    "at the first question": ([DOWN, ACTION, str(FINAL["content"])], "final"),
    "at the second": ([ACTION, DOWN, str(FINAL["content"])], "final"),
    "twice": ([DOWN, DOWN, str(FINAL["content"])], "final"),
    "in vain": ([ACTION, DOWN, DOWN, DOWN], "model_error"),
}


@pytest.mark.parametrize("fallbacks", [[], ["b", "c"]], ids=["alone", "with fallbacks"])
@pytest.mark.parametrize(("replies", "ending"), FALLEN_BACK.values(), ids=FALLEN_BACK)
async def test_a_run_that_fell_back_is_driven_again(
    replies: list[str | ModelError], ending: str, fallbacks: list[str], tmp_path: Path
) -> None:
    left = list(replies)

    def answer(_: object) -> str:
        reply = left.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        return reply

    registry, path = ToolRegistry([lookup]), tmp_path / "run.jsonl"
    config = {**CONFIG, "fallback_models": ["b", "c"]}
    first = await run_agent(config, registry=registry, model=ScriptedModel(answer), journal=JsonlJournal(path))
    model = RecordedModel.from_file(path)
    again = await run_agent({**CONFIG, "fallback_models": fallbacks}, registry=registry, model=model)
    for output in (first, again):
        assert output.finish_reason == ending
    assert again.final_answer == first.final_answer
    assert [step["action"] for step in again.trace] == [step["action"] for step in first.trace]


async def test_a_run_of_the_hosts_store_is_found_by_its_id(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    model: ModelClient = ScriptedModel([ACTION, FINAL])
    await run_agent(CONFIG, registry=ToolRegistry([lookup]), model=model, journal=journal, run_id="r1")
    providers = Providers(tmp_path, tape_of=journal.load)
    assert await providers("replay:r1", {}).complete(question(0)) == Completion(ACTION)
    with pytest.raises(DefinitionError, match="no such recorded run"):
        providers("replay:r2", {})
    journal.close()


def test_a_run_that_is_nowhere_is_told_where_to_look_for() -> None:
    with pytest.raises(DefinitionError, match="replay:r1"):
        Providers()("replay:r1", {})


def test_a_file_that_is_no_journal_is_told_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("no journal\n")
    with pytest.raises(DefinitionError) as caught:
        Providers(tmp_path)("replay:run.jsonl", {})
    assert str(tmp_path) not in str(caught.value)
