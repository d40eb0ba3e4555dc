"""What-if: a recorded run under another policy, without a network and without acting."""

from typing import Any

import pytest

from agent_core import DefinitionError, MemoryJournal, agent_tool, replay, run_agent
from agent_core.models import ScriptedModel
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry

REPLIES = [action("read"), action("write"), "no", action("read"), final()]
POLICIES: list[tuple[str, dict[str, Any], tuple[int | None, list[str]]]] = [
    ("the same", {"max_steps": 6}, (None, ["run", "run", "run"])),
    ("a tool denied", {"deny_tools": ["wri*"]}, (8, ["run", "refuse", "run*"])),
    ("a shorter list", {"allowed_tools": ["read"]}, (8, ["run", "refuse", "run*"])),
    ("no tools", {"allowed_tools": []}, (3, ["refuse", "refuse*", "refuse*"])),
    ("approval", {"approval": "on_write"}, (8, ["run", "wait", "run*"])),
    ("calls bounded", {"allowed_tools": [{"tool": "read", "max_calls": 1}, "write"]}, (16, ["run", "run", "refuse"])),
    ("fewer steps", {"max_steps": 2}, (8, ["run", "not run: max_steps", "run*"])),
    ("fewer calls", {"max_tool_calls": 1}, (8, ["run", "not run: max_tool_calls", "run*"])),
    ("no repairs", {"max_repairs": 0}, (14, ["run", "run", "run*"])),
    ("a small budget", {"total_token_budget": 1}, (3, ["not run: token_budget", "run*", "run*"])),
]


async def _recorded(journal: MemoryJournal, replies: list[str] = REPLIES, **config: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    async def act(args: dict[str, Any], context: Any) -> str:
        made.append(args)
        return "done"

    registry = ToolRegistry([Tool(code, code, Q, act, effect=code) for code in ("read", "write")])
    registry.register(agent_tool(registry))
    given = {"model": "m", "max_steps": 6, "allowed_tools": ["read", "write"], "prompt": "Go.", **config}
    await run_agent(given, registry=registry, model=ScriptedModel(replies), journal=journal, run_id="r")
    return made


@pytest.mark.parametrize(
    ("policy", "expected"), [(p, e) for _, p, e in POLICIES], ids=[name for name, _, _ in POLICIES]
)
async def test_the_first_changed_decision_is_named_and_the_rest_is_counterfactual(
    policy: dict[str, Any], expected: tuple[int | None, list[str]]
) -> None:
    journal = MemoryJournal()
    made = await _recorded(journal)
    before = len(made)
    found = replay(journal, run_id="r", policy=policy)
    place, verdicts = expected
    assert (found.divergence or {}).get("n") == place
    assert found.identical == (place is None)
    assert [f"{d['now']}{'*' * d['counterfactual']}" for d in found.decisions] == verdicts
    assert {d["recorded"] for d in found.decisions} == {"run"}
    assert len(made) == before


async def test_looser_limits_outlive_the_tape() -> None:
    journal = MemoryJournal()
    await _recorded(journal, ["no", "no"])
    found = replay(journal, run_id="r", policy={"max_repairs": 5})
    assert (found.identical, found.divergence, found.tape_ended) == (False, None, "agent")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"model": "other"}, "policy/model: a policy may vary allowed_tools"),
        ({"allowed_tools": ["unheard_of"]}, "no tool is called 'unheard_of'"),
        ({"max_steps": "many"}, "max_steps"),
    ],
)
async def test_a_policy_that_no_run_can_have_is_refused(policy: dict[str, Any], told: str) -> None:
    journal = MemoryJournal()
    await _recorded(journal)
    with pytest.raises(DefinitionError, match=told):
        replay(journal, run_id="r", policy=policy)


async def test_a_childs_limits_are_those_its_parent_would_have_left_it() -> None:
    journal = MemoryJournal()
    child = {"model": "m", "max_steps": 4, "allowed_tools": ["read"]}
    script: Any = {
        "agent": [action("agent_core", prompt="Help."), final()],
        "agent/agent_core.4": [action("read"), action("read"), final()],
    }
    await _recorded(journal, script, allowed_tools=[{"tool": "agent_core", "preset": child}])
    found = replay(journal, run_id="r", policy={"max_tool_calls": 2})
    assert found.divergence is not None
    assert (found.divergence["strand"], found.divergence["n"]) == ("agent/agent_core.4", 8)
    assert found.decisions[-1]["now"] == "not run: max_tool_calls"
