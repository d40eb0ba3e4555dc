"""Runs whose calls, functions or earlier conversation are odd: each vendor is asked what it takes."""

import asyncio
from functools import partial
from typing import Any

import pytest

from agent_core import DefinitionError
from support.wires.clients import each_client, each_native, run
from support.wires.serving import vendor
from support.wires.turn import Turn, WireStandIn
from utools import Tool, ToolResult, tool

pytestmark = pytest.mark.sampled


@tool(effect="read")
async def look(q: str) -> str:
    """Look up."""
    if q == "bad":
        raise RuntimeError("no such page")
    if q == "gone":
        raise asyncio.CancelledError
    return q.upper()


run_tools = partial(run, tools=(look,), protocol="tools")


@pytest.mark.parametrize("odd", ["bad", "gone"])
@each_client
async def test_of_calls_at_once_the_others_results_reach_the_model(stand_in: WireStandIn, odd: str) -> None:
    calls = [("look", {"q": each}) for each in ("one", odd, "two")]
    async with vendor(stand_in, Turn(calls=calls), Turn("Done.")) as endpoint:
        output = await run_tools(endpoint)
    results = endpoint.asked[-1].results
    assert (output.final_answer, len(results), results[0], results[2]) == ("Done.", 3, "ONE", "TWO")


def make_tool(code: str) -> Tool:
    async def execute(args: Any, context: Any) -> ToolResult:
        return ToolResult(output=f"made by {code}")

    schema = {"type": "object", "properties": {}}
    return Tool(code=code, description=f"The tool {code}.", config_schema=schema, execute=execute, effect="read")


NAMES = [
    ("a.b", "a:b"),
    ("x.long_name_" + "y" * 70 + "_2024", "x.long_name_" + "y" * 70 + "_2025"),
    ("2fa.check", "-dash"),
]


@pytest.mark.parametrize("codes", NAMES, ids=["signs", "long", "first character"])
@each_client
async def test_names_of_functions_are_ones_that_the_vendor_takes(stand_in: WireStandIn, codes: tuple[str, str]) -> None:
    tools = [make_tool(each) for each in codes]
    async with vendor(stand_in, Turn("Done.")) as endpoint:
        await run(endpoint, tools=tools, protocol="tools")
        [first, second] = endpoint.asked[0].tools
    async with vendor(stand_in, Turn(calls=[(first, {}), (second, {})]), Turn("Done.")) as endpoint:
        output = await run(endpoint, tools=tools, protocol="tools")
    assert output.final_answer == "Done."
    assert endpoint.asked[-1].results == [f"made by {each}" for each in codes]


PAST_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q":"a"}'}}


def calling(*ids: str, content: str | None = "") -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": [{**PAST_CALL, "id": id_} for id_ in ids]}


def says(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def result(id_: str, content: str = "A") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


HELLO, AND = says("user", "hi {{env.TOP}} {0} ${x} {% raw %}"), says("user", "and?")
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "a result first": [result("c1"), HELLO],
    "a call without a result": [HELLO, calling("c1"), AND],
    "one result of two": [HELLO, calling("c1", "c2"), result("c2"), AND],
    "a result twice": [HELLO, calling("c1"), result("c1"), result("c1"), AND],
    "a result of nothing": [HELLO, calling("c1"), result("c1", ""), AND],
    "the assistant first": [says("assistant", "Welcome!"), HELLO],
    "an assistant who says nothing": [HELLO, says("assistant", ""), AND],
    "a call first": [calling("c1"), result("c1"), HELLO],
    "repeated ids": [HELLO, calling("c1"), result("c1"), calling("c1"), result("c1", "B"), AND],
    "ids of odd characters": [HELLO, calling("функция 1/2", "x" * 90), result("функция 1/2"), result("x" * 90), AND],
    "two of the system": [says("system", "Be short."), says("system", "Be kind."), HELLO],
    "two of the user": [HELLO, AND],
    "two of the assistant": [HELLO, says("assistant", "One."), says("assistant", "Two."), AND],
    "a blank text": [HELLO, says("assistant", " \n"), AND],
    "the window cuts": [
        each
        for n in range(30)
        for each in (says("user", f"q{n}"), calling(f"k{n}"), result(f"k{n}"), says("assistant", "A"))
    ]
    + [AND],
}


@pytest.mark.parametrize("protocol", ["tools", "json"])
@pytest.mark.parametrize("name", HISTORIES)
@each_client
async def test_a_conversation_from_elsewhere_is_one_that_the_vendor_takes(
    stand_in: WireStandIn, name: str, protocol: str
) -> None:
    answer = "ok" if protocol == "tools" else '{"type":"final","answer":"ok"}'
    most = 7 if name == "the window cuts" else 50
    async with vendor(stand_in, Turn(answer)) as endpoint:
        output = await run_tools(
            endpoint, prompt="", messages_json=HISTORIES[name], protocol=protocol, max_history_messages=most
        )
    assert (output.final_answer, len(endpoint.asked)) == ("ok", 1)
    [asked] = endpoint.asked
    assert asked.said[-1].endswith(HISTORIES[name][-1]["content"])


@each_client
async def test_a_system_message_in_the_middle_is_refused_with_its_place(stand_in: WireStandIn) -> None:
    async with vendor(stand_in, Turn("ok")) as endpoint:
        with pytest.raises(DefinitionError, match="messages_json/1"):
            await run_tools(endpoint, prompt="", messages_json=[HELLO, says("system", "ignore all"), AND])
    assert not endpoint.asked


@each_native
async def test_a_long_integer_of_a_conversation_from_elsewhere_keeps_its_digits(stand_in: WireStandIn) -> None:
    number = 10**29 + 7
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'{{"q":{number}}}'}}
    past = {"role": "assistant", "content": "", "tool_calls": [call]}
    async with vendor(stand_in, Turn("ok")) as endpoint:
        output = await run_tools(endpoint, prompt="", messages_json=[HELLO, past, result("c1"), AND])
    assert output.final_answer == "ok"
    assert endpoint.asked[0].calls == [("look", {"q": str(number)})]
