"""The loop, driven by hand: what it asks, how it ends, and what it hands over."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core.decisions import Approve, Deny, Edit
from agent_core.effects import CallModel, Cancelled, Failed, Suspended
from agent_core.loop.calls import judge_calls
from agent_core.loop.outcome import AgentOutcome
from agent_core.loop.react import ask, check_answer
from agent_core.loop.run_state import RunState
from agent_core.outputs import TokenParts
from agent_core.protocol.errors import ProtocolError
from agent_core.protocol.parse import Action, Final
from agent_core.records import encode_asked
from agent_core.rules import CURRENT
from support.by_hand import AT, Hand, action, broke, did, final, look, said

Hands = Callable[..., Hand]


@pytest.fixture(params=["json", "tools"])
def hand(request: pytest.FixtureRequest) -> Hands:
    """A run driven by hand, in each dialect."""
    return partial(Hand, protocol=request.param)


def run_to_end(loop: Any) -> Any:
    """What a loop returns that asks for nothing."""
    with pytest.raises(StopIteration) as ended:
        next(loop)
    return ended.value.value


def test_an_action_is_run_and_its_observation_is_the_next_message() -> None:
    run = Hand([action(), final("It is seen.")], act=[did("seen")])
    assert (run.reason, run.output["final_answer"]) == ("final", "It is seen.")
    assert run.questions[1][-2:] == [
        {"role": "assistant", "content": '{"type":"action","tool":"look","args":{"q":"x"}}'},
        {
            "role": "user",
            "content": "The tool look returned: seen\nNow the next part of the request, or a final if nothing is left.",
        },
    ]


def test_the_fixed_part_comes_first_and_never_changes(hand: Hands) -> None:
    run = hand([action(), "nonsense", action(), final()], max_repairs=2)
    for before, after in zip(run.questions, run.questions[1:], strict=False):
        assert after[: len(before)] == before


def test_the_order_of_what_the_model_sees() -> None:
    history = [
        {"role": "system", "content": "LEADING"},
        {"role": "user", "content": "OLD"},
        {"role": "assistant", "content": "ANSWER"},
    ]
    run = Hand(
        [final()],
        messages_json=history,
        prompt="NEW",
        system_prompt="SYSTEM",
        developer_prompt="DEVELOPER",
        examples=["EXAMPLE"],
    )
    texts = [message["content"] for message in run.questions[0]]
    places = [texts[0].index(word) for word in ("- look(", "SYSTEM", "LEADING", "DEVELOPER", "EXAMPLE")]
    assert places == sorted(places)
    assert texts[1:] == ["OLD", '{"type":"final","answer":"ANSWER"}', "NEW"]
    assert [message["role"] for message in run.questions[0]] == ["system", "user", "assistant", "user"]


ENDINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("final", "final", {"replies": [final()]}),
    ("max_steps", "max_steps", {"replies": [action(), action()], "max_steps": 2}),
    ("max_tool_calls", "max_tool_calls", {"replies": [action(), action()], "max_tool_calls": 1}),
    ("token_budget", "token_budget", {"replies": [action(), action()], "total_token_budget": 15}),
    (
        "cost_budget",
        "cost_budget",
        {"replies": [said(action(), cost=0.5), said(action(), cost=0.6)], "cost_budget": 1.0},
    ),
    ("timeout", "timeout", {"replies": [action(), action()], "timeout": 4}),
    ("timeout_model", "timeout", {"replies": [Failed("timeout", "late", AT, 9.0)], "timeout": 9}),
    ("timeout_tool", "timeout", {"replies": [action()], "act": [Failed("timeout", "late", AT, 9.0)], "timeout": 10}),
    ("cancelled_model", "cancelled", {"replies": [Cancelled(AT)]}),
    ("cancelled_tool", "cancelled", {"replies": [action()], "act": [Cancelled(AT)]}),
    ("cancelled_waiting", "cancelled", {"replies": [action()], "approval": "always", "decisions": [Cancelled(AT)]}),
    ("protocol_error", "protocol_error", {"replies": ["no", "no"]}),
    ("invalid_action", "invalid_action", {"replies": [action(q=1), action(q=1)]}),
    ("off_the_whitelist", "policy_denied", {"replies": [action("hack"), action("hack")]}),
    (
        "refused_by_a_person",
        "policy_denied",
        {"replies": [action()], "approval": "always", "decisions": [[Deny()]], "max_repairs": 0},
    ),
    ("tool_error", "tool_error", {"replies": [action(), action()], "act": [broke(), broke()]}),
    (
        "abandoned",
        "tool_error",
        {"replies": [action()], "act": [Failed("abandoned", "given up", AT, 0.0)], "max_repairs": 9},
    ),
    ("model_error", "model_error", {"replies": [Failed("model_error", "down", AT, 1.0)]}),
    ("content_filter", "content_filter", {"replies": [said("", finish_reason="content_filter")]}),
    ("content_filter_error", "content_filter", {"replies": [Failed("content_filter", "no", AT, 1.0)]}),
    (
        "awaiting_approval",
        "awaiting_approval",
        {
            "replies": [action()],
            "approval": "always",
            "decisions": [Suspended("awaiting_approval", ({"strand": "agent"},))],
        },
    ),
    ("in_doubt", "in_doubt", {"replies": [action()], "act": [Suspended("in_doubt", ({"strand": "agent"},))]}),
]


@pytest.mark.parametrize(("reason", "how"), [(r, h) for _, r, h in ENDINGS], ids=[name for name, _, _ in ENDINGS])
def test_every_exit_has_its_reason_and_carries_everything(hand: Hands, reason: str, how: dict[str, Any]) -> None:
    run = hand(**how)
    assert run.reason == reason
    output = run.output
    assert (output["error"] is None) == (reason == "final")
    assert (output["final_answer"] is None) == (reason != "final")
    assert output["messages_json"][0] == {"role": "user", "content": "Go."}
    assert set(output["usage"]) == {
        "input_tokens",
        "output_tokens",
        "total_tokens",
        *TokenParts.__annotations__,
        "requests",
        "tool_calls",
        "cost",
        "estimated",
    }
    assert bool(output["waiting"]) == (reason in ("awaiting_approval", "in_doubt"))
    answered = {c["id"] for m in output["messages_json"] for c in m.get("tool_calls", ())}
    assert answered == {m["tool_call_id"] for m in output["messages_json"] if m["role"] == "tool"}


def test_limits_of_zero_or_null_are_none(hand: Hands) -> None:
    many = [action()] * 30
    run = hand([*many, final()], max_steps=0, max_tool_calls=None, timeout=0, total_token_budget=0, cost_budget=0)
    assert run.reason == "final"
    assert run.output["usage"]["tool_calls"] == 30


def test_a_final_that_crosses_the_budget_is_accepted(hand: Hands) -> None:
    run = hand([said(final(), tokens=9_999, cost=9.0)], total_token_budget=5_000, cost_budget=1.0)
    assert run.reason == "final"


def test_no_call_of_any_kind_starts_once_a_budget_is_used_up(hand: Hands) -> None:
    run = hand([said(action(), tokens=9_999)], total_token_budget=5_000)
    assert (run.reason, run.batches) == ("token_budget", [])
    assert run.output["trace"][0]["error"] == "not run: token_budget"


def test_a_question_that_is_larger_than_what_is_left_of_the_token_budget_is_not_asked(hand: Hands) -> None:
    run = hand([], total_token_budget=100)
    assert (run.reason, run.asked, run.output["usage"]["requests"]) == ("token_budget", [], 0)
    assert "100 are left" in run.output["error"]["message"]
    run = hand([said(action(), tokens=4_500), final()], total_token_budget=5_000, act=[did("x" * 8000)] * 2)
    assert (run.reason, len(run.asked), len(run.batches)) == ("token_budget", 1, 1)
    assert run.output["usage"]["total_tokens"] == 4_500


def test_a_question_is_measured_after_it_was_cut(hand: Hands) -> None:
    history = [{"role": "user", "content": "x" * 40_000}, {"role": "assistant", "content": "ok"}]
    cut: dict[str, Any] = {"messages_json": history, "max_input_tokens": 2_000}
    assert hand([final()], total_token_budget=5_000, **cut).reason == "final"


def test_a_run_of_earlier_rules_asks_whatever_is_left(hand: Hands) -> None:
    started: Any = hand([final()], total_token_budget=100_000).started
    limits = {**started["limits"], "tokens": 10}
    for version, kind in ((1, CallModel), (2, AgentOutcome)):
        state = RunState({**started, "limits": limits, "rules": {**CURRENT, "replies": version}})
        try:
            first: Any = next(ask(state))
        except StopIteration as stop:
            first = stop.value
        assert isinstance(first, kind)


@pytest.mark.parametrize(("comparison", "fits"), [(4, False), (5, True)])
def test_an_amount_is_a_multiple_of_a_cent_in_a_run_of_todays_rules(hand: Hands, comparison: int, fits: bool) -> None:
    cent: Any = {"type": "object", "properties": {"sum": {"type": "number", "multipleOf": 0.01}}}
    narrowed: Any = {"properties": {"sum": {"multipleOf": 0.05}}}
    asked: Any = {"answer_schema": cent, "allowed_tools": ["pay", {"tool": "look", "args": narrowed}]}
    started: Any = hand([final({})], tools=[look("pay", schema=cent), look(schema=cent)], **asked).started
    state = RunState({**started, "rules": {**CURRENT, "comparison": comparison}})
    calls = [Action("pay", {"sum": 19.99}), Action("look", {"sum": 0.15})]
    assert [verdict.verdict == "run" for _, verdict in run_to_end(judge_calls(state, calls))] == [fits, fits]
    assert isinstance(check_answer(state, Final({"sum": 600.03})), Final) is fits
    assert isinstance(check_answer(state, Final({"sum": 600.035})), ProtocolError)


def test_the_time_limit_of_the_author_is_told_to_the_second(hand: Hands) -> None:
    assert "95 seconds" in hand([final()], timeout=95).questions[0][0]["content"]


# ── the last step ────────────────────────────────────────────────────────────────────────────────


def test_the_model_is_told_when_it_must_answer(hand: Hands) -> None:
    last = hand([action(), final()], max_steps=2)
    assert "last reply" in last.last_heard
    assert "last reply" not in last.questions[0][-1]["content"]
    assert "last reply" in hand([final()], max_steps=1).last_heard
    assert "No tool calls are left" in hand([action(), final()], max_tool_calls=1).last_heard


def test_an_action_in_the_last_step_is_not_run(hand: Hands) -> None:
    run = hand([action()], max_steps=1)
    assert (run.reason, run.batches) == ("max_steps", [])
    assert run.output["trace"][0]["action"] == {"tool": "look", "args": {"q": "x"}}


@pytest.mark.parametrize("reply", ["no", action(q=1), action("hack")], ids=["unreadable", "invalid", "denied"])
def test_what_goes_wrong_in_the_last_step_ends_as_max_steps_unless_it_exceeds_repairs(hand: Hands, reply: str) -> None:
    assert hand([reply], max_steps=1).reason == "max_steps"
    assert hand([reply], max_steps=1, max_repairs=0).reason in ("protocol_error", "invalid_action", "policy_denied")


# ── repairs ──────────────────────────────────────────────────────────────────────────────────────


def test_a_repair_says_what_was_wrong_where_and_what_was_expected() -> None:
    run = Hand([action(q=1), final()])
    assert "/q: expected a string, you sent 1" in run.last_heard
    assert "{" not in run.last_heard


def test_a_success_resets_the_count_of_repairs(hand: Hands) -> None:
    assert hand(["no", action(), "no", action(), "no", final()], max_steps=9).reason == "final"


def test_no_repairs_means_none(hand: Hands) -> None:
    assert hand(["no"], max_repairs=0).reason == "protocol_error"


def test_a_failed_tool_counts_unless_only_unreadable_replies_do(hand: Hands) -> None:
    replies = [action(), action(q=1), action("hack"), action(), final()]
    acts = [broke(), broke()]
    assert hand(replies, act=acts).reason == "invalid_action"
    assert hand(replies, act=acts, repair_scope="unreadable").reason == "final"


def test_a_cut_off_reply_is_told_so() -> None:
    run = Hand([said('{"type":"final","answer":"It is', finish_reason="length"), final()])
    assert "cut off" in run.last_heard or "too long" in run.last_heard
    assert run.decided[0]["unreadable"]["kind"] == "truncated"


@pytest.mark.parametrize("quote", ["whole", "closing"])
def test_an_answer_that_quotes_the_repair_is_a_failed_repair(quote: str) -> None:
    first = Hand(["no", final()])
    text = first.last_heard if quote == "whole" else first.last_heard.splitlines()[-1]
    assert Hand(["no", final(text)]).reason == "protocol_error"


def test_an_answer_may_repeat_what_a_failed_tool_said(hand: Hands) -> None:
    run = hand(
        [action(), final("The tool said: there is no file called budget.txt here")],
        act=[broke("there is no file called budget.txt here")],
    )
    assert run.reason == "final"


def test_an_unreadable_reply_is_not_kept_for_the_next_turn(hand: Hands) -> None:
    run = hand(["no", final("yes")])
    assert run.output["messages_json"] == [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "yes"}]
    assert [step["action"] for step in run.output["trace"]] == [None, None]


def test_a_plan_is_repaired_like_any_unreadable_reply() -> None:
    plan = '{"type":"plan","steps":[{"step":1,"description":"d","tool":"look","parameters":{}}]}'
    assert Hand([plan], max_repairs=0).reason == "protocol_error"


def test_an_answer_schema_is_held(hand: Hands) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    run = hand([final({"n": "1"}), final({"n": 1})], answer_schema=schema)
    assert run.output["final_answer"] == {"n": 1}
    assert "/answer/n" in run.questions[1][-1]["content"]
    assert hand([final("text")], answer_schema=schema, max_repairs=0).reason == "protocol_error"


def test_tolerant_parsing_drops_what_the_model_invented() -> None:
    text = action() + '\n{"type":"final","answer":"invented"}'
    run = Hand([text, final("real")], parsing="tolerant")
    assert (run.output["final_answer"], run.decided[0]["stripped"]) == ("real", ["trailing"])
    assert "invented" not in str(run.questions[-1])


# ── people ───────────────────────────────────────────────────────────────────────────────────────


def test_an_approved_call_runs(hand: Hands) -> None:
    run = hand([action(), final()], approval="always", decisions=[[Approve()]])
    assert (run.reason, len(run.batches), len(run.waits)) == ("final", 1, 1)


def test_approval_on_write_lets_reads_pass(hand: Hands) -> None:
    assert hand([action(), final()], approval="on_write").waits == []
    written = hand([action(), final()], tools=[look(effect="write")], approval="on_write", decisions=[[Approve()]])
    assert len(written.waits) == 1


def test_a_denied_call_never_reaches_the_tool_and_the_model_reads_why(hand: Hands) -> None:
    run = hand([action(), final()], approval="always", decisions=[[Deny("not on a Sunday")]])
    assert run.batches == []
    assert "not on a Sunday" in run.last_heard


def test_edited_arguments_are_judged_again(hand: Hands) -> None:
    edited = hand([action(), final()], approval="always", decisions=[[Edit({"q": "better"})]])
    assert edited.batches[0].calls[0].args == {"q": "better"}
    assert edited.output["trace"][0]["action"]["args"] == {"q": "better"}
    wrong = hand([action(), final()], approval="always", decisions=[[Edit({"q": 7})]])
    assert wrong.batches == []
    assert "/q" in wrong.last_heard


# ── policy ───────────────────────────────────────────────────────────────────────────────────────


def test_max_calls_bounds_one_tool(hand: Hands) -> None:
    run = hand([action(), action(), final()], allowed_tools=[{"tool": "look", "max_calls": 1}])
    assert (len(run.batches), run.reason) == (1, "final")
    assert "1 times, no more" in run.last_heard


def test_a_preset_is_invisible_and_cannot_be_overridden(hand: Hands) -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "root": {"type": "string"}},
        "required": ["q", "root"],
    }
    allowed = [{"tool": "look", "preset": {"root": "secret place"}}]
    run = hand([action(), action(q="x", root="mine"), final()], tools=[look(schema=schema)], allowed_tools=allowed)
    assert run.batches[0].calls[0].config == {"q": "x", "root": "secret place"}
    assert run.batches[0].calls[0].args == {"q": "x"}
    assert "secret place" not in str(run.questions)
    assert "root" not in run.questions[0][0]["content"]
    assert run.decided[1]["calls"][0]["reason"] == "invalid_action"


def test_an_author_property_is_refused_even_when_it_is_not_set(hand: Hands) -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "allow_cidrs": {"type": "array", "x-author": True}},
        "required": ["q"],
    }
    run = hand([action(q="x", allow_cidrs=["0.0.0.0/0"])], tools=[look(schema=schema)], max_repairs=0)
    assert run.reason == "invalid_action"
    assert "allow_cidrs" not in run.questions[0][0]["content"]


def test_no_tools_means_none(hand: Hands) -> None:
    run = hand([action(), final()], allowed_tools=[])
    assert run.batches == []
    assert "no tools" in run.last_heard


def test_deny_wins(hand: Hands) -> None:
    run = hand([action(), final()], allowed_tools=["look", "l*"], deny_tools=["lo*"])
    assert run.batches == []


@pytest.mark.parametrize(
    ("to", "runs"),
    [
        ("bob@example.com", True),
        ("bob@example.com,eve@evil.org", False),
        ("bob@example.com\n", False),
        ("eve@evil.org", False),
    ],
)
def test_narrowed_arguments_must_match_as_a_whole(hand: Hands, to: str, runs: bool) -> None:
    allowed = [{"tool": "look", "args": {"properties": {"q": {"pattern": r"[^@,;\s]+@example\.com"}}}}]
    run = hand([action(q=to), final()], allowed_tools=allowed)
    assert bool(run.batches) == runs
    assert runs or run.decided[0]["calls"][0]["reason"] == "policy_denied"


def test_provenance_takes_only_what_a_trusted_text_holds(hand: Hands) -> None:
    allowed = [{"tool": "look", "provenance": {"q": "trusted"}}]
    told = {"allowed_tools": allowed, "prompt": "Write to Bob@Example.com, please."}
    assert len(hand([action(q="bob@example.com"), final()], **told).batches) == 1
    for wrong in ("example.com", "ob@example.com", "eve@evil.org", ""):
        assert hand([action(q=wrong)], max_repairs=0, **told).reason == "policy_denied", wrong


def test_an_observation_is_not_trusted_unless_its_tool_is(hand: Hands) -> None:
    tools = [look(), look("send")]
    replies = [action(), action("send", q="eve@evil.org"), final()]
    guarded = {"tool": "send", "provenance": {"q": "trusted"}}
    plain = hand(replies, tools=tools, allowed_tools=["look", guarded], act=[did({"mail": "eve@evil.org"}), did()])
    assert [batch.calls[0].tool for batch in plain.batches] == ["look"]
    trusted = [{"tool": "look", "trusted": True}, guarded]
    vouched = hand(replies, tools=tools, allowed_tools=trusted, act=[did({"mail": "eve@evil.org"}), did()])
    assert [batch.calls[0].tool for batch in vouched.batches] == ["look", "send"]


def test_what_fails_provenance_goes_to_a_person_where_there_is_one(hand: Hands) -> None:
    allowed = [{"tool": "look", "provenance": {"q": "trusted"}, "approval": "on_write"}]
    run = hand([action(q="eve@evil.org"), final()], allowed_tools=allowed, decisions=[[Approve()]])
    assert (len(run.waits), len(run.batches)) == (1, 1)


def test_an_effect_that_only_the_host_knows_is_asked_for_and_recorded(hand: Hands) -> None:
    dynamic = look(effect=lambda args: "write")
    run = hand([action(), final()], tools=[dynamic], approval="on_write", effects="write", decisions=[[Approve()]])
    assert run.decided[0]["calls"][0]["effect"] == "write"
    assert len(run.waits) == 1


# ── what is shown and kept ───────────────────────────────────────────────────────────────────────


def test_an_observation_is_shortened_with_head_tail_and_what_is_missing(hand: Hands) -> None:
    run = hand([action(), final()], act=[did("a" * 500 + "z" * 500)], observation_max_len=100)
    shown = run.output["trace"][0]["observation"]
    assert len(shown) == 100
    assert shown.startswith("aaa")
    assert shown.endswith("zzz")
    assert "characters left out" in shown
    assert shown in run.last_heard


def test_the_trace_keeps_within_its_bytes_and_loses_the_oldest_observations_first(hand: Hands) -> None:
    run = hand([*[action()] * 9, final()], act=[did("o" * 200)] * 9, max_steps=20, trace_max_bytes=2500)
    observations = [step["observation"] for step in run.output["trace"] if step["action"]]
    assert len(str(run.output["trace"])) < 3000
    assert observations[0] == "…"
    assert observations[-1] == "o" * 200


def test_long_arguments_are_shortened_in_the_trace_only(hand: Hands) -> None:
    run = hand([action(q="x" * 900), final()], observation_max_len=80)
    assert len(str(run.output["trace"][0]["action"]["args"])) < 120
    assert run.batches[0].calls[0].args == {"q": "x" * 900}


def test_history_is_trimmed_by_whole_turns(hand: Hands) -> None:
    history = [{"role": role, "content": f"{role} {i}"} for i in range(6) for role in ("user", "assistant")]
    run = hand([final()], messages_json=history, max_history_messages=5, examples=[])
    assert [m["content"] for m in run.questions[0][1:2]] == ["user 4"]


def test_a_question_that_is_too_long_loses_old_observations_first_then_old_turns(hand: Hands) -> None:
    turns = [{"role": role, "content": f"{role} {i} " + "w" * 4000} for i in range(4) for role in ("user", "assistant")]
    room = {"json": 5600, "tools": 5400}[hand([final()]).started["config"]["protocol"]]
    run = hand(
        [action(), action(), final()],
        act=[did("o" * 14000), did("p" * 40)],
        messages_json=turns,
        observation_max_len=0,
        max_input_tokens=room,
        max_history_messages=0,
    )
    opening, for_the_last_step, older = [asked.cut for asked in run.asked]
    assert opening is not None
    assert for_the_last_step is not None
    assert (opening["shortened"], opening["dropped"] > 0, opening["dropped"] % 2) == (0, True, 0)
    assert (for_the_last_step["shortened"], for_the_last_step["dropped"] > 0) == (0, True)
    assert older is None
    assert "o" * 14000 in str(run.questions[1])
    assert "p" * 40 in str(run.questions[-1])
    assert encode_asked(run.asked[1]).get("cut") == for_the_last_step


def test_the_oldest_steps_of_a_long_run_are_dropped_whole(hand: Hands) -> None:
    room = {"json": 900, "tools": 600}[hand([final()]).started["config"]["protocol"]]
    run = hand(
        [*[action(q=f"{step} " + "w" * 200) for step in range(12)], final()],
        act=[did(f"seen {step} " + "o" * 200) for step in range(12)],
        prompt="The question itself.",
        max_steps=20,
        max_tool_calls=0,
        max_input_tokens=room,
    )
    cuts = [asked.cut for asked in run.asked if asked.cut]
    assert sum(cut.get("steps", 0) for cut in cuts) > 3
    for step, question in enumerate(run.questions):
        sent = str(question)
        assert "The question itself." in sent
        assert step == 0 or f"seen {step - 1} " + "o" * 200 in sent
        roles = [message["role"] for message in question[2:]]
        assert roles == ["assistant", "tool" if run.started["config"]["protocol"] == "tools" else "user"] * (
            len(roles) // 2
        )


def test_a_last_step_that_is_too_long_by_itself_is_shortened(hand: Hands) -> None:
    run = hand([action(), final()], act=[did("o" * 9000)], observation_max_len=0, max_input_tokens=1500)
    assert run.asked[1].cut is not None
    assert run.asked[1].cut["shortened"] == 1


def test_digests_are_chained_over_what_the_model_sees(hand: Hands) -> None:
    one, other = hand([action(), final()], act=[did("a")]), hand([action(), final()], act=[did("b")])
    assert one.asked[0].digest == other.asked[0].digest
    assert one.asked[1].digest != other.asked[1].digest


def test_usage_and_used_tools_add_up(hand: Hands) -> None:
    run = hand([said(action(), tokens=3), said(action(), tokens=4), said(final(), tokens=5, cost=0.5)])
    assert run.output["usage"] == {
        "input_tokens": 12,
        "output_tokens": 0,
        "total_tokens": 12,
        "cached_tokens": 0,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "requests": 3,
        "tool_calls": 2,
        "cost": 0.5,
        "estimated": False,
    }
    assert run.output["used_tools"] == {"look": {"count": 2, "total_ms": 2000.0}}
    assert run.output["total_ms"] == 5000.0


def test_what_a_nested_run_spends_its_parent_spends(hand: Hands) -> None:
    usage = {"input_tokens": 90, "output_tokens": 5, "requests": 4, "tool_calls": 3, "cost": 0.2, "estimated": True}
    run = hand([action(), final()], act=[did("answer", usage=usage)])
    assert run.output["usage"]["total_tokens"] == 10 + 10 + 95
    assert (run.output["usage"]["requests"], run.output["usage"]["tool_calls"]) == (6, 4)
    assert run.output["usage"]["estimated"]


# ── what small models write ──────────────────────────────────────────────────────────────────────

FIXTURES = Path(__file__).parents[2] / "fixtures" / "replies"
REPLIES = [entry for path in sorted(FIXTURES.glob("*.json")) for entry in json.loads(path.read_text("utf-8"))]


@pytest.mark.sampled
@pytest.mark.parametrize("parsing", ["strict", "tolerant"])
@pytest.mark.parametrize("entry", REPLIES, ids=[entry["id"] for entry in REPLIES])
def test_the_loop_never_takes_for_success_what_it_could_not_read(entry: dict[str, Any], parsing: str) -> None:
    reply = said(entry["raw"], finish_reason=entry["finish_reason"])
    expected = entry[parsing]
    run = Hand([reply, final("repaired")], parsing=parsing)
    if "final" in expected:
        assert run.output["final_answer"] == expected["final"]
    else:
        assert run.output["final_answer"] == "repaired"
        assert (len(run.questions), run.batches) == (2, [])


# ── what a model may try ─────────────────────────────────────────────────────────────────────────


def test_a_refusal_repeats_only_so_much_of_what_was_sent(hand: Hands) -> None:
    wrong = {f"k{i}" + "x" * 50: i for i in range(2000)}
    for reply in (action(q="x", **wrong), action("t" * 100_000)):
        run = hand([reply, final()])
        assert len(run.last_heard) < 6000
        assert sum(len(str(message)) for message in run.questions[-1]) < 20_000
        assert "more" in run.last_heard or "tttt" in run.last_heard
        assert run.output["trace"][0]["action"]


def test_an_answer_may_be_what_a_refusal_echoed(hand: Hands) -> None:
    word = "this is a longer argument"
    run = hand([action(q=[word]), final(word)])
    assert run.reason == "final"


def test_the_question_survives_a_turn_that_is_longer_than_the_history(hand: Hands) -> None:
    turn = [{"role": "user", "content": "THE QUESTION"}]
    turn += [{"role": "assistant", "content": f"part {i}"} for i in range(60)]
    run = hand([final()], messages_json=turn, prompt=None, max_history_messages=50)
    assert "THE QUESTION" in str(run.questions[0])


def test_equal_call_ids_of_two_turns_do_not_mix_their_answers(hand: Hands) -> None:
    def turn(word: str) -> list[dict[str, Any]]:
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"q":"x"}'}}
        return [
            {"role": "user", "content": f"ask {word}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": f"answer {word}"},
        ]

    run = hand([final()], messages_json=[*turn("one"), *turn("two")], prompt="Now?")
    sent = str(run.questions[0])
    places = [sent.index(text) for text in ("ask one", "answer one", "ask two", "answer two", "Now?")]
    assert places == sorted(places)


def test_an_effect_function_never_sees_a_call_that_is_refused(hand: Hands) -> None:
    tool = look(effect=lambda args: "read")
    run = hand([action(q=1), final()], tools=[tool], effects="nested")
    assert run.decided[0]["calls"][0]["effect"] == "write"


PROVENANCE: list[tuple[dict[str, Any], Any]] = [
    ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"enum": ["cc"]}}, ["evil@x.com"]),
    ({"type": "object", "properties": {"a": True}}, {"a": "evil"}),
    ({}, "evil"),
    ({"type": "array", "items": {"type": "string"}}, [f"word{i}" for i in range(900)]),
]


@pytest.mark.parametrize(("schema", "value"), PROVENANCE, ids=["prefix", "boolean", "any", "many"])
def test_no_schema_lets_untrusted_text_pass(hand: Hands, schema: dict[str, Any], value: Any) -> None:
    tool = look(schema={"type": "object", "properties": {"q": schema}, "required": ["q"]})
    words = " ".join(f"word{i}" for i in range(900))
    run = hand(
        [action(q=value)],
        tools=[tool],
        allowed_tools=[{"tool": "look", "provenance": {"q": "trusted"}}],
        prompt=words,
        max_repairs=0,
    )
    assert (run.reason, run.batches) == ("policy_denied", [])
