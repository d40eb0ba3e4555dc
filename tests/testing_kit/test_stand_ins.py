"""A function and a recorded run in place of a model; and real models, which a test can refuse."""

import threading
from pathlib import Path
from typing import Any

import pytest

from agent_core import Action, Final, JsonlJournal, MemoryJournal, run_agent
from agent_core.errors import JournalError
from agent_core.models import ModelError, Question, create_model
from agent_core.models.endpoint.client import EndpointClient
from agent_core.models.local import LocalModel
from agent_core.testing import (
    FunctionModel,
    ScriptedModel,
    TestModel,
    assert_called,
    assert_finish,
    no_real_models,
    recorded,
)
from support.wires.clients import ask, client_of, each_client, each_way, question
from support.wires.serving import vendor
from support.wires.turn import Turn, WireStandIn
from utools import tool

BOTH = pytest.mark.parametrize("protocol", ["json", "tools"])


@tool(effect="read")
async def look(word: str) -> str:
    """Look a word up."""
    return f"{word} means house"


CONFIG: dict[str, Any] = {"model": "openai:gpt-4o-mini", "max_steps": 5, "allowed_tools": ["look"], "prompt": "casa?"}


async def run(model: Any, **config: Any) -> Any:
    return await run_agent({**CONFIG, **config}, registry=[look], model=model)


# ── a function ───────────────────────────────────────────────────────────────────────────────────


@BOTH
async def test_a_function_is_asked_with_the_messages_and_the_tools_that_may_be_called(protocol: str) -> None:
    seen: list[Any] = []

    async def reply(messages: Any, tools: Any) -> Any:
        seen.append((messages[-1]["role"], [(each.code, each.description) for each in tools]))
        return Action("look", {"word": "casa"}, "I look.") if len(seen) == 1 else Final("A house.")

    output = await run(FunctionModel(reply), protocol=protocol, max_steps=2)
    assert_called(output, "look", args={"word": "casa"}, times=1)
    assert_finish(output, answer="A house.")
    assert output.trace[0]["thought"] == "I look."
    assert seen == [("user", [("look", "Look a word up.")]), ("user", [])]


@BOTH
async def test_a_functions_reply_may_be_a_step_as_a_script_has_it(protocol: str) -> None:
    replies = iter([{"type": "action", "tool": "look", "args": {"word": "x"}}, {"type": "final", "answer": "y"}])
    output = await run(FunctionModel(lambda messages, tools: next(replies)), protocol=protocol)
    assert_called(output, "look", args={"word": "x"}, times=1)
    assert_finish(output, answer="y")


async def test_several_actions_at_once_need_function_calling() -> None:
    twice = [Action("look", {"word": "a"}), Action("look", {"word": "b"})]
    replies = iter([twice, Final("z")])
    output = await run(FunctionModel(lambda messages, tools: next(replies)), protocol="tools")
    assert_called(output, "look", times=2)
    output = await run(FunctionModel(lambda messages, tools: twice))
    assert_finish(output, "model_error", error="several actions in one reply (look, look) need function calling")
    output = await run_agent(CONFIG, registry=[look], model=FunctionModel(lambda *_: [twice[0], Final("A house.")]))  # type: ignore[arg-type,list-item,return-value]
    assert_finish(output, "model_error", error="a reply is one step, or several actions")


async def test_what_a_function_gives_that_is_no_reply_is_told_of() -> None:
    output = await run(FunctionModel(lambda messages, tools: 7, name="seven"))  # type: ignore[arg-type,return-value]
    assert_finish(output, "model_error", error="seven: reply 1 must be a text, a step such as")


# ── a recorded run ───────────────────────────────────────────────────────────────────────────────


async def test_a_recorded_run_answers_whatever_it_is_read_from(tmp_path: Path) -> None:
    steps = [{"type": "action", "tool": "look", "args": {"word": "casa"}}, {"type": "final", "answer": "A house."}]
    journal, script = MemoryJournal(), ScriptedModel(steps)
    await run_agent(CONFIG, registry=[look], model=script, journal=journal, run_id="r")
    rows = journal.load("r")["agent"]
    JsonlJournal(tmp_path / "run.jsonl").append("r", rows)
    for source, run_id in [(journal, "r"), (tmp_path / "run.jsonl", None), (rows, "r"), (journal.load("r"), None)]:
        assert_finish(await run(recorded(source, run_id)), answer="A house.")
    with pytest.raises(JournalError, match="holds no run 'q'"):
        recorded(journal, "q")


# ── no real models ───────────────────────────────────────────────────────────────────────────────


@each_way
@each_client
async def test_no_endpoint_is_asked_by_whichever_api(stand_in: WireStandIn, way: str) -> None:
    async with vendor(stand_in, Turn("yes")) as endpoint:
        model = client_of(endpoint)
        with no_real_models(), pytest.raises(ModelError, match=r"the real model m1.* was asked; give the run another"):
            await ask(model, question(), way)
        assert endpoint.requests == []
        _, completion = await ask(model, question(), way)
        await model.close()
    assert completion.content == "yes"


async def test_a_run_of_a_real_model_says_which_one_was_asked_without_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with no_real_models():
        output = await run(None)
    assert_finish(output, "model_error", error="no_real_models: the real model gpt-4o-mini was asked")


async def test_a_model_file_is_not_asked(tmp_path: Path) -> None:
    local = LocalModel.__new__(LocalModel)  # without the extra and a file of gigabytes
    local._path, local._window, local._small = tmp_path / "small.gguf", 10, True
    with no_real_models(), pytest.raises(ModelError, match=r"the real model local:small\.gguf was asked"):
        await local.complete(Question("m", (), {}, "agent", 0))


async def test_stand_ins_are_asked_as_ever() -> None:
    async with no_real_models():
        for model in (TestModel(), ScriptedModel(["{}"]), FunctionModel(lambda messages, tools: Final("x"))):
            assert (await model.complete(Question("m", (), {}, "agent", 0))).content


async def test_it_holds_in_other_threads_until_the_last_block_ends() -> None:
    model, told = create_model("m", base_url="http://127.0.0.1:9", api_key="k"), list[str]()
    original = EndpointClient.complete

    def ask_in_thread() -> None:
        with pytest.raises(ModelError, match="no_real_models") as caught:
            model.complete(Question("m", (), {}, "agent", 0)).send(None)  # type: ignore[attr-defined]
        told.append(str(caught.value))

    outer, inner = no_real_models(), no_real_models()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    thread = threading.Thread(target=ask_in_thread)
    thread.start()
    thread.join()
    inner.__exit__(None, None, None)
    assert len(told) == 1
    assert EndpointClient.complete is original
