"""The first record of a strand, decoded in parts: it is what its bytes say, whatever keys and texts are in it. What
runs have alike is in memory once, and no tool can change it."""

import asyncio
import gc
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Approve, MemoryJournal, run_agent
from agent_core.journal.reader import Reader
from agent_core.journal.record import Row
from agent_core.journal.started import read_started
from agent_core.models import ScriptedModel
from agent_core.models.client import Completion, Question
from support.by_hand import action, final
from utools import Tool, ToolContext, tool

KEYS = st.sampled_from(["config", "tools", "messages", "definition", "texts", "a", ',"tools":', "kind"])
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(['","config":', ',"tools":{}', "}", ""]),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(KEYS, each, max_size=3),
    max_leaves=8,
)


def row(data: bytes) -> Row:
    return Row("flow", 0, b"", data)


def started(loop: str, members: list[tuple[str, Any]]) -> bytes:
    """A record whose keys may come twice, as no journal writes them."""
    own = b"".join(b",%b:%b" % (orjson.dumps(key), orjson.dumps(value)) for key, value in members)
    return b'{"kind":"run_started","loop":"%b"%b}' % (loop.encode(), own)


@given(st.sampled_from(["agent", "flow"]), st.lists(st.tuples(KEYS, VALUES), max_size=6))
def test_it_is_what_the_bytes_say(loop: str, members: list[tuple[str, Any]]) -> None:
    data = started(loop, members)
    assert read_started(row(data)) == orjson.loads(data)


@given(
    st.lists(st.tuples(KEYS, VALUES), max_size=5), st.integers(1, 400), st.sampled_from([b"", b"}", b'"', b",", b"{"])
)
def test_broken_bytes_are_refused_as_ever(members: list[tuple[str, Any]], at: int, junk: bytes) -> None:
    whole = started("agent", members)
    at = min(at, len(whole) - 1)
    data = whole[:at] + junk + whole[at + 1 :]
    try:
        expected = orjson.loads(data)
    except orjson.JSONDecodeError:
        with pytest.raises(orjson.JSONDecodeError):
            read_started(row(data))
    else:
        assert read_started(row(data)) == expected


def test_what_runs_have_alike_is_decoded_once() -> None:
    one, other = (started("agent", [("run", run), ("tools", {"find": {}}), ("messages", [run])]) for run in ("a", "b"))
    first, second = read_started(row(one)), read_started(row(other))
    assert first["tools"] is second["tools"]
    assert (first["run"], second["messages"]) == ("a", ["b"])


def test_what_is_a_runs_own_is_decoded_for_each_reader() -> None:
    data = started("agent", [("config", {"prompt": "Go."}), ("messages", [{"role": "user"}]), ("agent", {"name": "a"})])
    first, second = read_started(row(data)), read_started(row(data))
    assert first == second
    assert all(first[key] is not second[key] for key in ("config", "messages", "agent"))


def test_a_brief_reader_keeps_no_conversation() -> None:
    config = {"model": "m", "observation_max_len": 9, "messages_json": [{}], "prompt": "Go."}
    members = [("config", config), ("tools", {"find": {}}), ("messages", [{}]), ("limits", {"steps": 3})]
    data = started("agent", [("at", "2026-11-22"), *members])
    reader = Reader(is_brief=True)
    reader.read(row(data))
    run = reader.runs["flow"]
    assert (run.config, run.max_steps) == ({"model": "m", "observation_max_len": 9}, 3)
    assert (list(run.messages), run.tools, run.texts) == ([], {}, {})


class Held(ScriptedModel):
    """Answers once `count` runs have asked, and `asked` says how many have."""

    def __init__(self, count: int) -> None:
        super().__init__([final()])
        self.count, self.asked = count, 0
        self.all_asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def complete(self, question: Question) -> Completion:
        self.asked += 1
        if self.asked == self.count:
            self.all_asked.set()
        await self.may_answer.wait()
        return Completion(final())


@tool(effect="read")
def look(text: str) -> str:
    """Look at what a run in flight keeps of this tool."""
    return text


RUNS = 12
HISTORY = [{"role": "user", "content": "What came before?"}, {"role": "assistant", "content": "Something."}]


async def test_runs_in_flight_have_their_policies_once_and_no_second_history() -> None:
    model, journal = Held(RUNS), MemoryJournal()
    prompt = "Look, all of you."
    config = {"model": "held", "max_steps": 3, "allowed_tools": ["look"], "prompt": prompt}
    runs = [
        asyncio.ensure_future(
            run_agent(
                {**config, "messages_json": HISTORY},
                registry=[look],
                model=model,
                journal=journal,
                on_event=lambda _: None,
            )
        )
        for _ in range(RUNS)
    ]
    await model.all_asked.wait()
    gc.collect()
    dicts = [each for each in gc.get_objects() if type(each) is dict]
    policies = [each for each in dicts if "provenance" in each and each.get("description") == look.description]
    configs = [
        each for each in dicts if each.get("prompt") == prompt and each.get("messages_json", HISTORY) is not HISTORY
    ]
    del dicts
    model.may_answer.set()
    outputs = await asyncio.gather(*runs)
    assert {each.finish_reason for each in outputs} == {"final"}
    assert (len(policies), configs) == (1, [])


async def test_a_tool_that_changes_its_preset_changes_no_other_run() -> None:
    got = list[list[str]]()

    def execute(args: dict[str, Any], context: ToolContext) -> str:
        got.append([*args["tags"]])
        args["tags"].append("changed")
        return "done"

    schema = {"type": "object", "properties": {"tags": {"type": "array"}}, "required": ["tags"]}
    tag = Tool("tag", "Tag.", schema, execute, effect="read")
    allowed = [{"tool": "tag", "preset": {"tags": ["a"]}}]
    config = {"model": "scripted", "max_steps": 4, "allowed_tools": allowed, "prompt": "Go."}
    for _ in range(2):
        replies = [action_without_arguments("tag"), action_without_arguments("tag"), final()]
        await run_agent(config, registry=[tag], model=ScriptedModel(replies))
    assert got == [["a"]] * 4


async def test_a_caller_who_changes_a_conversation_changes_no_run() -> None:
    """A run that waited goes on from its record, which others read again later."""
    allowed = [{"tool": "look", "approval": "always"}]
    config = {"model": "scripted", "max_steps": 4, "allowed_tools": allowed, "prompt": "Go."}
    run = partial(run_agent, config, registry=[look], journal=MemoryJournal(), run_id="r-1")
    waiting = await run(model=ScriptedModel([action(text="x")]))
    decisions = {(each["strand"], each["n"]): Approve() for each in waiting.waiting}
    ended = await run(model=ScriptedModel([final(), final()]), decisions=decisions)
    ended.messages_json[0]["content"] = "changed"
    again = await run(model=ScriptedModel([]))
    assert (again.finish_reason, again.messages_json[0]["content"]) == ("final", "Go.")


def action_without_arguments(name: str) -> str:
    return orjson.dumps({"type": "action", "tool": name, "args": {}}).decode()
