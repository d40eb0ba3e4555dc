"""The arguments of a call as its tool gets them."""

import asyncio
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, run_agent
from agent_core.models import ScriptedModel
from support.by_hand import action, final
from utools import Tool, ToolContext, ToolRegistry, default_registry, tool
from utools.call_arguments import own_arguments

PAGE = {"type": ["integer", "null"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "page": PAGE,
        "x": {"type": "number"},
        "either": {"type": ["integer", "number"]},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
        "at": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "null"}]},
    },
    "additionalProperties": {"type": "integer"},
    "$defs": {"Row": {"properties": {"n": {"type": "integer"}, "self": {"$ref": "#/$defs/Row"}}}},
}


def test_whole_numbers_are_integers_where_the_schema_wants_them() -> None:
    row = {"n": 1.0, "self": {"n": 2.0}}
    given = {"n": 3.0, "page": 4.0, "x": 5.0, "either": 6.0, "rows": [row], "at": row, "more": 7.0, "text": "2.0"}
    made = {"n": 3, "page": 4, "x": 5.0, "either": 6.0, "rows": [{"n": 1, "self": {"n": 2}}], "more": 7, "text": "2.0"}
    own = own_arguments(given, SCHEMA)
    assert own == {**made, "at": made["rows"][0]}
    assert [type(own[name]) for name in ("n", "page", "x", "either", "more")] == [int, int, float, float, int]
    assert type(own["at"]["self"]["n"]) is int
    assert type(given["n"]) is float


@pytest.mark.parametrize("given", [{"q": "x"}, {"q": "x", "data": {"a": [1]}}], ids=["flat", "nested"])
def test_what_a_tool_takes_out_of_its_arguments_stays_in_those_of_the_call(given: dict[str, Any]) -> None:
    own = own_arguments(given, {"type": "object"})
    assert own == given
    assert own.pop("q") == given["q"]


def test_a_schema_that_refers_to_itself_without_end_is_left() -> None:
    assert own_arguments({"a": 1.0, "b": []}, {"$ref": "#"}) == {"a": 1.0, "b": []}


@pytest.mark.parametrize(
    ("code", "args"),
    [("read_file", {"path": "a", "offset": 1.0, "limit": 2.0}), ("formatter", {"number": 5, "decimals": 2.0})],
)
async def test_built_in_tools_take_whole_numbers(tmp_path: Any, code: str, args: Any) -> None:
    (tmp_path / "a").write_text("abcdef")
    result = await default_registry(root=str(tmp_path)).execute(code, args)
    assert result.success, result.error


def test_a_tool_that_changes_its_arguments_changes_no_record_of_them() -> None:
    @tool(effect="read")
    def typed(data: dict[str, Any], q: str) -> Any:
        """Changes them."""
        data["a"].append("changed")
        return data

    def plain(args: dict[str, Any], context: ToolContext) -> Any:
        args["data"]["a"].append("changed")
        return args.pop("q")

    schema = {"type": "object", "properties": {"data": {"type": "object"}, "q": {"type": "string"}}}
    tools = [typed, Tool("plain", "Changes them.", schema, plain, effect="read")]
    journal, args = MemoryJournal(), {"data": {"a": [1]}, "q": "x"}
    model = ScriptedModel([action("typed", **args), action("plain", **args), final("done")])
    config = {"model": "m", "max_steps": 4, "allowed_tools": ["typed", "plain"], "prompt": "Go."}
    output = asyncio.run(run_agent(config, registry=ToolRegistry(tools), model=model, journal=journal))
    assert [step["action"]["args"] for step in output.trace[:2]] == [args, args]
    assert "changed" in output.messages_json[2]["content"]
    assert replay(journal).identical
