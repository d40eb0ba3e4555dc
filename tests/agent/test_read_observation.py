"""`read_observation`: what was cut can be read on, and only that."""

import json
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, run_agent, verify
from agent_core.models import ScriptedModel
from support.by_hand import Hand, action, calls, did, final
from utools import Tool, ToolRegistry

LONG = "".join(f"line {index:03}\n" for index in range(100))
"""900 characters."""
Q = {"type": "object", "properties": {"q": {"type": "string"}}}


class Short(Hand):
    """A run whose model reads 256 characters at once."""

    def __init__(self, *args: Any, **config: Any) -> None:
        super().__init__(*args, **{"observation_max_len": 256} | config)


def read(step: int, start: int, **more: int) -> str:
    return action("read_observation", step=step, **{"from": start}, **more)


def offered(question: Any) -> bool:
    return "read_observation" in json.dumps(question)


async def run(*replies: str, journal: MemoryJournal | None = None, output: Any = LONG, **config: Any) -> Any:
    registry = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: output, effect="read")])
    settings = {"model": "m", "max_steps": 8, "allowed_tools": ["look"], "prompt": "go", "observation_max_len": 256}
    settings |= config
    return await run_agent(settings, registry=registry, model=ScriptedModel(list(replies)), journal=journal, run_id="r")


async def test_what_was_cut_is_read_on_part_by_part() -> None:
    output = await run(action(), read(1, 256), read(1, 768), final("line 099"))
    assert output.finish_reason == "final"
    assert [step["observation"] for step in output.trace[1:3]] == [LONG[256:512], LONG[768:]]
    assert output.used_tools["read_observation"]["count"] == 2
    assert output.usage["tool_calls"] == 3


def test_a_cut_observation_says_how_to_read_on_and_where_from() -> None:
    run = Short([action(), final()], act=[did(LONG)])
    said = run.questions[1][-1]["content"]
    start = len(said.removeprefix("The tool look returned: ").partition(" …[")[0])
    left = int(said.partition(" …[")[2].partition(" ")[0])
    call = '{"type":"action","tool":"read_observation","args":{"step":1,"from":' + f"{start}}}}}"
    assert f"({left} more characters: {call})\n" in said
    assert said.startswith(f"The tool look returned: {LONG[:start]} …[")


def test_a_part_that_was_read_says_how_to_read_on_while_something_is_left() -> None:
    parts = [did(LONG[start : start + 256]) for start in (256, 512, 768)]
    run = Short([action(), read(1, 256), read(1, 512), read(1, 768), final()], act=[did(LONG), *parts])
    said = [question[-1]["content"] for question in run.questions[2:]]
    assert [f'"from":{start}' in each for each, start in zip(said, (512, 768, 1024), strict=True)] == [
        True,
        True,
        False,
    ]
    assert [f"({left} more characters: " in each for each, left in zip(said, (388, 132), strict=False)] == [True, True]
    assert "more characters" not in said[2]


@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_it_is_offered_only_once_something_was_cut(protocol: str) -> None:
    run = Short([action(), action(), final()], act=[did("short"), did(LONG)], protocol=protocol)
    assert [offered(question) for question in run.questions] == [False, False, True]
    schemas = [asked.options.get("step_schema") or asked.options["tools"] for asked in run.asked]
    assert [offered(schema) for schema in schemas] == [False, False, True]


async def test_before_anything_was_cut_it_is_a_tool_like_any_that_is_not_allowed() -> None:
    output = await run(read(1, 0), final(), output="short", max_repairs=0)
    assert output.finish_reason == "policy_denied"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"step": 2, "from": 0}, "/step: the observations that were cut are those of step 1, you sent 2"),
        ({"step": 1, "from": 900}, "/from: the observation has 900 characters, you sent 900"),
        ({"step": 1, "from": -1}, "/from: expected"),
        ({"step": 1}, "/from"),
        ({"step": 1, "from": 0, "call": 2}, "/step: the observations that were cut are those of step 1"),
    ],
)
async def test_what_is_not_there_is_told(args: dict[str, int], told: str) -> None:
    output = await run(action(), action("read_observation", **args), final())
    assert told in output.trace[1]["error"]
    assert output.finish_reason == "final"


async def test_calls_of_one_reply_are_told_apart() -> None:
    replies = [calls(("look", {"q": "a"}), ("look", {"q": "b"})), read(1, 300, call=2), final()]
    act = iter([[did("short"), did(LONG)], [did(LONG[300:556])]])
    run = Short(replies, act=lambda batch: next(act), protocol="tools")
    assert '"call":2' in str(run.questions[1][-1]["content"])
    assert run.reason == "final"


async def test_it_is_on_the_tape_like_any_call() -> None:
    journal = MemoryJournal()
    await run(action(), read(1, 256), final(), journal=journal)
    asked = [body for body in bodies(journal) if body.get("tool") == "read_observation"]
    assert [(each["kind"], each["args"]) for each in asked] == [("asked", {"step": 1, "from": 256})]
    assert replay(journal, run_id="r").identical
    assert verify(journal, run_id="r").ok


async def test_the_next_turn_does_not_read_how_to_read_on() -> None:
    output = await run(action(), final())
    assert not offered(output.messages_json)


async def test_an_author_may_deny_it() -> None:
    output = await run(action(), read(1, 256), final(), deny_tools=["read_observation"], max_repairs=0)
    assert output.finish_reason == "policy_denied"


async def test_a_tool_of_this_name_on_the_whitelist_is_the_authors() -> None:
    tools = [
        Tool(code, "Does it.", Q, lambda args, context: LONG, effect="read") for code in ("look", "read_observation")
    ]
    settings = {"model": "m", "max_steps": 5, "allowed_tools": ["look", "read_observation"], "prompt": "go"}
    replies = [action(), action("read_observation", q="mine"), final()]
    output = await run_agent(settings, registry=ToolRegistry(tools), model=ScriptedModel(replies))
    assert output.finish_reason == "final"


async def test_without_a_limit_there_is_nothing_to_read_on() -> None:
    output = await run(action(), read(1, 0), final(), observation_max_len=0, max_repairs=0)
    assert output.finish_reason == "policy_denied"


def bodies(journal: MemoryJournal) -> list[dict[str, Any]]:
    return [row.record() for rows in journal.load("r").values() for row in rows]
