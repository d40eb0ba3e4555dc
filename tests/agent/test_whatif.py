"""What-if: a recorded run under another policy, without a network and without acting."""

from pathlib import Path
from typing import Any, cast

import pytest

from agent_core import Approve, DefinitionError, Deny, Edit, MemoryJournal, agent_tool, replay, run_agent
from agent_core.audit.explain import explain_difference
from agent_core.audit.report.refused import read_refused
from agent_core.journal.reader import read_tape
from agent_core.journal.started import read_started
from agent_core.models import ScriptedModel
from agent_core.records import AgentStarted
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
REPLIES = [action("read"), action("write"), "no", action("read"), final()]
FROM_USER = {"tool": "write", "provenance": {"q": "user"}}
FROM_READ = {"tool": "write", "provenance": {"q": "read:/x"}}
POLICIES: list[tuple[str, dict[str, Any], tuple[int | None, list[str]]]] = [
    ("the same", {"max_steps": 6}, (None, ["run", "run", "run"])),
    ("a tool denied", {"deny_tools": ["wri*"]}, (8, ["run", "refuse", "run*"])),
    ("a shorter list", {"allowed_tools": ["read"]}, (8, ["run", "refuse", "run*"])),
    ("no tools", {"allowed_tools": []}, (3, ["refuse", "refuse*", "refuse*"])),
    ("approval", {"approval": "on_write"}, (8, ["run", "wait", "run*"])),
    ("calls bounded", {"allowed_tools": [{"tool": "read", "max_calls": 1}, "write"]}, (16, ["run", "run", "refuse"])),
    (
        "origins",
        {"allowed_tools": ["read", FROM_USER]},
        (8, ["run", "refuse", "run*"]),
    ),
    (
        "origins by path",
        {"allowed_tools": ["read", FROM_READ]},
        (8, ["run", "refuse", "run*"]),
    ),
    ("writes asked for", {"after_untrusted": "ask"}, (8, ["run", "wait", "run*"])),
    ("fewer steps", {"max_steps": 2}, (8, ["run", "not run: max_steps", "run*"])),
    ("fewer calls", {"max_tool_calls": 1}, (8, ["run", "not run: max_tool_calls", "run*"])),
    ("no repairs", {"max_repairs": 0}, (14, ["run", "run", "run*"])),
    ("a small budget", {"total_token_budget": 350}, (3, ["not run: token_budget", "run*", "run*"])),
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


@pytest.mark.parametrize(
    ("policy", "now"),
    [
        ({"max_steps": 1}, ["not run: max_steps", "run*", "not run: max_steps*"]),
        ({"deny_tools": ["read"], "max_steps": 2}, ["refuse", "run*", "not run: max_steps*"]),
        ({"deny_tools": ["read"], "max_steps": 9}, ["refuse", "run*", "run*"]),
    ],
)
async def test_a_call_stopped_by_a_limit_is_by_a_tighter_one_too(policy: dict[str, Any], now: list[str]) -> None:
    journal = MemoryJournal()
    await _recorded(journal, [action("read"), action("write"), action("write")], max_steps=3)
    found = replay(journal, run_id="r", policy=policy)
    assert [f"{each['now']}{'*' * each['counterfactual']}" for each in found.decisions] == now


NARROW = {"tool": "read", "args": {"properties": {"q": {"const": "y"}}, "required": ["q"]}}
REASONS: list[tuple[dict[str, Any], str, str]] = [
    ({"deny_tools": ["wri*"]}, "write: now refused: deny_tools has wri*", "now refused: deny_tools has wri*"),
    ({"allowed_tools": ["read"]}, "write: now refused: allowed_tools does not have write", "allowed_tools does not"),
    ({"approval": "on_write"}, "write: now made to wait: approval on_write of write", "approval on_write of write"),
    (
        {"allowed_tools": [{"tool": "read", "max_calls": 1}, "write"]},
        "read: now refused: max_calls 1 of read is used up",
        "max_calls 1 of read is used up",
    ),
    ({"allowed_tools": [NARROW, "write"]}, "read: now refused: args of read: /q ", "args of read: /q "),
    (
        {"allowed_tools": ["read", FROM_USER]},
        "write: now refused: provenance of write: q from user; /q ← model",
        "provenance of write",
    ),
    ({"after_untrusted": "refuse"}, "write: now refused: after_untrusted refuse", "after_untrusted refuse"),
    ({"max_steps": 2}, "write: now not run: max_steps 2 is used up", "max_steps 2 is used up"),
    ({"total_token_budget": 350}, "read: now not run: total_token_budget 350 is used up", "total_token_budget 350"),
]


@pytest.mark.parametrize(("policy", "first", "told"), REASONS, ids=[str(policy) for policy, _, _ in REASONS])
async def test_a_change_names_the_rule_with_its_key_and_value(policy: dict[str, Any], first: str, told: str) -> None:
    journal = MemoryJournal()
    await _recorded(journal)
    found = replay(journal, run_id="r", policy=policy)
    assert (found.why or "").startswith(first)
    assert next(told in (each["why"] or "") for each in found.decisions if each["now"] != each["recorded"])
    assert all((each["why"] is None) == (each["now"] == each["recorded"]) for each in found.decisions)


async def test_a_strand_in_which_no_agent_ran_is_refused() -> None:
    journal = MemoryJournal()
    await _recorded(journal)
    assert replay(journal, run_id="r", policy={"max_steps": 2}, strand="agent").divergence is not None
    with pytest.raises(DefinitionError, match="strand: no agent ran in this strand; did you mean agent"):
        replay(journal, run_id="r", policy={"max_steps": 2}, strand="agnt")


async def test_what_is_allowed_again_names_the_rule_that_had_refused_it() -> None:
    journal = MemoryJournal()
    await _recorded(journal, [action("read"), action("write"), final()], deny_tools=["wri*"])
    recorded = replay(journal, run_id="r", policy={"deny_tools": ["rea*"]})
    assert recorded.why == "read: now refused: deny_tools has rea*"
    other = MemoryJournal()
    await _recorded(other, [action("read"), action("read"), final()], allowed_tools=[{"tool": "read", "max_calls": 1}])
    found = replay(other, run_id="r", policy={"allowed_tools": ["read"]})
    assert found.why == "read: no longer refused: max_calls 1 of read is used up"


async def test_an_end_that_comes_earlier_names_its_limit() -> None:
    journal = MemoryJournal()
    await _recorded(journal)
    assert replay(journal, run_id="r", policy={"max_repairs": 0}).why == "the run ends: max_repairs 0 is used up"


DIFFERENCES: list[tuple[Any, Any, str]] = [
    ({"kind": "asked", "tool": "a"}, "nothing more", "recorded: asked a; now: nothing more"),
    (
        {"kind": "asked", "ask": "model", "model": "m"},
        {"kind": "run_finished", "finish_reason": "timeout"},
        "recorded: asked m; now: run_finished timeout",
    ),
    (
        {"kind": "decided", "calls": [{"tool": "a", "args": {"q": 1}}], "step": 1},
        {"kind": "decided", "calls": [{"tool": "a", "args": {"q": 2}}], "step": 2},
        "/calls/0/args/q is 1 in the record, and now 2",
    ),
]


@pytest.mark.parametrize(("recorded", "now", "told"), DIFFERENCES)
def test_a_divergence_names_the_first_field_that_differs(recorded: Any, now: Any, told: str) -> None:
    assert explain_difference(recorded, now) == told


async def test_looser_limits_outlive_the_tape() -> None:
    journal = MemoryJournal()
    await _recorded(journal, ["no", "no"])
    found = replay(journal, run_id="r", policy={"max_repairs": 5})
    assert (found.identical, found.divergence, found.tape_ended) == (False, None, "agent")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"model": "other"}, "policy/model: a policy may vary after_untrusted, allowed_tools"),
        ({"allowed_tools": ["unheard_of"]}, "^policy/allowed_tools/0: no tool is called 'unheard_of'"),
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


