"""What people are asked on Airflow's page, and what their answers decide."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Approve, DecisionError, Deny, Done, Edit, Fail, Retry, Skip
from agent_core.outputs import WaitingCall
from engine_shim.plugins.airflow.questions import APPROVALS, DECIDE, DOUBTS, make_question, read_answer

NUMBERS = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)


def waiting(n: int = 4, args: Any = None, reason: Any = "awaiting_approval", tool: str = "ship") -> WaitingCall:
    return {"strand": "agent", "n": n, "reason": reason, "tool": tool, "args": {"q": "17"} if args is None else args}


def test_one_call_has_a_button_for_each_decision_and_shows_its_arguments() -> None:
    question = make_question([waiting() | {"message": "ship needs a person's approval"}])
    assert (question.subject, question.options) == ("May it be made: ship?", list(APPROVALS))
    assert '"q": "17"' in question.body
    assert "needs a person's approval" in question.body


@pytest.mark.parametrize(
    ("call", "word", "values", "decision"),
    [
        (waiting(), "Approve", {}, Approve()),
        (waiting(), "Approve", {"args": {"q": "17"}, "message": ""}, Approve()),
        (waiting(), "Approve", {"args": {"q": "18"}}, Edit({"q": "18"})),
        (waiting(), "Deny", {"message": "no"}, Deny("no")),
        (waiting(), "Deny", {"message": None}, Deny("")),
        (waiting(reason="in_doubt"), "Retry", {}, Retry()),
        (waiting(reason="in_doubt"), "Skip", {}, Skip()),
        (waiting(reason="in_doubt"), "Fail", {}, Fail()),
        (waiting(reason="in_doubt"), "Done", {"output": '{"order": 17}'}, Done({"order": 17})),
        (waiting(reason="in_doubt"), "Done", {"output": "sent"}, Done("sent")),
        (waiting(reason="in_doubt"), "Done", {}, Done(None)),
    ],
)
def test_answer_is_the_decision_of_its_button(call: WaitingCall, word: str, values: Any, decision: Any) -> None:
    assert read_answer([call], [word], values) == {("agent", 4): decision}


@pytest.mark.parametrize(("reason", "words"), [("awaiting_approval", DOUBTS), ("in_doubt", APPROVALS)])
def test_word_that_fits_none_of_the_buttons_is_refused(reason: str, words: Any) -> None:
    for word in (*words, "", DECIDE):
        with pytest.raises(DecisionError, match="is none of"):
            read_answer([waiting(reason=reason)], [word], {})


def test_several_calls_have_a_field_each_that_lets_none_run_by_itself() -> None:
    calls = [waiting(4), waiting(6, {"q": "18"}), waiting(9, reason="in_doubt")]
    question = make_question(calls)
    assert (question.options, list(question.params)) == ([DECIDE], ["call_1", "call_2", "call_3"])
    untouched = {name: field["value"] for name, field in question.params.items()}
    slots = [("agent", 4), ("agent", 6), ("agent", 9)]
    assert read_answer(calls, [DECIDE], untouched) == dict(zip(slots, (Deny(), Deny(), Fail()), strict=True))
    chosen = {"call_1": "Approve", "call_2": "Deny", "call_3": "Retry"}
    assert read_answer(calls, [DECIDE], chosen) == dict(zip(slots, (Approve(), Deny(), Retry()), strict=True))


@given(ARGS)
def test_form_that_nobody_touched_approves_what_was_shown(args: Any) -> None:
    """A browser rounds whole numbers above 2**53, and writes 1.0 as 1."""

    def as_browser(value: Any) -> Any:
        match value:
            case bool():
                return value
            case int():
                return int(float(value))
            case float() if value.is_integer():
                return int(value)
            case dict():
                return {key: as_browser(value[key]) for key in reversed(value)}
            case list():
                return [as_browser(each) for each in value]
            case _:
                return value

    assert read_answer([waiting(args=args)], ["Approve"], {"args": as_browser(args)}) == {("agent", 4): Approve()}


@given(st.text(alphabet="`~\n a*#<"))
def test_no_argument_leaves_the_block_that_shows_it(text: str) -> None:
    lines = make_question([waiting(args={"q": text})]).body.splitlines()
    fence = next(line for line in lines if line.endswith("json"))[: -len("json")]
    assert [line for line in lines if line == fence] == [fence]
