"""What a program hands to its tools: `deps` of a run are `context.deps` of its calls, and nowhere else."""

from contextvars import ContextVar
from typing import Any

import orjson

from agent_core import Approve, MemoryJournal, agent_tool, replay, run_agent, run_agent_sync, stream_agent, verify
from agent_core.models import ScriptedModel
from agent_core.node import NodeContext, execute
from support.by_hand import action, final
from utools import ToolContext, ToolRegistry, tool

CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["whoami"], "prompt": "Go."}


class Shop:
    """The program's own object, which neither JSON nor a copy can hold."""

    def __init__(self, name: str) -> None:
        self.name, self.asked = name, 0

    def __reduce__(self) -> Any:
        raise AssertionError("copied")

    def __repr__(self) -> str:
        return "a secret of the shop"


@tool(effect="read")
async def whoami(context: ToolContext[Shop]) -> str:
    """Tell who asks."""
    context.deps.asked += 1
    return f"shop {context.deps.name}"


def told(output: Any) -> list[str | None]:
    return [step["observation"] for step in output.trace if step["action"]]


async def test_a_tool_gets_the_object_itself_and_no_record_or_model_does() -> None:
    journal, shop, asked = MemoryJournal(), Shop("A"), list[Any]()

    def reply(messages: Any) -> str:
        asked.append(messages)
        return final() if len(asked) > 1 else orjson.dumps(action_without("whoami")).decode()

    output = await run_agent(CONFIG, registry=[whoami], model=ScriptedModel(reply), journal=journal, deps=shop)
    assert (told(output), shop.asked) == (["shop A"], 1)
    everything = b"".join(row.data for rows in journal.load(output.run_id).values() for row in rows)
    assert b"secret of the shop" not in everything
    assert "secret of the shop" not in str(asked)
    assert verify(journal, run_id=output.run_id).ok
    assert replay(journal, run_id=output.run_id).identical
    assert shop.asked == 1


async def test_without_deps_a_tool_gets_none() -> None:
    got = list[object]()

    @tool(effect="read")
    def look(context: ToolContext) -> str:
        got.append(context.deps)
        return "seen"

    config = {**CONFIG, "allowed_tools": ["look"]}
    await run_agent(config, registry=[look], model=ScriptedModel([action_without("look"), final()]))
    assert got == [None]


def action_without(code: str) -> dict[str, Any]:
    return {"type": "action", "tool": code, "args": {}}


async def test_every_entry_point_hands_it_on() -> None:
    def model() -> ScriptedModel:
        return ScriptedModel([action_without("whoami"), final()])

    assert told(run_agent_sync(CONFIG, registry=[whoami], model=model(), deps=Shop("B"))) == ["shop B"]
    events = [event async for event in stream_agent(CONFIG, registry=[whoami], model=model(), deps=Shop("C"))]
    assert [event["text"] for event in events if event["event"] == "observation"] == ["shop C"]
    context = NodeContext(run_id="r", journal=MemoryJournal(), tools=[whoami], model=model(), deps=Shop("D"))
    assert told(await execute(CONFIG, context)) == ["shop D"]


async def test_a_resumed_run_has_those_of_the_call_that_resumes_it() -> None:
    journal = MemoryJournal()
    config = {**CONFIG, "allowed_tools": [{"tool": "whoami", "approval": "always"}]}
    model = ScriptedModel([action_without("whoami"), final()])
    waits = await run_agent(config, registry=[whoami], model=model, journal=journal, run_id="r", deps=Shop("A"))
    decisions = {(call["strand"], call["n"]): Approve() for call in waits.waiting}
    output = await run_agent(
        config, registry=[whoami], model=model, journal=journal, run_id="r", decisions=decisions, deps=Shop("B")
    )
    assert told(output) == ["shop B"]


async def test_a_nested_agent_inherits_them() -> None:
    preset = {key: value for key, value in CONFIG.items() if key != "prompt"}
    config = {**CONFIG, "allowed_tools": [{"tool": "agent_core", "preset": preset}]}
    registry, shop = ToolRegistry([whoami]), Shop("A")
    registry.register(agent_tool(registry))
    replies = {
        "agent": [action("agent_core", prompt="Who?"), final("A.")],
        "agent/agent_core.4": [action_without("whoami"), final("It is shop A.")],
    }
    output = await run_agent(config, registry=registry, model=ScriptedModel(replies), deps=shop)
    assert (output.final_answer, shop.asked) == ("A.", 1)
    direct = await agent_tool([whoami], ScriptedModel([action_without("whoami"), final()])).execute(
        CONFIG, ToolContext(deps=shop)
    )
    assert (direct.success, shop.asked) == (True, 2)


WHO: ContextVar[str] = ContextVar("WHO")


async def test_a_context_variable_of_the_caller_reaches_a_tool_too() -> None:
    @tool(effect="read")
    async def here() -> str:
        return WHO.get()

    @tool(effect="read")
    def in_a_thread() -> str:
        return WHO.get()

    WHO.set("ann")
    config = {**CONFIG, "allowed_tools": ["here", "in_a_thread"]}
    model = ScriptedModel([action_without("here"), action_without("in_a_thread"), final()])
    assert told(await run_agent(config, registry=[here, in_a_thread], model=model)) == ["ann", "ann"]


async def test_no_answer_is_cached_that_may_depend_on_them() -> None:
    @tool(effect="read", cache={"ttl": 60})
    def who(context: ToolContext[str | None]) -> str:
        return str(context.deps)

    registry = ToolRegistry([who])

    async def ask(deps: str | None) -> list[str | None]:
        model = ScriptedModel([action_without("who"), final()])
        return told(await run_agent({**CONFIG, "allowed_tools": ["who"]}, registry=registry, model=model, deps=deps))

    assert [await ask("ann"), await ask("bob"), await ask(None), await ask("ann")] == [
        ["ann"],
        ["bob"],
        ["None"],
        ["ann"],
    ]