def test_an_old_run_is_judged_by_origins_where_the_policy_asks_for_them() -> None:
    allowed = [{"tool": "send", "provenance": "user"}]
    policy = {"allowed_tools": allowed, "approval": "never"}
    (decision,) = replay(TRANSCRIPTS / "approval_approved.jsonl", policy=policy).decisions
    assert (decision["recorded"], decision["now"]) == ("wait", "refuse")
    assert decision["why"] == "now refused: provenance of send: * from user; /to ← trusted text, /text ← model"


EDITS: list[tuple[str, dict[tuple[str, int], Any], list[str]]] = [
    ("edited", {("agent", 4): Edit({"q": "z"})}, ["wait", "run", "run"]),
    ("approved", {("agent", 4): Approve()}, ["wait", "run"]),
    ("denied", {("agent", 4): Deny("no")}, ["wait", "run"]),
]


@pytest.mark.parametrize(("decisions", "recorded"), [each[1:] for each in EDITS], ids=[each[0] for each in EDITS])
async def test_a_persons_decision_holds_under_another_policy(decisions: Any, recorded: list[str]) -> None:
    journal = MemoryJournal()
    registry = ToolRegistry(
        [Tool(code, code, Q, lambda args, context: "done", effect=code) for code in ("write", "read")]
    )
    given = {"model": "m", "max_steps": 5, "allowed_tools": ["read", "write"], "approval": "on_write", "prompt": "Go."}
    script = [action("write", q="x"), action("read"), final()]
    for decided in (None, decisions):
        model = ScriptedModel(script)
        await run_agent(given, registry=registry, model=model, journal=journal, run_id="r", decisions=decided)
    for policy in ({"max_steps": 1}, {"timeout": 1000}, {"max_tool_calls": 5}):
        found = replay(journal, run_id="r", policy=policy)
        assert [each["recorded"] for each in found.decisions] == recorded
        changed = [each["now"] for each in found.decisions if each["now"] != each["recorded"]]
        assert changed == (["not run: max_steps"] if "max_steps" in policy else [])


