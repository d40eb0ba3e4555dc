"""Turns of a conversation as people ask for them: one tool, several, a choice, a fault, refused arguments, a crash."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, verify
from agent_core.agents.catalog import AgentCatalog
from agent_core.agents.chat import Conversations
from agent_core.agents.conversation import AgentExecutor
from agent_core.agents.reply import ChatReply
from agent_core.models import ScriptedModel, create_model
from agent_core.models.client import Completion, ModelClient, Question
from agent_core.models.local import local_model
from support.by_hand import action, final
from support.gguf import FILE, needs_a_model
from utools import default_registry
from utools.context.store import ContextStore
from utools.context.store_memory import MemoryContextStore

ENDINGS = ("final", "max_steps", "max_tool_calls", "token_budget", "protocol_error", "invalid_action", "timeout")
MODEL = os.environ.get("AGENT_CORE_TEST_MODEL", "")
"""A capable model, such as openai:gpt-4o-mini, that the scenarios are tried with."""
TOOLS = ["echo", "file_search", "calculator", "log_transform", "read_file"]
WRITE = {"tool": "write_file", "preset": {"root": "."}}
LOG = "2026-01-31T09:00:00Z ERROR disk full\n2026-01-31T09:00:01Z INFO idle\n2026-01-31T09:00:02Z ERROR disk full\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {"data/docs/a.md": "openSkill begins\n", "data/b.txt": "calculator: 4 and 8\n", "data/logs/app.log": LOG}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def talk(root: Path, model: ModelClient, *, store: ContextStore | None = None, journal: Any = None) -> Conversations:
    """Conversations with an agent that has these tools to choose from."""
    catalog = AgentCatalog([tool.code for tool in default_registry(root).all()])
    limits = {"max_output_tokens": 200, "single_call_timeout": 120, "timeout": 240}  # a small model on a slow machine
    policy = {"skill_policy": {"allow": [*TOOLS, WRITE]}, "runtime_policy": limits}
    catalog.register({"name": "desk", "model": "scripted:x", **policy})
    executor = AgentExecutor(catalog, root=root, model=model, journal=MemoryJournal() if journal is None else journal)
    return Conversations(executor, store or MemoryContextStore())


def read_numbers(messages: list[dict[str, Any]]) -> str:
    """Searches, calculates with the numbers in what was found, and answers with the result."""
    done = [each["content"] for each in messages if each["content"].startswith("The tool ")]
    if not done:
        return action("file_search", query="calculator")
    if len(done) == 1:
        numbers = [int(each) for each in re.findall(r"\d+", re.findall(r'"snippet":"([^"]*)"', done[0])[0])]
        return action("calculator", operation="mean", numbers=numbers)
    return final(f"The mean is {re.findall(r'[0-9]+', done[-1])[-1]}.")


NUMBERS = [1, 2, 3, 4, 5]
FOUND_A = {"path": "data/docs/a.md", "line": 1, "snippet": "openSkill begins"}
FOUND_B = {"path": "data/b.txt", "line": 1, "snippet": "calculator: 4 and 8"}
SEARCH_DOCS = {"query": "openSkill", "root_dir": "./data/docs", "limit": 5}
COUNT = {"path": "data/logs/app.log", "level": "error", "count_by": "message", "limit": 0}
SCENARIOS: list[tuple[str, str, Any, list[tuple[str, dict[str, Any], Any]]]] = [
    ("echo", "echo hello",
     [action("echo", text="hello"), final("hello")], [("echo", {"text": "hello"}, "hello")]),
    ("a search", "Search for files with 'openSkill'.",
     [action("file_search", query="openSkill"), final("a.md")], [("file_search", {"query": "openSkill"}, [FOUND_A])]),
    ("a search with parameters", "In ./data/docs search for 'openSkill', 5 hits at most.",
     [action("file_search", **SEARCH_DOCS), final("a.md")], [("file_search", SEARCH_DOCS, [FOUND_A])]),
    ("a calculation", "The mean of [1,2,3,4,5]?",
     [action("calculator", operation="mean", numbers=NUMBERS), final("3")],
     [("calculator", {"operation": "mean", "numbers": NUMBERS}, 3)]),
    ("several calculations", "Mean, max and min of [1,2,3,4,5]?",
     [*(action("calculator", operation=each, numbers=NUMBERS) for each in ("mean", "max", "min")), final("3, 5, 1")],
     [("calculator", {"operation": each, "numbers": NUMBERS}, value)
      for each, value in (("mean", 3), ("max", 5), ("min", 1))]),
    ("a search, then a calculation with what it found", "Find 'calculator', then the mean of the numbers there.",
     read_numbers,
     [("file_search", {"query": "calculator"}, [FOUND_B]),
      ("calculator", {"operation": "mean", "numbers": [4, 8]}, 6)]),
    ("a choice of a tool", "Analyse data/logs/app.log, please.",
     [action("log_transform", **COUNT), final("Two errors: disk full.")],
     [("log_transform", COUNT, {"counts": {"disk full": 2}, "lines": [], "matched": 2, "total": 3})]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "script", "calls"), [each[1:] for each in SCENARIOS], ids=[each[0] for each in SCENARIOS]
)
async def test_the_model_calls_the_tools_itself_and_answers(
    root: Path, message: str, script: Any, calls: list[tuple[str, Any, Any]]
) -> None:
    journal = MemoryJournal()
    reply = await talk(root, ScriptedModel(script), journal=journal).chat(message, max_tokens=None)
    assert reply.success, reply.error
    assert [(each["tool"], each["arguments"], each["result"]) for each in reply.tool_calls] == calls
    assert reply.meta["tool_calls_count"] == len(calls)
    assert reply.trace_id is not None
    assert verify(journal, run_id=reply.trace_id).ok
    assert replay(journal, run_id=reply.trace_id).identical


async def test_what_the_second_tool_was_given_comes_from_the_first(root: Path) -> None:
    reply = await talk(root, ScriptedModel(read_numbers)).chat("Find them, then the mean.", max_tokens=None)
    assert reply.response == "The mean is 6."


async def test_a_tool_that_fails_is_told_to_the_model_which_answers(root: Path) -> None:
    read: list[str] = []

    def answer(messages: list[dict[str, Any]]) -> str:
        read.append(messages[-1]["content"])
        return action("read_file", path="data/nope.txt") if len(read) == 1 else final("There is no such file.")

    reply = await talk(root, ScriptedModel(answer)).chat("What does data/nope.txt say?", max_tokens=None)
    assert (reply.success, reply.response) == (True, "There is no such file.")
    error = reply.tool_calls[0]["result"]["error"]
    assert "data/nope.txt" in str(error)
    assert "data/nope.txt" in read[1]


async def test_refused_arguments_are_told_one_by_one_and_the_call_is_made_anew(root: Path) -> None:
    read: list[str] = []

    def answer(messages: list[dict[str, Any]]) -> str:
        read.append(messages[-1]["content"])
        wrong, right = action("file_search", limit="20"), action("file_search", query="openSkill", limit=20)
        return [wrong, right, final("a.md")][len(read) - 1]

    reply = await talk(root, ScriptedModel(answer)).chat("Search for 'openSkill'.", max_tokens=None)
    assert (reply.success, reply.response) == (True, "a.md")
    assert '/limit: expected an integer, you sent "20"; /query: expected a value, you sent nothing' in read[1]
    assert [each["result"] for each in reply.tool_calls if each["arguments"].get("query")] == [[FOUND_A]]


class Died(BaseException):
    """The end of the process, as far as a test can have one."""


async def test_a_turn_whose_process_died_goes_on_by_its_run_and_repeats_nothing(root: Path) -> None:
    asked: list[int] = []

    class Dying(ScriptedModel):
        async def complete(self, question: Question) -> Completion:
            asked.append(question.index)
            if asked == [0, 1]:
                raise Died
            return await super().complete(question)

    store, journal = MemoryContextStore(), MemoryJournal()
    model = Dying([action("write_file", path="once.txt", text="x"), final("Written.")])
    with pytest.raises(Died):
        await talk(root, model, store=store, journal=journal).chat("Write.", "c", max_tokens=None, run_id="turn")
    assert await store.turns("c") == []
    (root / "once.txt").unlink()
    reply = await talk(root, model, store=store, journal=journal).chat("Write.", "c", max_tokens=None, run_id="turn")
    assert (reply.response, asked, (root / "once.txt").exists()) == ("Written.", [0, 1, 1], False)
    assert len(await store.turns("c")) == 1


def check_reply(reply: ChatReply, journal: MemoryJournal) -> None:
    """Whatever a model did, the reply is honest and its run is in order."""
    assert reply.finish_reason in ENDINGS
    assert reply.success == (reply.finish_reason == "final") == (reply.error is None)
    assert reply.trace_id is not None
    assert verify(journal, run_id=reply.trace_id).ok
    assert replay(journal, run_id=reply.trace_id).identical


@needs_a_model
async def test_a_real_model_answers_or_ends_as_the_limits_say(root: Path) -> None:
    assert FILE is not None
    journal = MemoryJournal()
    desk = talk(root, local_model(FILE), journal=journal)
    replies = [await desk.chat(text, "c", max_tool_calls=2, max_tokens=6000) for text in ("echo hello", "And again.")]
    for reply in replies:
        check_reply(reply, journal)
        assert reply.meta["tool_calls_count"] <= 2
    history = await desk.history("c")
    assert [each["content"] for each in history if each["role"] == "user"] == ["echo hello", "And again."]
    assert {each["trace_id"] for each in history} == {reply.trace_id for reply in replies}


MESSAGES = [pytest.param(each[1], [call[0] for call in each[3]], id=each[0]) for each in SCENARIOS]
TALKATIVE = ("echo", "a search, then a calculation with what it found", "a choice of a tool")
"""Messages to which a small model says much before it reaches a limit."""
FEW_AND_MANY_WORDS = [
    pytest.param(*each.values, id=each.id, marks=pytest.mark.long if each.id in TALKATIVE else ()) for each in MESSAGES
]


@pytest.mark.exhaustive
@needs_a_model
@pytest.mark.parametrize(("message", "tools"), FEW_AND_MANY_WORDS)
async def test_each_message_to_a_small_model_ends_as_the_limits_say(root: Path, message: str, tools: list[str]) -> None:
    assert FILE is not None
    journal = MemoryJournal()
    check_reply(await talk(root, local_model(FILE), journal=journal).chat(message, max_tool_calls=2), journal)


if MODEL:  # without one there is no such test, rather than one that is skipped

    @pytest.mark.parametrize(("message", "tools"), MESSAGES)
    async def test_a_capable_model_chooses_the_tools_itself(root: Path, message: str, tools: list[str]) -> None:
        journal = MemoryJournal()
        reply = await talk(root, create_model(MODEL), journal=journal).chat(message, max_tokens=None)
        check_reply(reply, journal)
        assert reply.success, reply.error
        assert {each["tool"] for each in reply.tool_calls} >= set(tools)
