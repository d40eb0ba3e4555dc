"""execute_conversation: a turn with an agent, its options, its result, its errors, its record."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, MemoryJournal, replay, verify
from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.chat import Conversations
from agent_core.agents.conversation import AgentExecutor, ConversationOptions
from agent_core.agents.errors import AgentNotFound, MaxStepsExceeded, ModelCallFailed
from agent_core.agents.result import ConversationResult
from agent_core.errors import DefinitionError
from agent_core.models import ScriptedModel
from agent_core.models.client import Completion, ModelError, ModelInfo, Question
from support.by_hand import action, final
from utools import Tool, ToolRegistry, default_registry

READ = action("read_file", path="a.txt")
SUPPORT = {
    "name": "support",
    "model": "scripted:x",
    "system_prompt": "You help.",
    "skill_policy": {"allow": ["read_file", "calculator"]},
    "runtime_policy": {"max_steps": 3, "temperature": 0.3, "max_history_messages": 4},
}


class Asked(ScriptedModel):
    """A script that keeps what it was asked."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies)
        self.questions: list[Question] = []

    async def complete(self, question: Question) -> Completion:
        self.questions.append(question)
        return await super().complete(question)

    def sent(self) -> list[tuple[str, str]]:
        messages = [json.loads(message) for message in self.questions[-1].messages]
        return [(each["role"], each["content"]) for each in messages]


def executor(root: Path, model: Any, **more: Any) -> AgentExecutor:
    (root / "a.txt").write_text("the first")
    (root / "sub").mkdir(exist_ok=True)
    (root / "sub" / "a.txt").write_text("the one below")
    catalog = AgentCatalog([tool.code for tool in default_registry(root).all()])
    catalog.register({**SUPPORT, **more.pop("agent", {})})
    return AgentExecutor(catalog, root=root, model=model, **more)


