"""The facts of the auditor's report, run by run: what is kept is bounded, and policies are told apart."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.audit.report.incidents import read_incidents
from agent_core.audit.report.listing import LONGEST, MOST_KEYS, MOST_ROWS, Listing, Tally, shorten
from agent_core.audit.report.people import read_acts
from agent_core.audit.report.policies import (
    FEW,
    MOST_AGENTS,
    MOST_JUDGED,
    MOST_POLICIES,
    Judged,
    Policies,
    policy_of,
)
from agent_core.audit.report.versions import Versions
from agent_core.audit.taken_over import leave_taken_over
from agent_core.effects import Failed, ModelReply
from agent_core.journal.facts import Added, Answered, Call, Question, RecordedRun, Resolved, RunStarted, Sent, Waiting
from agent_core.outputs import Json

SAME = Judged("identical")


def agent(config: Json, *, name: str = "desk", tools: Any = ("look",), overrides: Any = None) -> RecordedRun:
    note: Any = None if overrides is None else {"name": name, "kept": [], "dropped": {}, "overrides": overrides}
    return RecordedRun(
        path="agent", above=None, loop="agent", name=name, workflow="w", agent=name, conversation=None, at="", began="",
        definition={}, external={}, config={"allowed_tools": ["look"], "max_steps": 2, **config},
        tools={key: {} for key in tools}, messages=(), texts={}, note=note, turn=None, forked=None,
    )  # fmt: skip


def add(policies: Policies, *runs: RecordedRun, judge: Any = lambda policy, strand: SAME) -> None:
    """Add runs as they come, newest first."""
    for number, run in enumerate(runs):
        policies.add(f"r{number}", f"2026-01-{28 - number:02}", [(run, policy_of(run))], judge)


def change(was: str, now: str, tool: str = "look") -> Any:
    why = None if was == now else "because"
    return {"strand": "agent", "n": 3, "tool": tool, "recorded": was, "now": now, "counterfactual": False, "why": why}


def test_rows_and_keys_beyond_the_most_are_counted() -> None:
    listing, tally = Listing[int](), Tally[int]()
    for number in range(MOST_ROWS + 7):
        listing.add(number)
    for number in range(MOST_KEYS + 5):
        tally.add(number, "first")
        tally.add(1, "other")
    assert (len(listing.rows), listing.rows[-1], listing.left_out) == (MOST_ROWS, MOST_ROWS - 1, 7)
    listed = tally.list(lambda key, times, run: (key, times, run))
    assert listed.rows[0] == (1, MOST_KEYS + 6, "other")
    assert (len(listed.rows), listed.left_out) == (MOST_ROWS, MOST_KEYS + 5 - MOST_ROWS)
    assert len(shorten("x" * 10_000)) == LONGEST


def test_versions_have_their_first_run() -> None:
    versions = Versions()
    versions.add("new", "2026-02-02", [("agent_core", "2"), ("workflow w", "1"), ("workflow w", "1")])
    versions.add("old", "2026-01-01", [("agent_core", "1"), ("workflow w", "1")])
    told = [(each.what, each.version, each.runs, each.run) for each in versions.list().rows]
    assert told == [("agent_core", "1", 1, "old"), ("agent_core", "2", 1, "new"), ("workflow w", "1", 2, "old")]


def test_one_policy_is_no_change() -> None:
    policies = Policies()
    older = agent({})
    assert policy_of(older)["max_repairs"] == 1  # as a release that did not know the key would have had it
    add(policies, agent({"max_repairs": 1, "rate": 3}), older)
    assert policies.list_seen().rows == policies.list_effects().rows == policies.runs.rows == []


def test_what_a_caller_set_for_one_turn_is_no_change_of_a_policy() -> None:
    policies = Policies()
    add(policies, agent({"max_steps": 3}), *(agent({"max_steps": n}, overrides=["max_steps"]) for n in (1, 2)))
    assert policies.list_seen().rows == []


def test_a_policy_that_comes_again_is_the_same() -> None:
    policies = Policies()
    add(policies, *(agent({"max_steps": steps}) for steps in (3, 5, 3, 5)))
    seen = policies.list_seen().rows
    assert [(each.run, each.runs, each.changes) for each in seen] == [("r3", 2, []), ("r2", 2, ["max_steps: 5 → 3"])]
    assert [each.last_seen for each in seen] == ["2026-01-27", "2026-01-28"]
    assert policies.list_effects().rows[0].policy == seen[1].policy


def test_earlier_runs_are_judged_by_what_the_newest_policy_has_otherwise() -> None:
    asked: list[Any] = []

    def judge(policy: Json, strand: str) -> Judged:
        asked.append((policy, strand))
        return Judged("changed", [change("run", "refuse"), change("run", "run"), change("refuse", "refuse", "new")])

    policies = Policies()
    add(policies, agent({"max_steps": 3, "deny_tools": ["x"]}), agent({"max_steps": 3}), judge=judge)
    assert asked == [({"deny_tools": ["x"]}, "agent")]
    (effect,), (run,) = policies.list_effects().rows, policies.runs.rows
    assert (effect.runs, effect.changed, effect.calls, effect.unknown_tools) == (1, 1, 1, 1)
    assert effect.verdicts == {"run → refuse": 1}
    assert (run.run, run.calls, run.why, run.settings) == ("r1", 1, "because", {"deny_tools": ["x"]})


def test_tools_that_an_earlier_run_did_not_have_are_left_out_of_its_policy() -> None:
    asked: list[Any] = []

    def judge(policy: Json, strand: str) -> Judged:
        asked.append(policy)
        return SAME

    policies = Policies()
    new: Json = {"allowed_tools": ["look", {"tool": "pay", "approval": "always", "trusted": False}, "mcp.*"]}
    add(policies, agent(new), agent({}, tools=("look", "mcp.read")), judge=judge)
    assert asked == [{"allowed_tools": ["look", "mcp.*"]}]
    change_of_list = 'allowed_tools: ["look"] → ["look",{"tool":"pay","approval":"always"},"mcp.*"]'
    assert policies.list_seen().rows[1].changes == [change_of_list]


@pytest.mark.parametrize("outcome", ["inapplicable", "damaged", "unreadable"])
def test_a_run_that_cannot_be_judged_is_counted_with_why(outcome: str) -> None:
    policies = Policies()
    add(policies, agent({"max_steps": 1}), agent({}), judge=lambda policy, strand: Judged(outcome))
    (effect,) = policies.list_effects().rows
    assert (effect.runs, effect.changed, effect.not_judged, effect.reasons) == (0, 0, 1, {outcome: 1})


def test_a_run_that_would_have_gone_on_is_changed() -> None:
    policies = Policies()
    add(policies, agent({"max_steps": 9}), agent({}), judge=lambda policy, strand: Judged("outlived"))
    assert (policies.list_effects().rows[0].changed, policies.runs.rows[0].calls) == (1, 0)
    assert policies.runs.rows[0].why == "the run would have gone on"


def test_runs_policies_and_agents_beyond_the_most_are_counted() -> None:
    policies = Policies()
    older = [agent({"max_steps": 1})] * (MOST_JUDGED + 3)
    for number, run in enumerate([agent({}), *older]):
        judged = Judged("changed", [change("run", "wait")])
        policies.add(f"r{number}", "2026", [(run, policy_of(run))], lambda policy, strand, judged=judged: judged)
    (effect,) = policies.list_effects().rows
    assert (effect.runs, effect.not_judged, effect.reasons) == (MOST_JUDGED, 3, {"left out": 3})
    assert len(policies.runs.rows) == FEW
    add(policies, *(agent({"max_steps": n}, name="b") for n in range(1, MOST_POLICIES + 5)))
    assert policies.list_seen().left_out == 4
    add(policies, *(agent({}, name=f"c{n}") for n in range(MOST_AGENTS)))
    assert policies.list_effects().left_out == 2


def test_messages_and_signals_of_persons_are_told() -> None:
    facts = [
        Added("control", 0, None, "user", "In German.", "ann", "t0"),
        Sent("control", 1, None, "paid", {"amount": 5}, "shop", "t1"),
        Resolved("control", 2, None, "pause", "bob", "t2", "", None, ()),
        Resolved("flow/a.1", 3, None, "elapsed", "", "t3", "", None, ()),
    ]
    told = [(act.by, act.decision, act.about, act.said) for act in read_acts("r", facts)]
    assert told == [("ann", "message", "user", "In German."), ("shop", "signal", "paid", ""), ("bob", "pause", "", "")]


def test_a_late_answer_and_questions_that_were_sent_again_are_incidents() -> None:
    reply = ModelReply(
        content="", finish_reason="stop", usage={}, at="", seconds=0.0, requests=3, model="m", calls=(), echo=None
    )
    asked = Question("agent", 1, None, 1, "m", 2, "")
    facts = [
        Answered("agent", 2, None, asked, reply),
        Answered("agent", 4, None, asked, Failed("timeout", "no answer", "", 1.0, 2)),
        Waiting("flow/a.1", 1, None, "in_doubt", "pay", {}, None, (), "", 1.0),
        Resolved("flow/a.1", 2, None, "late", "key", "t", "", None, ()),
    ]
    told = [(each.kind, each.place, each.what) for each in read_incidents("r", facts)]
    assert told == [
        ("asked again", "agent:2", "m: 3 requests"),
        ("asked again", "agent:4", "m: 2 requests"),
        ("late answer", "flow/a.1:2", "pay"),
    ]


def test_what_a_fork_took_over_is_told_of_the_run_where_it_happened() -> None:
    fork = replace(agent({}), at="t1", forked={"run": "r", "strand": "flow/b.1", "n": 0, "at": "t5"})
    own: list[Any] = [
        RunStarted("flow", 0, fork, fork),
        Waiting("flow/b.1", 0, fork, "awaiting_approval", "pay", {}, None, (), "", None),
        Resolved("flow/b.1", 1, fork, "deny", "ann", "t6", "not now", None, ()),
        Call("flow/c.1", 0, fork, "c", "look", {}, "read"),
    ]
    past = [
        Waiting("flow/a.1", 0, fork, "awaiting_approval", "pay", {}, None, (), "", None),
        Resolved("flow/a.1", 1, fork, "approve", "ann", "t3", "", None, ()),
        Call("flow/a.1", 2, fork, "a", "pay", {}, "write"),
        Answered("flow/a.1", 3, fork, None, Failed("tool_error", "no answer", "t4", 1.0, 2)),
    ]
    assert leave_taken_over([own[0], *past, *own[1:]]) == own
    assert leave_taken_over(past) == past