def _said(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"content": "", "calls": [{"name": tool, "arguments": args} for tool, args in made]}


LATER: list[tuple[str, list[Any], list[Any], dict[str, Any], list[str]]] = [
    (
        "a value that one of several calls gave",
        [_said(("read", {"q": "A"}), ("read", {"q": "B"})), _said(("write", {"q": "B-77"}))],
        [{"tool": "write", "provenance": {"q": "read"}}],
        {"deny_tools": ["other"]},
        ["refuse", "run*", "run*", "run*"],
    ),
    (
        "several calls in one reply",
        [_said(("read", {"q": "A"}), ("read", {"q": "B"})), _said(("read", {"q": "C"}))],
        ["write"],
        {"allowed_tools": [{"tool": "read", "max_calls": 1}]},
        ["refuse", "run*", "refuse*", "refuse*"],
    ),
    (
        "what was cut, read on",
        [_said(("read", {"q": "x" * 3000})), _said(("read_observation", {"step": 2, "from": 2000}))],
        ["write"],
        {"deny_tools": ["other"]},
        ["refuse", "run*", "run*"],
    ),
    (
        "reading on denied",
        [_said(("read", {"q": "x" * 3000})), _said(("read_observation", {"step": 2, "from": 2000}))],
        ["write"],
        {"deny_tools": ["read_*"]},
        ["run", "run", "refuse"],
    ),
]


