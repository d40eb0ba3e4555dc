"""The host's last word: presets that definitions may only narrow, tools that are not offered."""

from pathlib import Path
from typing import Any

import pytest

from utools import Tool, ToolRegistry, default_registry
from utools.context.store_memory import MemoryContextStore
from utools.errors import DefinitionError, UnknownTool
from utools.host_policy import HostPolicy

KEYS: dict[str, Any] = {
    "list": {"type": "array", "x-author": True, "x-narrow": "subset"},
    "names": {"type": "array", "items": {"type": "string"}, "x-author": True, "x-narrow": "patterns"},
    "root": {"type": "string", "x-author": True, "x-narrow": "path"},
    "prefix": {"type": "string", "x-author": True, "x-narrow": "prefix"},
    "most": {"type": "integer", "x-author": True, "x-narrow": "minimum"},
    "strict": {"type": "boolean", "x-author": True, "x-narrow": "true"},
    "wide": {"type": "boolean", "x-author": True, "x-narrow": "false"},
    "other": {"type": "string", "x-author": True},
    "shown": {"type": "string"},
}
NARROWED: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("list", [1, 2], [[1], [2, 1], []], [[3], [1, 3]]),
    ("names", ["a.com"], [["a.com"], []], [["b.com"], ["a.com", "b.com"], ["*.a.com"], ["*"]]),
    (
        "names",
        ["*.a.com", "b.com"],
        [["*.a.com"], ["x.a.com"], ["y.x.a.com"], ["*.x.a.com"], ["b.com"]],
        [["*"], ["*.com"], ["a.com.evil"], ["xa.com"], ["x*.a.com"], ["x.b.com"], ["x.a.com\n"], ["*.*.a.com"]],
    ),
    ("names", ["*@a.com"], [["ann@a.com"], ["*@a.com"]], [["ann@b.com"], ["*"], ["*@*"]]),
    (
        "root",
        "data",
        ["data", "data/in", "data/in/x", "data/"],
        [
            "database",
            ".",
            "/data",
            "data/..",
            "data/../x",
            "data/x/../../y",
            "dat",
            "data\n/..",
            "data/x\n",
            "data/x\n/..",
            "",
        ],
    ),
    ("prefix", "app:", ["app", "app:", "app:x"], ["apple", "other", "app/x"]),
    ("root", ".", [".", "x", "x/y", "..x"], ["..", "../x", "/x", "x/../..", "x\n", "x\n/.."]),
    ("most", 10, [10, 3], [11]),
    ("strict", True, [True], [False]),
    ("strict", False, [True, False], []),
    ("wide", False, [False], [True]),
    ("other", "A", ["A"], ["B", "a"]),
    ("shown", "A", ["A"], ["B"]),
]


def _registry(policy: HostPolicy, **more: Any) -> ToolRegistry:
    schema = {"type": "object", "properties": KEYS, "required": ["other"]}
    return ToolRegistry([Tool("t", "Does.", schema, lambda args, context: args, **more)], policy=policy)


@pytest.mark.parametrize(("key", "preset", "narrower", "wider"), NARROWED)
async def test_a_preset_can_only_be_narrowed(key: str, preset: Any, narrower: Any, wider: Any) -> None:
    registry = _registry(HostPolicy({"t": {"other": "A", key: preset}}))
    assert (await registry.execute("t", {})).output == {"other": "A", key: preset}
    for value in narrower:
        assert (await registry.execute("t", {key: value})).output == {"other": "A", key: value}, value
    for value in wider:
        assert [fault.pointer.split("/")[1] for fault in registry.validate("t", {key: value})] == [key], value
        assert not (await registry.execute("t", {key: value})).success


def test_no_model_sees_what_the_host_sets() -> None:
    (seen,) = _registry(HostPolicy({"t": {"other": "A", "shown": "B"}})).definitions()
    assert seen["function"]["parameters"]["properties"] == {}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"othr": "A"}, r"presets/t/othr: t has no such key; there are list, names"),
    "wrong type": ({"most": "3"}, r"presets/t/most: /most must be an integer"),
    "wrong entry": ({"names": [3]}, r"presets/t/names/0: "),
}


@pytest.mark.parametrize(("preset", "why"), BAD.values(), ids=BAD)
def test_a_preset_that_the_tool_refuses_is_told(preset: Any, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        _registry(HostPolicy({"t": preset}))


OFFERED: list[tuple[HostPolicy, str | None]] = [
    (HostPolicy(), None),
    (HostPolicy(allow_tools=["t", "x"]), None),
    (HostPolicy(allow_tools=["*"], deny_tools=["t*"]), "it is in deny_tools"),
    (HostPolicy(allow_tools=["x*"]), "it is not in allow_tools"),
    (HostPolicy(allow_tools=[]), "it is not in allow_tools"),
]


@pytest.mark.parametrize(("policy", "why"), OFFERED)
def test_tools_that_the_host_does_not_offer_say_why(policy: HostPolicy, why: str | None) -> None:
    registry = _registry(policy)
    assert [tool.code for tool in registry.all()] == ([] if why else ["t"])
    if why:
        with pytest.raises(UnknownTool, match=f"the host does not offer t: {why}"):
            registry.get("t")
        with pytest.raises(DefinitionError, match="another tool already has this code"):
            registry.register(Tool("t", "Does.", {"type": "object"}, lambda args, context: None))


def test_allow_tools_does_not_speak_of_runs() -> None:
    assert _registry(HostPolicy(allow_tools=[]), effect="nested").get("t")


def test_an_effect_that_hangs_on_a_preset_is_settled() -> None:
    effect = {"argument": "shown", "read": ["A"]}
    assert _registry(HostPolicy({"t": {"shown": "A"}}), effect=effect).get("t").effect == "read"
    written = _registry(HostPolicy({"t": {"shown": "B"}}), effect=effect, cache={"ttl": 60}).get("t")
    assert (written.effect, written.cache) == ("write", None)
    tool = _registry(HostPolicy({"t": {"shown": "A"}}), effect=lambda args: "read" if args["shown"] == "A" else "write")
    assert tool.get("t").effect_of({}) == "read"


def test_each_guard_of_a_built_in_tool_says_how_it_narrows_or_must_be_equal(tmp_path: Path) -> None:
    presets = {"shell_command": {"allow": ["ls"]}}
    registry = default_registry(tmp_path, context_store=MemoryContextStore(), policy=HostPolicy(presets))
    lists_and_numbers = ("array", "integer", "number", "boolean")
    for tool in registry.all():
        for name, key in tool.config_schema["properties"].items():
            if key.get("x-author") and key.get("type") in lists_and_numbers:
                bounded = "x-narrow" in key or (tool.code, name) in {("email", "port")}
                assert bounded, f"{tool.code}/{name} can only be equal to what the host sets"