async def test_a_turn_has_the_answer_the_messages_the_tools_and_the_tokens(tmp_path: Path) -> None:
    model = Asked([READ, READ, final("It says: the first.")])
    result = await executor(tmp_path, model).execute_conversation("support", "What does a.txt say?")
    assert (result.content, result.steps, result.agent_name) == ("It says: the first.", 3, "support")
    assert result.tool_calls == [{"tool_name": "read_file", "count": 2}]
    usage = result.usage
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert result.start_time <= result.end_time
    assert [message["role"] for message in result.messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert "You help." in model.sent()[0][1]
    told = json.loads(json.dumps(result.as_json()))
    assert list(told) == [
        "content", "messages", "steps", "tool_calls", "usage", "agent_name", "start_time", "end_time",
    ]  # fmt: skip
    assert (told["steps"], told["end_time"]) == (3, result.end_time.isoformat())


async def test_an_agent_has_tools_of_its_hosts_own(tmp_path: Path) -> None:
    def tools_at(directory: Path) -> ToolRegistry:
        made.append(directory)
        own = Tool("stock", "Tells how many there are.", {"type": "object"}, lambda args, context: 12, effect="read")
        registry = default_registry(directory)
        registry.register(own)
        return registry

    made: list[Path] = []
    catalog = AgentCatalog(tools_at(tmp_path))
    catalog.register({**SUPPORT, "skill_policy": {"allow": ["stock"]}})
    script = ScriptedModel([action("stock"), final("There are 12.")])
    agent = AgentExecutor(catalog, root=tmp_path, tools_at=tools_at, model=script)
    for _ in range(2):
        result = await agent.execute_conversation("support", "How many?")
        assert (result.content, result.tool_calls) == ("There are 12.", [{"tool_name": "stock", "count": 1}])
    assert made == [tmp_path, tmp_path]  # one for the catalogue, one for all turns


async def test_what_a_conversation_cannot_use_is_told_by_its_name(tmp_path: Path) -> None:
    own = Tool("stock", "Tells how many there are.", {"type": "object"}, lambda args, context: 12, effect="read")
    catalog, wrong = AgentCatalog(ToolRegistry([own])), dict[str, Any](options={"max_steps": 1})
    catalog.register({**SUPPORT, "skill_policy": {"allow": ["stock"]}})
    agent = AgentExecutor(catalog, root=tmp_path, model=ScriptedModel([final()]))
    with pytest.raises(DefinitionError, match="the catalogue knows the tool 'stock'"):
        await agent.execute_conversation("support", "How many?")
    with pytest.raises(DefinitionError, match=r"options: must be ConversationOptions\(…\)"):
        await agent.execute_conversation("support", "How many?", **wrong)
    nothing: Any = None
    with pytest.raises(DefinitionError, match="store: must be a ContextStore"):
        Conversations(agent, nothing)
    with pytest.raises(DefinitionError, match="tools: must be a ToolRegistry, or the codes of its tools"):
        AgentCatalog(nothing)
    with pytest.raises(DefinitionError, match="directory: there is no such directory"):
        AgentCatalog.from_directory(str(tmp_path / "nope"), [])


async def test_a_turn_may_have_more_steps_than_the_agent(tmp_path: Path) -> None:
    agent = executor(tmp_path, Asked([*[READ] * 4, final("At last.")]))
    result = await agent.execute_conversation("support", "Read on.", ConversationOptions(max_steps=5))
    assert (result.content, result.steps) == ("At last.", 5)


async def test_the_next_turn_goes_on_from_the_messages_of_the_last(tmp_path: Path) -> None:
    agent = executor(tmp_path, Asked([final("Hello Ann.")]))
    first = await agent.execute_conversation("support", "I am Ann.")
    model = Asked([final("Ann.")])
    options = ConversationOptions(conversation_history=first.messages)
    second = await executor(tmp_path, model).execute_conversation("support", "Who am I?", options)
    assert [content for _, content in model.sent()][1:] == [
        "I am Ann.", final("Hello Ann."), "Who am I?",
    ]  # fmt: skip
    assert [message["content"] for message in second.messages] == ["I am Ann.", "Hello Ann.", "Who am I?", "Ann."]


async def test_a_long_history_is_cut_by_whole_turns(tmp_path: Path) -> None:
    turns = [{"role": role, "content": f"{role} {n}"} for n in range(9) for role in ("user", "assistant")]
    model = Asked([final("Yes.")])
    await executor(tmp_path, model).execute_conversation("support", "Go on.", ConversationOptions(turns))
    assert [content for role, content in model.sent() if role == "user"] == ["user 8", "Go on."]


async def test_options_that_are_given_outweigh_the_agents(tmp_path: Path) -> None:
    model = Asked([final("Yes.")] * 3)
    agent = executor(tmp_path, model)
    for options in (None, ConversationOptions(temperature=0), ConversationOptions(temperature=0.9)):
        await agent.execute_conversation("support", "Yes?", options)
    assert [question.options["temperature"] for question in model.questions] == [0.3, 0, 0.9]


@pytest.mark.parametrize(("max_steps", "steps"), [(0, 3), (1, 1), (2, 2)])
async def test_without_an_answer_the_steps_are_used_up(tmp_path: Path, max_steps: int, steps: int) -> None:
    agent = executor(tmp_path, Asked([READ] * 5))
    with pytest.raises(MaxStepsExceeded) as raised:
        await agent.execute_conversation("support", "Read on.", ConversationOptions(max_steps=max_steps))
    result = raised.value.result
    assert isinstance(result, ConversationResult)
    assert (result.content, result.steps, result.output.finish_reason) == ("", steps, "max_steps")


async def test_a_failed_tool_and_a_refused_call_go_back_to_the_model(tmp_path: Path) -> None:
    wrong = [action("read_file", path="missing.txt"), action("send_mail", to="x")]
    agent = executor(tmp_path, Asked([*wrong, final("There is none.")]))
    assert (await agent.execute_conversation("support", "Read it.")).content == "There is none."


async def test_a_model_that_fails_is_an_error_with_the_result(tmp_path: Path) -> None:
    class Broken(ScriptedModel):
        async def complete(self, question: Question) -> Completion:
            raise ModelError("the key is wrong")

        def info(self) -> ModelInfo:
            return ModelInfo("broken")

    with pytest.raises(ModelCallFailed, match="agent 'support': the key is wrong") as raised:
        await executor(tmp_path, Broken([])).execute_conversation("support", "Hello.")
    assert raised.value.result is not None
    assert raised.value.result.steps <= 1


async def test_an_agent_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(AgentNotFound, match="did you mean 'support'"):
        await executor(tmp_path, Asked([])).execute_conversation("supprt", "Hello.")


async def test_a_base_path_is_what_file_tools_see(tmp_path: Path) -> None:
    model = Asked([READ, final("Done.")])
    await executor(tmp_path, model).execute_conversation("support", "Read.", ConversationOptions(base_path="sub"))
    assert "the one below" in model.sent()[-1][1]


@pytest.mark.parametrize(("path", "told"), [("..", "must lie inside"), ("/", "must lie inside"), ("no", "there is no")])
async def test_a_base_path_outside_the_root_is_refused(tmp_path: Path, path: str, told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        await executor(tmp_path, Asked([])).execute_conversation(
            "support", "Read.", ConversationOptions(base_path=path)
        )


async def test_a_link_does_not_lead_out_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    with pytest.raises(DefinitionError, match="must lie inside"):
        await executor(root, Asked([])).execute_conversation("support", "Read.", ConversationOptions(base_path="out"))


async def test_the_record_and_the_log_say_which_tools_were_kept_and_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = MemoryJournal()
    caplog.set_level(logging.INFO, "agent_core")
    agent = executor(tmp_path, Asked([READ, final("Done.")]), journal=journal)
    await agent.execute_conversation("support", "Read.", run_id="turn")
    note = journal.load("turn")["agent"][0].record()["agent"]
    assert (note["name"], note["kept"]) == ("support", ["calculator", "read_file"])
    assert note["dropped"]["context_manager"] == "not allowed"
    assert "agent=support strand=agent model=scripted:x max_steps=3 tools=calculator, read_file without=" in caplog.text
    assert verify(journal, run_id="turn").ok
    assert replay(journal, run_id="turn").identical


async def test_a_turn_that_died_goes_on_without_asking_again(tmp_path: Path) -> None:
    journal, model = MemoryJournal(), Asked([READ, final("Done.")])
    await executor(tmp_path, model, journal=journal).execute_conversation("support", "Read.", run_id="turn")
    rows = journal.load("turn")["agent"]
    cut = MemoryJournal()
    cut.append("turn", rows[:6])
    again = Asked([READ, final("Done.")])
    result = await executor(tmp_path, again, journal=cut).execute_conversation("support", "Read.", run_id="turn")
    assert (result.content, len(again.questions)) == ("Done.", 1)


async def test_a_turn_that_waits_for_a_person_goes_on_with_the_decision(tmp_path: Path) -> None:
    policy = {"allow": [{"tool": "read_file", "approval": "always"}]}
    agent = executor(tmp_path, Asked([READ, final("Read.")]), journal=tmp_path / "j.db", agent={"skill_policy": policy})
    waits = await agent.execute_conversation("support", "Read.", run_id="turn")
    assert (waits.content, waits.output.finish_reason) == ("", "awaiting_approval")
    (call,) = waits.output.waiting
    decisions = {(call["strand"], call["n"]): Approve()}
    done = await agent.execute_conversation("support", "Read.", run_id="turn", decisions=decisions)
    assert (done.content, done.tool_calls) == ("Read.", [{"tool_name": "read_file", "count": 1}])


async def test_a_cancelled_caller_cancels_the_run(tmp_path: Path) -> None:
    class Slow(ScriptedModel):
        async def complete(self, question: Question) -> Completion:
            await asyncio.sleep(60)
            raise AssertionError

    journal = MemoryJournal()
    agent = executor(tmp_path, Slow([]), journal=journal)
    turn = asyncio.create_task(agent.execute_conversation("support", "Hello.", run_id="turn"))
    while "turn" not in journal.runs() or len(journal.load("turn")["agent"]) < 2:
        await asyncio.sleep(0.001)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert journal.load("turn")["agent"][-1].record()["finish_reason"] == "cancelled"