@pytest.mark.parametrize(
    ("replies", "allowed", "policy", "now"), [each[1:] for each in LATER], ids=[e[0] for e in LATER]
)
async def test_later_calls_are_judged_by_all_that_the_run_had_done(
    replies: list[Any], allowed: list[Any], policy: dict[str, Any], now: list[str]
) -> None:
    journal = MemoryJournal()
    effects: dict[str, Any] = {"read": "read", "write": "write", "other": "write"}
    tools = [Tool(code, code, Q, lambda args, _: args["q"] + "-77", effect=effect) for code, effect in effects.items()]
    config = {"model": "m", "protocol": "tools", "max_steps": 6, "allowed_tools": ["read", "other", *allowed]}
    script = [_said(("other", {"q": "a"})), *replies, {"content": "done"}]
    await run_agent(
        {**config, "prompt": "Go."}, registry=tools, model=ScriptedModel(script), journal=journal, run_id="r"
    )
    found = replay(journal, run_id="r", policy=policy)
    assert [f"{each['now']}{'*' * each['counterfactual']}" for each in found.decisions] == now


async def test_what_a_person_wrote_is_theirs_in_later_calls_too() -> None:
    journal = MemoryJournal()
    registry = ToolRegistry([Tool(code, code, Q, lambda args, context: "done") for code in ("ask", "send", "other")])
    allowed = ["other", {"tool": "ask", "approval": "always"}, {"tool": "send", "provenance": {"q": "person"}}]
    config = {"model": "m", "max_steps": 5, "allowed_tools": allowed, "prompt": "Go."}
    script = [action("other"), action("ask", q="x"), action("send", q="Ada"), final()]
    for decided in (None, {("agent", 9): Edit({"q": "Ada"})}):
        model = ScriptedModel(script)
        await run_agent(config, registry=registry, model=model, journal=journal, run_id="r", decisions=decided)
    found = replay(journal, run_id="r", policy={"deny_tools": ["other"]})
    assert [(each["tool"], each["now"]) for each in found.decisions] == [
        ("other", "refuse"), ("ask", "wait"), ("ask", "run"), ("send", "run"),
    ]  # fmt: skip


async def test_a_refused_reading_on_is_told_as_it_was() -> None:
    journal = MemoryJournal()
    tools = [Tool("read", "read", Q, lambda args, context: "x" * 3000, effect="read")]
    script = [action("read"), action("read_observation", step=9, **{"from": 0}), final()]
    config = {"model": "m", "max_steps": 5, "allowed_tools": ["read"], "prompt": "Go."}
    await run_agent(config, registry=tools, model=ScriptedModel(script), journal=journal, run_id="r")
    tape = journal.load("r")
    facts = read_tape(tape)
    (told,) = read_refused("r", facts, lambda path: cast(AgentStarted, read_started(tape[path][0])))
    assert (told.what, told.reason) == ("read_observation", "invalid_action")
    assert "/step" in told.why


async def test_calls_of_the_agent_above_and_of_later_ones_are_judged_too() -> None:
    journal = MemoryJournal()
    child = {"model": "m", "max_steps": 4, "allowed_tools": ["write"]}
    script: Any = {
        "agent": [action("agent_core", prompt="1"), action("agent_core", prompt="2"), action("write"), action("read")],
        "agent/agent_core.4": [action("write"), final()],
        "agent/agent_core.9": [action("write"), final()],
    }
    await _recorded(
        journal, script, max_steps=4, allowed_tools=["read", "write", {"tool": "agent_core", "preset": child}]
    )
    found = replay(journal, run_id="r", policy={"deny_tools": ["write"]})
    assert [(each["strand"], each["tool"], each["now"]) for each in found.decisions] == [
        ("agent", "agent_core", "run"),
        ("agent/agent_core.4", "write", "refuse"),
        ("agent", "agent_core", "run"),
        ("agent", "write", "refuse"),
        ("agent", "read", "not run: max_steps"),
        ("agent/agent_core.9", "write", "refuse"),
    ]
    assert [each["counterfactual"] for each in found.decisions] == [False, False, True, True, True, True]
